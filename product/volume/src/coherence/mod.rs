//! Keeping what is known here and what is on the host the same.
//!
//! Owns: noticing what others changed, giving written files the times that clients were told, looking after
//! objects that nobody uses.
//! Does not own: which changes are ours (`objects::inode`); the rules are in `docs/coherence.md`.
//! Invariants: bytes that are not written yet are never given up for what others did.

mod check;
mod settle;
mod tend;
