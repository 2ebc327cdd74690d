//! The eviction policy of an engine, by name.
//!
//! Owns: the default. Does not own: the policies; the names of all.
//! Invariants: each engine has its own policy.

use std::fmt;

use super::Eviction;
use super::s3_window::S3Window;

/// Which pages are evicted.
#[derive(Clone, Copy)]
pub struct EvictionKind {
    /// Name of the policy, as the knob takes it.
    pub name: &'static str,
    /// A description in a line.
    pub about: &'static str,
    /// Makes a policy for a cache of so many frames.
    pub make: fn(u32) -> Box<dyn Eviction>,
}

impl EvictionKind {
    /// S3-FIFO with a correlation window, a separate budget for unread pages, and dirty pages out of its queues.
    pub const S3_WINDOW: Self = Self {
        name: "s3-window",
        about: "s3-fifo that counts no burst after arrival, and spares pages read ahead and not yet used",
        make: |frames| Box::new(S3Window::new(frames)),
    };
}

impl Default for EvictionKind {
    fn default() -> Self {
        Self::S3_WINDOW
    }
}

impl PartialEq for EvictionKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for EvictionKind {}

impl fmt::Debug for EvictionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
