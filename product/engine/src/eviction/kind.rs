//! The eviction policies by name.
//!
//! Owns: the list. Does not own: the policies.
//! Invariants: each engine has its own policy.

use super::Eviction;
use super::s3_window::S3Window;
use crate::old_kernels::TwoLists;
use crate::settings::did_you_mean;

/// Which pages are evicted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EvictionKind {
    /// Inactive and active lists, like the kernel's.
    TwoList,
    /// S3-FIFO with a correlation window, a separate budget for unread pages, and dirty pages out of its queues.
    #[default]
    S3Window,
}

impl EvictionKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::TwoList, Self::S3Window];

    /// The name, as for `--eviction`.
    pub fn name(self) -> &'static str {
        match self {
            Self::TwoList => "two-list",
            Self::S3Window => "s3-window",
        }
    }

    /// A description in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::TwoList => "inactive and active pages, as the kernel's two lists",
            Self::S3Window => {
                "s3-fifo that counts no burst after arrival, and spares pages read ahead and not yet used"
            }
        }
    }

    /// The policy of that name.
    ///
    /// # Errors
    /// If there is none; the error lists the names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let unknown = || {
            let names = Self::ALL.map(Self::name);
            let near = did_you_mean(name, names.into_iter());
            format!("there is no eviction policy '{name}'{near}; there are {}", names.join(" and "))
        };
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(unknown)
    }

    /// A policy for a cache of `frames` frames.
    pub(crate) fn make(self, frames: u32) -> Box<dyn Eviction> {
        match self {
            Self::TwoList => Box::new(TwoLists::new()),
            Self::S3Window => Box::new(S3Window::new(frames)),
        }
    }
}

#[cfg(test)]
mod tests;
