//! A file's turn to be written: which file has it, and why. The policy or the flusher chooses a turn, the device's
//! lists find its file, and the trace shows it.
//!
//! Owns: the kinds of turns, their reasons in words.
//! Does not own: the choice (policies, the flusher), the lists (the engine).
//! Invariants: plain values.

use crate::platform::Nanos;

/// A file's turn to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushSlice {
    /// A sync waits for the file. The flusher's own choice, never a policy's.
    Sync,
    /// The file's last write failed, or the file was busy, and the pause is over. The flusher's own choice.
    Retry,
    /// The next file in the order of turns: too much is dirty, or a task needs the room.
    InOrder,
    /// A file with the most dirty pages: no other has twice as many. Equals take turns.
    Largest {
        /// Whether to take hot files, too ([`IdleWriteRule::hot`](super::IdleWriteRule::hot)).
        hot: bool,
    },
    /// The first file in the order of turns that has been dirty since `before` or longer.
    Old {
        /// The latest instant that counts.
        before: Nanos,
    },
    /// The next file of the round. A new round has the files that had their turn and have more, of any age, and of the
    /// others those that have been dirty since `before` or longer, up to the first younger one.
    Queued {
        /// The latest instant that counts.
        before: Nanos,
    },
    /// As [`FlushSlice::Old`], but the file that has been dirty longest. A file with more to write has its next turn
    /// after the files that were old by then. It stays old until a pass has written all its pages that were dirty when
    /// the pass began.
    Oldest {
        /// The latest instant that counts.
        before: Nanos,
        /// Whether to take hot files, too.
        hot: bool,
    },
    /// A file left alone for long enough: one request, while the device would idle. Files due for a look are looked at
    /// first. Only for policies that set [`Flight::idle`](super::Flight::idle).
    Idle {
        /// The present instant.
        now: Nanos,
    },
}

impl FlushSlice {
    /// The reason in a word.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Retry => "retry",
            Self::InOrder | Self::Largest { .. } => "background",
            Self::Old { .. } | Self::Oldest { .. } | Self::Queued { .. } => "expired",
            Self::Idle { .. } => "idle",
        }
    }

    /// Whether the file is written in passes of its own, independent of the pages that a sync wrote meanwhile.
    pub fn is_by_passes(self) -> bool {
        matches!(self, Self::Largest { .. } | Self::Oldest { .. } | Self::Idle { .. })
    }
}
