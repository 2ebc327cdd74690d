//! Keeping the volume's state and the host's in agreement.
//!
//! Owns: noticing others' changes, giving written files the times that clients were told, looking after unused objects.
//! Does not own: which changes are ours (`objects::inode`); the rules are in `docs/use/coherence.md`.
//! Invariants: unwritten bytes are never given up for others' changes.

mod check;
mod settle;
mod tell;
mod upkeep;
