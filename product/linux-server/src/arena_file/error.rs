//! Why a file cannot hold an engine's memory.
//!
//! Owns: the reasons, their words, which of them are the file's own.
//! Does not own: the checks.
//! Invariants: an error of the file itself also holds at the next try. Another version's memory is never dropped.

use std::io;

use afflux_frames::{ArenaError, HeaderError};
use rustix::io::Errno;

/// Why a file cannot hold the memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaFileError {
    /// The host refuses a call.
    #[error("{call}: {source}")]
    Host {
        /// Name of the system call that failed.
        call: &'static str,
        /// The host's answer.
        source: io::Error,
    },
    /// The file system has too little room.
    #[error("there is no room for its {bytes} bytes")]
    NoSpace {
        /// The bytes of the memory.
        bytes: u64,
    },
    /// The file is not of a kind that can hold memory.
    #[error("{0}")]
    Unfit(&'static str),
    /// It belongs to another user.
    #[error("it belongs to user {owner}, and this server runs as user {user}")]
    Owner {
        /// The file's owner.
        owner: u32,
        /// This process's user.
        user: u32,
    },
    /// Others may open it.
    #[error("its mode is {mode:o}, so that others may change the cache: chmod 600")]
    Mode {
        /// The mode bits.
        mode: u32,
    },
    /// Another server uses it.
    #[error("process {process} uses it")]
    InUse {
        /// Process number of the server that has the file.
        process: u32,
    },
    /// Its contents are no arena for this program.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// It was made for a header's sizes, and has another length.
    #[error("it has {found} bytes, and its header says {wanted}")]
    Length {
        /// The file's length.
        found: u64,
        /// The length that belongs to the header.
        wanted: u64,
    },
    /// It cannot be mapped.
    #[error(transparent)]
    Memory(#[from] ArenaError),
}

impl ArenaFileError {
    /// Whether nobody can use the file, now or later.
    pub(super) fn is_of_file(&self) -> bool {
        match self {
            Self::Header(_) => !self.is_of_another_version(),
            Self::Unfit(_) | Self::Owner { .. } | Self::Mode { .. } | Self::Length { .. } => true,
            _ => false,
        }
    }

    /// Whether the file has the memory of another version. That version, or a later one than both, can write its data
    /// home.
    pub fn is_of_another_version(&self) -> bool {
        matches!(self, Self::Header(HeaderError::Form { .. }))
    }
}

/// The host's refusal of a call.
pub(super) fn host(call: &'static str) -> impl Fn(Errno) -> ArenaFileError {
    move |errno| ArenaFileError::Host { call, source: errno.into() }
}
