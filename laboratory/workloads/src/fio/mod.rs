//! Parses fio job files into jobs.
//!
//! Owns: the syntax (sections, `[global]`, `include`, `${VAR}`, arithmetic), fio's rules for numbers, the lists of
//! options and engines and of those that the simulator knows.
//! Does not own: files and the environment, which the caller provides; running jobs.
//! Invariants: pure. For supported options the parser rejects every value that fio 3.33 rejects. The parser accepts
//! every value that fio accepts, with fio's meaning, unless fio silently drops a part of the value. An option that fio
//! knows and the simulator does not is an error, unless it cannot change the behaviour of a cache and a disk. All
//! errors of a file are reported at once.

mod apply;
mod arithmetic;
mod complaint;
mod draft;
mod engines;
mod forms;
mod job_file;
mod lines;
mod numbers;
mod options;
mod surroundings;
mod values;

pub use complaint::{Complaint, Complaints};
pub use job_file::{JobFile, Likeness};
pub use surroundings::{Alone, Included, Surroundings};

/// Parses the job file `text`, called `name` in messages.
///
/// # Errors
/// All errors of the file.
pub fn parse(name: &str, text: &str, surroundings: &mut dyn Surroundings) -> Result<JobFile, Complaints> {
    parse_as(name, text, surroundings, Likeness::Same)
}

/// Like [`parse`], with this likeness to fio.
///
/// # Errors
/// Those of [`parse`].
pub fn parse_as(
    name: &str,
    text: &str,
    surroundings: &mut dyn Surroundings,
    likeness: Likeness,
) -> Result<JobFile, Complaints> {
    let (sections, mut wrong) = lines::sections(name, text, surroundings);
    let file = apply::jobs(sections, likeness, surroundings.size(), &mut wrong);
    if wrong.is_empty() { Ok(file) } else { Err(Complaints(wrong)) }
}

/// Fails with the reason if a text is no size of a job.
///
/// # Errors
/// The reason.
pub fn check_size(text: &str) -> Result<(), String> {
    values::amount(text, numbers::KbBase::Binary, 1).map(drop)
}

/// The job of these options, which are separated by spaces.
#[cfg(test)]
pub(crate) fn job_of(options: &str) -> crate::job::Job {
    let text = format!("[x]\n{}\n", options.replace(' ', "\n"));
    let parsed = parse("test.fio", &text, &mut Alone("there is none"));
    parsed.unwrap_or_else(|complaints| panic!("{complaints}")).jobs.remove(0)
}

#[cfg(test)]
mod tests;
