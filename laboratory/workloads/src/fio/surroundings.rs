//! The surroundings of a job file: the files that it includes, the environment.
//!
//! Owns: the questions that the parser asks.
//! Does not own: the answers, which the caller of the parser has.

/// A file that another one includes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Included {
    /// The name used in reports.
    pub name: String,
    /// The file's text.
    pub text: String,
}

/// The parser's view of its surroundings.
pub trait Surroundings {
    /// The file that `including` names in an `include` line.
    ///
    /// # Errors
    /// The reason that there is no such text.
    fn include(&mut self, path: &str, including: &str) -> Result<Included, String>;

    /// The value of an environment variable.
    fn variable(&mut self, name: &str) -> Option<String>;

    /// The size of jobs that name none: `--size` of fio's command line. [`check_size`](super::check_size) takes it.
    fn size(&self) -> Option<&str> {
        None
    }
}

/// The surroundings of a job file that stands alone: no variable has a value, and includes fail for this reason.
pub struct Alone(pub &'static str);

impl Surroundings for Alone {
    fn include(&mut self, _: &str, _: &str) -> Result<Included, String> {
        Err(self.0.to_owned())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        None
    }
}
