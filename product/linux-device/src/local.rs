//! Each thread's counters, found without a lock.
//!
//! Owns: the blocks of counters, one for each platform and each thread that used it. Blocks of ended threads go to new
//! threads; blocks of ended platforms are freed.
//! Does not own: the counters' meaning.
//! Invariants: one thread at a time uses a block, and a block lives as long as its platform's counters. Finding the
//! block of the platform used last costs one comparison. A thread can get a block at any moment of its life, also at
//! its very end.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use afflux_engine::counters::{Counters, Local};

/// A thread's block for one platform. It lives as long as the platform's counters. Then its thread, or the next search
/// for an idle block, frees it.
struct Node {
    platform: u64,
    local: Local,
    next: Cell<Option<&'static Node>>,
    /// The pointer from its creation, with which it is freed.
    made: Cell<*mut Node>,
}

impl Node {
    fn new(platform: u64, counters: &Counters) -> &'static Self {
        let made = Cell::new(std::ptr::null_mut());
        let raw = Box::into_raw(Box::new(Self { platform, local: Local::new(counters), next: Cell::new(None), made }));
        // SAFETY: just made, and given back by `drop_forgotten` alone.
        let node = unsafe { &*raw };
        node.made.set(raw);
        node
    }
}

/// A block that no thread uses.
struct Idle(&'static Node);

// SAFETY: the last thread has given up every reference to the block, and the next thread takes it under a lock. So it
// has one user at a time, and each user sees the counts of the one before.
unsafe impl Send for Idle {}

static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

thread_local! {
    /// The block used last.
    static NEWEST: Cell<Option<&'static Node>> = const { Cell::new(None) };
    /// The head of the list of this thread's blocks.
    static ALL: Cell<Option<&'static Node>> = const { Cell::new(None) };
    static GIVE_BACK: GiveBack = const { GiveBack };
}

/// Gives this thread's blocks back at its end.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        NEWEST.set(None);
        let mut at = ALL.take();
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(node) = at {
            at = node.next.take();
            idle.push(Idle(node));
        }
        drop_forgotten(&mut idle);
    }
}

/// This thread's block for the platform with this number and these counters.
#[inline]
pub(crate) fn of(platform: u64, counters: &Counters) -> &Local {
    match NEWEST.get() {
        Some(node) if node.platform == platform => &node.local,
        _ => find(platform, counters),
    }
}

#[cold]
fn find(platform: u64, counters: &Counters) -> &Local {
    let mut at = ALL.get();
    while let Some(node) = at.filter(|node| node.platform != platform) {
        at = node.next.get();
    }
    let node = at.unwrap_or_else(|| {
        release_forgotten();
        let node = take_idle(platform).unwrap_or_else(|| Node::new(platform, counters));
        node.next.set(ALL.get());
        ALL.set(Some(node));
        // At the very end of a thread the block is not given back any more.
        let _ = GIVE_BACK.try_with(|_| ());
        node
    });
    NEWEST.set(Some(node));
    &node.local
}

fn take_idle(platform: u64) -> Option<&'static Node> {
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    drop_forgotten(&mut idle);
    let at = idle.iter().position(|idle| idle.0.platform == platform)?;
    Some(idle.swap_remove(at).0)
}

/// Removes the blocks of ended platforms from this thread's list: a thread may outlive very many platforms.
fn release_forgotten() {
    NEWEST.set(None);
    let mut at = ALL.take();
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(node) = at {
        at = node.next.take();
        if node.local.is_forgotten() {
            idle.push(Idle(node));
        } else {
            node.next.set(ALL.replace(Some(node)));
        }
    }
}

fn drop_forgotten(idle: &mut Vec<Idle>) {
    for at in (0..idle.len()).rev() {
        if idle[at].0.local.is_forgotten() {
            let Idle(node) = idle.swap_remove(at);
            // SAFETY: the block was made from a box. An idle block is in no thread's list, so no other block refers to
            // it. `of` lends a block only while its counters are borrowed, and those are gone.
            drop(unsafe { Box::from_raw(node.made.get()) });
        }
    }
}

#[cfg(test)]
mod tests;
