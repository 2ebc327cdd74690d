//! Directories that a process makes for itself, and a shell that takes down what the process leaves behind.
//!
//! Owns: making such a directory, removing it, the shell.
//! Does not own: the files in a directory.
//! Invariants: each directory is new, of mode 0700 and owned by this process's user. A name that exists already is never
//! used. Nothing outside the directory is removed, and nothing behind a mount in it.
#![forbid(unsafe_code)]

mod directory;
mod guard;

pub use directory::Scratch;
pub use guard::{Guard, script};
