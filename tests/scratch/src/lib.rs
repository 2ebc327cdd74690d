//! Directories that a process makes for itself, a shell that takes down what the process leaves behind, the list of
//! skipped tests, waits for conditions without an event, tables of an enum's variants, and the
//! time that a race's machine lost.
//!
//! Owns: making such a directory, removing it, the shell, the list, the waits, the tables' check, stolen time.
//! Does not own: the files in a directory.
//! Invariants: each directory is new, of mode 0700 and owned by this process's user. A name that exists already is
//! never used. Nothing outside the directory is removed, and nothing behind a mount in it.
#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

mod directory;
mod guard;
mod skipped;
mod stolen;
mod test_directory;
mod variants;
mod waiting;

pub use directory::Scratch;
pub use guard::{Guard, script};
pub use skipped::{SKIPPED, record_skipped};
pub use stolen::{Processors, Stolen};
pub use test_directory::TestDirectory;
pub use variants::assert_each_variant;
pub use waiting::{eventually, within};
