//! Files of a real disk that are written side by side: through the kernel's methods, and through the engine in this
//! process.
//!
//! Owns: a writer's view of both.
//! Does not own: the disks (`hardware`), the offsets and times of writes (the experiments).
//! Invariants: a writer does the same through every contender, and is timed by the same clock.

pub(crate) mod engine_options;
mod kernel;
pub(crate) mod latencies;
mod ours;
pub(crate) mod ran;
pub(crate) mod stage;
pub(crate) mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::experiment::Watch;
pub(crate) use kernel::{Kernel, KernelMethod};
pub(crate) use ours::{EngineSetup, Ours};
pub(crate) use stage::Stage;

/// The runs of all races in their order, each with its repeat from 1. In each repeat the contenders of a race run one
/// after the other, every other time in the reverse order, so that a drift of the machine affects all of them alike.
pub(crate) fn ordered_runs<R: Copy, C>(
    repeats: u64,
    races: &[R],
    contenders: impl Fn(R, u64) -> Vec<C>,
) -> Vec<(u64, R, C)> {
    let mut ordered_runs = Vec::new();
    for repeat in 1..=repeats {
        for race in races {
            let mut own = contenders(*race, repeat);
            if repeat % 2 == 0 {
                own.reverse();
            }
            ordered_runs.extend(own.into_iter().map(|contender| (repeat, *race, contender)));
        }
    }
    ordered_runs
}

/// Tells the reader what is left out, and how long the rest takes.
pub(crate) fn announce(watch: &mut dyn Watch, left_out: &[String], seconds: u64, repeats: u64) {
    left_out.iter().for_each(|what| watch.remark(what));
    let time = afflux_report::units::time(Duration::from_secs(seconds));
    watch.remark(&format!("This takes about {time} on a machine without other work; repeats: {repeats}."));
}

/// A file to write. Errors are texts: only the reader of the report uses them.
pub(crate) trait Sink: Send + Sync {
    /// Writes all of `block`; returns when the writer may go on.
    fn write(&self, offset: u64, block: &[u8]) -> Result<(), String>;
    /// Returns when all written data are durable.
    fn sync(&self) -> Result<(), String>;
    /// Makes the file empty; its dirty pages are not written.
    fn cut(&self) -> Result<(), String>;
}

/// A method of writing files.
pub(crate) trait Contender: Sync {
    /// A new file in a directory, which is given by its index in the contender's list.
    fn create(&self, directory: usize, name: &str) -> Result<Arc<dyn Sink>, String>;
    /// Dirty bytes of all files on the directory's disk, as exactly as the host reports them.
    fn dirty_bytes(&self, directory: usize) -> u64;
    /// The waits of calls, by the directory's index; `None` for a kernel, which does not report them.
    fn delays(&self) -> Option<Value> {
        None
    }
}

/// An error message: the failed step, which is a name or a path, and the error.
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
