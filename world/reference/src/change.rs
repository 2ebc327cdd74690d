//! What models of files say about changes: when, how they ended, what is wrong with what was seen.
//!
//! Owns: these words, nothing more.
//! Does not own: what follows from them (`file`, `stamps`).
//! Invariants: moments of one file are ordered; moments of two files have nothing to do with each other.

/// A moment in the order of a file's begins and ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Stamp(pub(crate) u64);

/// How a change ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It happened.
    Done,
    /// It may have happened, in part or in whole, and does not go on.
    Failed,
    /// As failed, and what it started may still happen later.
    Abandoned,
}

/// What is wrong with bytes or a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// In words, with the place and what would have been right.
    pub what: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.what)
    }
}
