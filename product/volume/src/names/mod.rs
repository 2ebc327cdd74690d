//! Names: looking them up, listing them, changing them.
//!
//! Owns: the calls about entries of a directory.
//! Does not own: what an entry's object is (`handles`, `objects`), durability (`data::sync`).
//! Invariants: changes of one directory are made one at a time. An export is left by no name.

pub(crate) mod entries;
pub(crate) mod list;
mod lookup;
