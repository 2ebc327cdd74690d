//! Turns sections of options into jobs.
//!
//! Owns: the set of a job's options (its own, after those of the global sections above it), refusals, warnings.
//! Does not own: the text around options (`lines`), the effect of an option on a job (`draft`), the list of fio's
//! options (`options`).
//! Invariants: every returned job can run. Each warning is given once, at its first line.

use std::collections::{BTreeMap, BTreeSet};

use afflux_engine::settings::did_you_mean;

use super::complaint::Complaint;
use super::draft::Draft;
use super::forms;
use super::job_file::{JobFile, Likeness};
use super::lines::{OptionLine, Section};
use super::options::{self, Meaning};
use crate::job::{Job, SourceLine};

/// The state of reading a file's options.
struct Reading<'a> {
    likeness: Likeness,
    wrong: &'a mut Vec<Complaint>,
    warnings: Vec<Complaint>,
    /// Warnings already given: options' names, or whole sentences.
    reported: BTreeSet<String>,
}

/// The jobs of a file. Those that name no size have `size`.
pub(super) fn jobs(
    sections: Vec<Section>,
    likeness: Likeness,
    size: Option<&str>,
    wrong: &mut Vec<Complaint>,
) -> JobFile {
    let mut jobs: Vec<Job> = Vec::new();
    let mut reading = Reading { likeness, wrong, warnings: Vec::new(), reported: BTreeSet::new() };
    let mut defaults = Draft::default();
    // Options of fio's command line stand before those of the file's global sections.
    if let Some(Err(what)) = size.map(|size| defaults.set("size", size)) {
        reading.refuse(&SourceLine { file: "--size".to_owned(), line: 1 }, what);
    }
    let mut names = BTreeSet::new();
    for section in sections {
        if section.is_global() {
            reading.apply_all(&mut defaults, &section.options);
            continue;
        }
        let mut draft = defaults.clone();
        draft.job.name.clone_from(&section.name);
        draft.job.position = section.position.clone();
        let complaints = reading.wrong.len();
        reading.apply_all(&mut draft, &section.options);
        let is_unknown = |other: &&String| !names.contains(*other) && **other != draft.job.name;
        if let Some(other) = draft.job.more.wait_for.as_ref().filter(is_unknown) {
            let near = did_you_mean(other, jobs.iter().map(|job| job.name.as_str()));
            let what =
                format!("job '{}': it waits for '{other}', and there is no such job above it{near}", section.name);
            reading.refuse(&section.position, what);
        }
        for what in draft.near() {
            reading.near(&section.position, what);
        }
        for what in draft.differences() {
            reading.warn(&what, &section.position, what.clone());
        }
        match draft.finished() {
            Ok(job) => {
                names.insert(job.name.clone());
                jobs.push(job);
            }
            // A missing option may be one that was refused.
            Err(_) if reading.wrong.len() > complaints || section.broken => {}
            Err(all) => all.into_iter().for_each(|what| {
                reading.refuse(&section.position, format!("job '{}': {what}", section.name));
            }),
        }
    }
    JobFile { jobs, warnings: reading.warnings }
}

impl Reading<'_> {
    fn refuse(&mut self, position: &SourceLine, what: String) {
        let complaint = Complaint { position: position.clone(), what };
        if !self.wrong.contains(&complaint) {
            self.wrong.push(complaint);
        }
    }

    /// Adds a warning, once.
    fn warn(&mut self, about: &str, position: &SourceLine, what: String) {
        if self.reported.insert(about.to_owned()) {
            self.warnings.push(Complaint { position: position.clone(), what });
        }
    }

    /// Reports something that only approximates fio.
    fn near(&mut self, position: &SourceLine, what: String) {
        match self.likeness {
            // Later jobs may repeat it; it is the same complaint.
            Likeness::Same if !self.reported.insert(what.clone()) => {}
            Likeness::Same => self.refuse(position, format!("{what}; --approximate takes it all the same")),
            Likeness::Near => self.warn(&what, position, format!("nearly: {what}")),
        }
    }

    fn apply_all(&mut self, draft: &mut Draft, lines: &[OptionLine]) {
        // fio reads it first, wherever it is in its section.
        let (bases, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.key == "kb_base");
        let lines: Vec<_> = bases.into_iter().chain(others).collect();
        // The last of an option's occurrences counts, but each has to be right.
        let last: BTreeMap<&str, u64> = lines.iter().map(|line| (line.key.as_str(), line.position.line)).collect();
        for line in lines {
            let counts = last.get(line.key.as_str()) == Some(&line.position.line);
            if let Err(what) = self.apply(draft, line, counts) {
                self.refuse(&line.position, what);
            }
        }
    }

    fn apply(&mut self, draft: &mut Draft, line: &OptionLine, counts: bool) -> Result<(), String> {
        let key = &line.key;
        let Some((name, meaning)) = options::find(key) else {
            if options::is_later(key) {
                return Err(format!("option '{key}' is one of later versions of fio than 3.33, and is not supported"));
            }
            return Err(format!("fio knows no such option as '{key}'{}", options::did_you_mean(key)));
        };
        let given = line.value.as_deref();
        match meaning {
            Meaning::Supported => {
                let value = match given {
                    None => bare(name, &draft.job.name)?,
                    Some(value) if value.starts_with([' ', '\t']) => {
                        return Err(format!(
                            "option '{key}': '{value}' begins with a blank, which fio takes for a part of it"
                        ));
                    }
                    Some(value) => value.to_owned(),
                };
                draft.set(name, &value).map_err(|why| format!("option '{key}': {why}"))
            }
            Meaning::Harmless(why) => {
                if !options::is_of_engine(name) {
                    forms::check(name, given, draft.base).map_err(|why| format!("option '{key}': {why}"))?;
                }
                let what = format!("option '{key}' cannot change the outcome here: {why}; it is ignored");
                self.warn(name, &line.position, what);
                Ok(())
            }
            Meaning::Only(values) if values.contains(&given.unwrap_or("1").trim()) => Ok(()),
            _ if !counts => Ok(()),
            Meaning::Only(values) => {
                self.near(&line.position, format!("option '{key}' is simulated as '{name}={}' only", values[0]));
                Ok(())
            }
            Meaning::Near(what) => {
                self.near(&line.position, format!("option '{key}' is not simulated: {what}"));
                Ok(())
            }
            Meaning::Unsupported => Err(format!("fio's option '{key}' is not supported, and could change the outcome")),
        }
    }
}

/// The value of a key without `=`: some options have a default value, others need one.
fn bare(name: &str, job: &str) -> Result<String, String> {
    match name {
        "exitall_on_error" | "time_based" | "stonewall" | "group_reporting" | "norandommap" | "exitall"
        | "new_group" | "bs_is_seq_rand" => Ok("1".to_owned()),
        "write_bw_log" | "write_lat_log" | "write_iops_log" if !job.is_empty() => Ok(job.to_owned()),
        _ => Err(format!("option '{name}': needs a value")),
    }
}
