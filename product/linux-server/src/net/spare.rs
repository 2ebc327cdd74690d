//! A descriptor of an acceptor's own, for the time in which the process has no other.
//!
//! Owns: the descriptor; its loan to one accept.
//! Does not own: the connection that gets it, and the one that goes for it (`serve`).
//! Invariants: the descriptor is given up for one call alone, and taken again as soon as any is free.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

/// The descriptor, if the acceptor has it.
pub(super) struct SpareDescriptor(Option<OwnedFd>);

impl SpareDescriptor {
    pub(super) fn new() -> Self {
        let mut spare = Self(None);
        spare.take_again();
        spare
    }

    /// Takes the descriptor again, if one is free.
    pub(super) fn take_again(&mut self) {
        if self.0.is_none() {
            self.0 = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok();
        }
    }

    /// Makes a call with the descriptor free. None without it.
    pub(super) fn lend<T>(&mut self, call: impl FnOnce() -> Result<T, Errno>) -> Option<Result<T, Errno>> {
        drop(self.0.take()?);
        let result = call();
        if result.is_err() {
            self.take_again();
        }
        Some(result)
    }
}
