//! The door of the old kernels: mechanisms that only laws of Linux 3.6 to 6.1 need, and no policy of Afflux.
//!
//! Owns: all of that, each part in a file of its own.
//! Does not own: the laws (`linux-policies`); paths that a policy of Afflux takes.
//! Invariants: this folder can be deleted with its callers: the compiler names each.

mod readahead;
mod two_lists;

pub(crate) use readahead::Window;
pub(crate) use two_lists::TwoLists;
