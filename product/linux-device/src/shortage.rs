//! A process, or a host, that has no descriptor left.
//!
//! Owns: the pools whose descriptors can be closed.
//! Does not own: the descriptors of the pools (`device::file`), the bounds that keep a shortage from coming, the
//! reserves of those that must go on in a shortage (`descriptor_reserve`).
//! Invariants: a call that finds no descriptor tries again once those that can be opened anew are closed.

use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use rustix::io::Errno;

/// Descriptors that can be closed, and opened anew when they are needed.
pub(crate) trait SparePool: Send + Sync {
    /// Closes those that no request uses.
    fn close_idle(&self);
}

static POOLS: Mutex<Vec<Weak<dyn SparePool>>> = Mutex::new(Vec::new());

fn lock_pools() -> MutexGuard<'static, Vec<Weak<dyn SparePool>>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shortage closes the descriptors of this pool.
pub(crate) fn add_pool(pool: Weak<dyn SparePool>) {
    let mut pools = lock_pools();
    pools.retain(|pool| pool.strong_count() > 0);
    pools.push(pool);
}

/// Whether a call has found no descriptor.
pub fn is_short<T>(result: &Result<T, Errno>) -> bool {
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
    let pools: Vec<_> = lock_pools().iter().filter_map(Weak::upgrade).collect();
    pools.iter().for_each(|pool| pool.close_idle());
}

#[cfg(test)]
mod tests;
