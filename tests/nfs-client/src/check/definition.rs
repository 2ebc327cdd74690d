//! The definition of a check.
//!
//! Owns: a check's name and rule, its run in a directory of its own.
//! Does not own: the checks.

use super::failure::Failure;
use super::target::Target;
use super::work_directory::WorkDirectory;

/// One check.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The rule that a client relies on.
    pub rule: &'static str,
    pub(super) run: fn(&mut WorkDirectory) -> Result<(), Failure>,
}

impl Check {
    /// Checks the server, in a directory named after the check, which is removed afterwards.
    ///
    /// # Errors
    /// When the rule does not hold, or the server cannot be used.
    pub fn run(&self, target: &Target) -> Result<(), Failure> {
        let mut place = WorkDirectory::new(target, self.name)?;
        let result = (self.run)(&mut place);
        place.remove();
        result
    }
}
