//! Descriptors that one user of a process keeps for a shortage.
//!
//! Owns: the numbers; lending them to calls; taking the numbers of descriptors that are closed.
//! Does not own: the pools that a shortage closes (`shortage`); the user's choice of what to close for a number.
//! Invariants: a bounded count of numbers is lent, and one more is never lent. A number that comes back is free at no
//! moment: the kernel puts a copy of that one over the closing descriptor. So no other thread can take it, and the
//! reserve of a user who closes something is never empty for long. A lent number is free until the call takes it; if
//! another thread is faster, the call gets the next one.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{DupFlags, Errno, dup3};

use crate::shortage::{is_short, open_or_close_spare};

/// The reserve of one user.
#[derive(Debug)]
pub struct DescriptorReserve {
    /// Most numbers that are lent.
    lent_max: usize,
    /// The numbers, and the one that is never lent, which is first. Each is a descriptor of the root directory.
    kept: Mutex<Vec<OwnedFd>>,
}

impl DescriptorReserve {
    /// A reserve that lends at most `lent_max` numbers. It is empty until [`Self::fill`].
    pub const fn new(lent_max: usize) -> Self {
        Self { lent_max, kept: Mutex::new(Vec::new()) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the numbers that it lacks, as far as the process has free ones.
    pub fn fill(&self) {
        let mut kept = self.lock();
        while kept.len() <= self.lent_max {
            let Ok(one) = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { return };
            kept.push(one);
        }
    }

    /// Makes a call that opens something. If there is no descriptor for it, closes all that can be opened anew; then
    /// lends numbers. May block.
    ///
    /// # Errors
    /// Those of the call.
    pub fn open<T>(&self, mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        let opened = open_or_close_spare(&mut call);
        if is_short(&opened) { self.lend(call) } else { opened }
    }

    /// Makes a call that opens something with a number of the reserve. Each number that another thread takes first
    /// costs the reserve this number.
    ///
    /// # Errors
    /// Those of the call. `MFILE` if the reserve has no number to lend.
    pub fn lend<T>(&self, mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        let mut opened = Err(Errno::MFILE);
        for _ in 0..self.lent_max {
            // Nobody waits for the lock during the call, which may be long.
            let Some(lent) = self.take() else { break };
            drop(lent);
            opened = call();
            if !is_short(&opened) {
                break;
            }
        }
        self.fill();
        opened
    }

    /// Takes a number out of the reserve; the last one stays.
    fn take(&self) -> Option<OwnedFd> {
        let mut kept = self.lock();
        if kept.len() > 1 { kept.pop() } else { None }
    }

    /// Closes a descriptor. If the reserve lacks a number, it keeps this one.
    pub fn close(&self, mut fd: OwnedFd) {
        let mut kept = self.lock();
        if kept.len() <= self.lent_max
            && let Some(first) = kept.first()
            // A number beyond a limit that was lowered meanwhile cannot be kept.
            && dup3(first, &mut fd, DupFlags::CLOEXEC).is_ok()
        {
            kept.push(fd);
            return;
        }
        drop(kept);
        drop(fd);
    }
}

/// A descriptor whose end gives its number to a reserve that lacks one.
#[derive(Debug)]
pub struct Returning<T: Into<OwnedFd>> {
    /// Only the drop takes it.
    descriptor: Option<T>,
    reserve: Arc<DescriptorReserve>,
}

impl<T: Into<OwnedFd>> Returning<T> {
    /// The owner of `descriptor`, until its end.
    pub fn new(descriptor: T, reserve: &Arc<DescriptorReserve>) -> Self {
        Self { descriptor: Some(descriptor), reserve: Arc::clone(reserve) }
    }
}

impl<T: Into<OwnedFd>> Deref for Returning<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let Some(descriptor) = &self.descriptor else { unreachable!("only the drop takes the descriptor") };
        descriptor
    }
}

impl<T: Into<OwnedFd>> Drop for Returning<T> {
    fn drop(&mut self) {
        if let Some(descriptor) = self.descriptor.take() {
            self.reserve.close(descriptor.into());
        }
    }
}

#[cfg(test)]
mod tests;
