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

/// The checks of a file: each a function, and its rule.
macro_rules! checks {
    ($($run:ident: $rule:literal;)+) => {
        pub(super) const CHECKS: &[Check] = &[$(Check { name: stringify!($run), rule: $rule, run: $run }),+];
    };
}
pub(super) use checks;

impl Check {
    /// Checks the server, in a directory named after the check, which is removed afterwards.
    pub fn run(&self, target: &Target) -> Result<(), Failure> {
        let mut place = WorkDirectory::new(target, self.name)?;
        let result = (self.run)(&mut place);
        place.remove();
        result
    }
}
