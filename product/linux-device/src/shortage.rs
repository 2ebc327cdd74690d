//! A process, or a host, that has no free descriptor.
//!
//! Owns: the pools whose descriptors can be closed, some descriptors that are reserved for calls which give others up.
//! Does not own: the descriptors of the pools (`device::file`), the bounds that prevent a shortage.
//! Invariants: a call that finds no descriptor tries again once those that can be opened anew are closed. A call that
//! closes what it opens finds one even then, so giving descriptors up takes none that the process lacks.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

/// Descriptors that can be closed, and opened anew when they are needed.
pub(crate) trait SparePool: Send + Sync {
    /// Closes those that no request uses.
    fn close_idle(&self);
}

static POOLS: Mutex<Vec<Weak<dyn SparePool>>> = Mutex::new(Vec::new());
static RESERVE: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
/// Descriptors that are reserved.
const RESERVE_COUNT: usize = 8;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shortage closes the descriptors of this pool.
pub(crate) fn add_pool(pool: Weak<dyn SparePool>) {
    let mut pools = lock(&POOLS);
    pools.retain(|pool| pool.strong_count() > 0);
    pools.push(pool);
}

fn is_short<T>(result: &Result<T, Errno>) -> bool {
    matches!(result, Err(Errno::MFILE | Errno::NFILE))
}

/// Opens something. If there is no descriptor for it, closes all that can be opened anew, and tries again. May block.
///
/// # Errors
/// Those of `open`.
pub fn open_or_close_spare<T>(mut open: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let opened = open();
    if !is_short(&opened) {
        return opened;
    }
    close_spare();
    open()
}

/// Closes all descriptors that can be opened anew. May block.
pub fn close_spare() {
    let pools: Vec<_> = lock(&POOLS).iter().filter_map(Weak::upgrade).collect();
    pools.iter().for_each(|pool| pool.close_idle());
}

/// Reserves descriptors for [`open_with_reserve`], as far as some are missing. To be called before descriptors are
/// short.
pub fn keep_descriptors() {
    keep(&mut lock(&RESERVE));
}

fn keep(reserve: &mut Vec<OwnedFd>) {
    while reserve.len() < RESERVE_COUNT {
        // Without one a shortage is as for other calls.
        let Ok(one) = open("/proc/self", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { return };
        reserve.push(one);
    }
}

/// As [`open_or_close_spare`], for a call that closes what it opens, or that ends soon: as a last resort it takes a
/// descriptor that is reserved. May block.
///
/// # Errors
/// Those of `open`.
pub fn open_with_reserve<T>(mut open: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    /// Other threads may take the descriptor in between.
    const TRIES: usize = 8;
    let mut opened = open_or_close_spare(&mut open);
    let mut tries = 0;
    while is_short(&opened) && tries < TRIES {
        let mut reserve = lock(&RESERVE);
        keep(&mut reserve);
        if reserve.pop().is_none() {
            break;
        }
        opened = open();
        keep(&mut reserve);
        tries += 1;
    }
    opened
}

#[cfg(test)]
mod tests;
