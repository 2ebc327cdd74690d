//! Options that experiments with contenders share: which engines, and in which directory.
//!
//! Owns: the engine's options, and reading them and a directory.
//! Does not own: the purpose of a directory (the experiments).
//! Invariants: an unusable policy, knob or directory is refused before anything is set up.

use std::path::{Path, PathBuf};

use super::EngineSetup;
use crate::experiment::{LabError, Request};
use crate::options::{List, list, size};

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
