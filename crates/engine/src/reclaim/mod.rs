//! Reclaim: clean pages give up their frames.
//!
//! Owns: which clean page goes next, and taking a frame when none is free.
//! Does not own: dirty pages: they are never evicted, only written (`writeback`).
//! Invariants: called with no file's lock held. A page that cannot go when the hand meets it is
//! unlinked, and linked again when it becomes clean, so that no scan meets it twice for nothing.

pub(crate) mod evict;
pub(crate) mod lru;
