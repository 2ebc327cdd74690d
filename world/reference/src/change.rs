//! Words that the models of files share: moments, endings of changes, mismatches.
//!
//! Owns: these words. Does not own: the rules about them (`file`, `stamps`).
//! Invariants: moments of one file are ordered; moments of two files are unrelated.

/// A moment in the order of a file's begins and ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Stamp(pub(crate) u64);

/// How a change ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The change happened.
    Done,
    /// The change may have happened, in part or in whole, and has stopped.
    Failed,
    /// As [`Ending::Failed`], but parts that the change started may still happen later.
    Abandoned,
}

/// A wrong content or size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// A description, with the offset and the right values.
    pub what: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.what)
    }
}
