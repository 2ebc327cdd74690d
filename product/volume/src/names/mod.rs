//! Names: looking them up, listing them, changing them.
//!
//! Owns: the calls about entries of a directory.
//! Does not own: the objects of entries (`handles`, `objects`), durability (`data::sync`).
//! Invariants: changes of one directory are made one at a time. No name leads out of an export.

pub(crate) mod entries;
pub(crate) mod list;
mod lookup;
pub(crate) mod repeated;
mod unnamed;
