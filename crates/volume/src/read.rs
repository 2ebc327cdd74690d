//! What a read hands to a front end: page frames, to send without another copy.
//!
//! Owns: the name under which front ends know them.
//! Does not own: the frames (the engine).
//! Invariants: none beyond the engine's.

pub use engine::PinnedPages as SharedPages;
