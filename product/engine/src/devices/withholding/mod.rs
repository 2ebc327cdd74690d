//! Ranges of files whose dirty pages stay off the device for now.
//!
//! A range is withheld until its holder lets go, or ordered until other bytes are durable. A file without such ranges
//! meets one branch: `FileInner::tag_dirty` asks whether the page is in one.
//!
//! Owns: the ranges of a file (`ranges`), the tags of their pages (`tags`).
//! Does not own: when a range is let go, and the room for withheld pages (the engine).
//! Invariants: those of its parts.

pub(crate) mod ranges;
mod spans;
mod tags;
