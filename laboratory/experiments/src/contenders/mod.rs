//! Files of a real disk that are written to side by side: through the kernel in its ways, and through the
//! engine in this process.
//!
//! Owns: what a writer sees of either.
//! Does not own: the disks (`hardware`), what is written and when (the experiments).
//! Invariants: a writer does the same whoever it writes through, and is timed by the same clock.

pub(crate) mod asked;
mod kernel;
pub(crate) mod latencies;
mod ours;
pub(crate) mod writer;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use kernel::{Kernel, KernelWay};
pub(crate) use ours::{EngineSetup, Ours};

/// A file that is written to. Errors are texts: nobody but the reader does anything about them.
pub(crate) trait Sink: Send + Sync {
    /// Writes all of it; returns when a writer may go on.
    fn write(&self, offset: u64, block: &[u8]) -> Result<(), String>;
    /// Returns when all that was written is durable.
    fn sync(&self) -> Result<(), String>;
    /// Makes it empty; what is dirty of it is not written.
    fn cut(&self) -> Result<(), String>;
}

/// Who files are written through.
pub(crate) trait Contender {
    /// A new file in a directory, by the directory's place in the list that it was made with.
    fn create(&self, directory: usize, name: &str) -> Result<Arc<dyn Sink>, String>;
    /// What is dirty of all files on that directory's disk, as well as can be told.
    fn dirty_bytes(&self, directory: usize) -> u64;
    /// What calls waited for, by the directory's place in that list; a kernel does not say.
    fn delays(&self) -> Option<Value> {
        None
    }
}

/// The error of a step with a name or a path.
fn said(what: impl std::fmt::Display, error: impl std::fmt::Display) -> String {
    format!("{what}: {error}")
}

/// A file without content.
fn create_file(directory: &Path, name: &str, flags: i32) -> Result<std::fs::File, String> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = directory.join(name);
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).custom_flags(flags);
    options.open(&path).map_err(|error| said(path.display(), error))
}

#[cfg(test)]
mod tests;
