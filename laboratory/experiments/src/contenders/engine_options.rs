//! Options that experiments with contenders share: which engines and disks, how often, and in which directory.
//!
//! Owns: these options, and reading them.
//! Does not own: the purpose of a directory (the experiments).
//! Invariants: an unusable policy, knob or directory is refused before anything is set up.

use std::path::{Path, PathBuf};

use super::EngineSetup;
use crate::experiment::{LabError, Request};
use crate::options::{List, list, number, rate, size};

/// The engines that take part.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EngineOptions {
    /// the engine's policies, by name, each a contender (default: the engine's own)
    #[arg(long, value_name = "LIST", value_parser = list(policy))]
    policy: Option<List<String>>,
    /// knobs of the engine, each as KNOB=VALUE
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    knobs: Vec<String>,
    /// page memory of the engine
    #[arg(id = "memory", long, value_name = "SIZE", default_value = "2GiB", value_parser = size(16 << 20..=64 << 30))]
    pub(crate) memory_bytes: u64,
}

/// The place of a run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PlaceOption {
    /// where files and the images of disks are made, on a disk file system (default: the temporary directory, or
    /// /var/tmp if that is in memory)
    #[arg(long, value_name = "DIR", value_parser = on_a_disk)]
    directory: Option<PathBuf>,
}

/// The runs on this machine.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// measured: how often each is run
    #[arg(long, value_name = "N", default_value = "3", value_parser = number(1..=20))]
    pub(crate) repeats: u64,
    #[command(flatten)]
    place: PlaceOption,
}

/// A writer to a slow disk, and a fast disk beside it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RaceOptions {
    /// bytes a second of the slow disk
    #[arg(long = "rate", value_name = "RATE", default_value = "25MB", value_parser = rate(1_000_000..=10_000_000_000))]
    pub(crate) rate_bytes_per_s: u64,
    /// burst: bytes a second of the fast disk
    #[arg(long = "fast-rate", value_name = "RATE", default_value = "200MB")]
    #[arg(value_parser = rate(1_000_000..=10_000_000_000))]
    pub(crate) fast_bytes_per_s: u64,
    /// how long a stream is written
    #[arg(long, value_name = "N", default_value = "45", value_parser = number(2..=600))]
    pub(crate) seconds: u64,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// Checks a name without knobs, so that a wrong name and a wrong knob have different errors.
fn policy(name: &str) -> Result<String, String> {
    let alone = EngineSetup { policy: name.to_owned(), knobs: Vec::new(), memory_bytes: 0 };
    alone.check().map(|()| alone.policy)
}

impl EngineOptions {
    /// The engines, one for each policy. In a quick run they have less memory.
    pub(crate) fn engines(&mut self, request: &Request) -> Result<Vec<EngineSetup>, LabError> {
        request.shorten("memory", &mut self.memory_bytes, 64 << 20);
        let (knobs, memory_bytes) = (&self.knobs, self.memory_bytes);
        let with = |policy| EngineSetup { policy, knobs: knobs.clone(), memory_bytes };
        let names = self.policy.clone().unwrap_or_else(|| vec![String::new()]);
        let engines: Vec<EngineSetup> = names.into_iter().map(with).collect();
        engines.iter().try_for_each(EngineSetup::check).map_err(|why| request.refused("knobs", why))?;
        Ok(engines)
    }
}

impl RunOptions {
    /// The directory on a disk. In a quick run each contender runs once.
    pub(crate) fn directory(&mut self, request: &Request) -> Result<PathBuf, LabError> {
        request.shorten("repeats", &mut self.repeats, 1);
        self.place.directory()
    }
}

impl PlaceOption {
    /// The directory on a disk.
    pub(crate) fn directory(&self) -> Result<PathBuf, LabError> {
        let own = || on_a_disk(&temporary_on_a_disk().to_string_lossy()).map_err(LabError::Failed);
        self.directory.clone().map_or_else(own, Ok)
    }
}

/// File systems in memory (`linux/magic.h`).
const TMPFS_MAGIC: u32 = 0x0102_1994;
const RAMFS_MAGIC: u32 = 0x8584_58f6;

/// The temporary directory, or `/var/tmp` if that is in memory, as it is by default since Debian 13.
pub(crate) fn temporary_on_a_disk() -> PathBuf {
    let temporary = std::env::temp_dir();
    if is_in_memory(&temporary).unwrap_or(false) { PathBuf::from("/var/tmp") } else { temporary }
}

fn is_in_memory(path: &Path) -> std::io::Result<bool> {
    let system = rustix::fs::statfs(path)?;
    Ok([TMPFS_MAGIC, RAMFS_MAGIC].contains(&(system.f_type as u32)))
}

/// An existing directory on a disk.
fn on_a_disk(path: &str) -> Result<PathBuf, String> {
    let directory = PathBuf::from(path);
    let what = std::fs::metadata(&directory).map_err(|error| format!("{path}: {error}"))?;
    if !what.is_dir() {
        return Err(format!("{path} is no directory"));
    }
    if is_in_memory(&directory).map_err(|error| format!("{path}: {error}"))? {
        return Err(format!("{path} is in memory; a directory on a disk is needed"));
    }
    Ok(directory)
}
