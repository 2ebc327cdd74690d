//! The units that pass between a disk and the model of its device.
//!
//! Owns: positions on the medium, kinds of work, events of requests, figures of a model.
//! Does not own: the models, the choice of one (`timing`).

/// A contiguous part of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    /// First byte.
    pub(crate) position: u64,
    /// Length in bytes, at least 1.
    pub(crate) len: u64,
}

/// The work that a request needs from the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MediumWork {
    /// Reads bytes from the medium.
    Read,
    /// Writes bytes to the medium.
    Write,
    /// Writes the contents of the volatile cache to the medium.
    Flush,
    /// The same for a file that got blocks or size since the last flush, which the journal must record.
    Commit,
    /// No work on the medium: a change of names or sizes in the host's memory.
    Memory,
}

/// An event of a request, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Its transfer begins.
    Started(u64),
    /// It is done.
    Ended(u64),
}

/// A model's figures so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Head movements, or merges of flash blocks.
    pub(crate) seeks: u64,
    /// Requests that were merged into another.
    pub(crate) merges: u64,
    /// Commands that went to the device, after merging.
    pub(crate) commands: u64,
    /// Their bytes.
    pub(crate) command_bytes: u64,
    /// Pairs of consecutive write commands that were of different files.
    pub(crate) file_switches: u64,
}
