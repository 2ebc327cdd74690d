//! Options that experiments with contenders share: which engines, and in which directory.
//!
//! Owns: the engine's options, and reading them and a directory.
//! Does not own: the purpose of a directory (the experiments).
//! Invariants: an unusable policy, knob or directory is refused before anything is set up.

use std::path::{Path, PathBuf};

use super::EngineSetup;
use crate::experiment::{LabError, Request};
use crate::options::options;

options! {
    /// the engine's policies, by name, each a contender (default: the engine's own)
    pub(crate) POLICY: String = text("policy", "LIST", "");
    /// knobs of the engine, each as KNOB=VALUE
    pub(crate) KNOBS: String = text("knobs", "LIST", "");
    /// page memory of the engine
    pub(crate) MEMORY: u64 = size("memory", "SIZE", "2GiB", 16 << 20..=64 << 30);
    /// where files and the images of disks are made, on a disk file system (default: the temporary directory, or
    /// /var/tmp if that is in memory)
    pub(crate) DIRECTORY: String = text("directory", "DIR", "");
}

/// File systems in memory (`linux/magic.h`).
const TMPFS_MAGIC: u32 = 0x0102_1994;
const RAMFS_MAGIC: u32 = 0x8584_58f6;

/// The engines of a request, one for each policy, each with `memory_bytes`.
pub(crate) fn engines(request: &Request, memory_bytes: u64) -> Result<Vec<EngineSetup>, LabError> {
    let text = request.text(&KNOBS.info);
    let knob_list: Vec<String> =
        text.split(',').map(str::trim).filter(|knob| !knob.is_empty()).map(str::to_owned).collect();
    let with = |name: &str| EngineSetup { policy: name.to_owned(), knobs: knob_list.clone(), memory_bytes };
    // Checks the names without the knobs first, so that a wrong name and a wrong knob have different errors.
    let names = request
        .list(&POLICY.info, |name| EngineSetup { knobs: Vec::new(), ..with(name) }.check().map(|()| name.to_owned()))?;
    let engines: Vec<EngineSetup> = names.iter().map(|name| with(name)).collect();
    engines.iter().try_for_each(EngineSetup::check).map_err(|why| KNOBS.refused(request, why))?;
    Ok(engines)
}

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
pub(crate) fn directory(request: &Request) -> Result<PathBuf, LabError> {
    let path = match request.text(&DIRECTORY.info) {
        "" => temporary_on_a_disk(),
        path => Path::new(path).to_owned(),
    };
    let refused = |why: String| LabError::Value { name: DIRECTORY.info.name, value: path.display().to_string(), why };
    let what = std::fs::metadata(&path).map_err(|error| refused(error.to_string()))?;
    if !what.is_dir() {
        return Err(refused("this is no directory".to_owned()));
    }
    if is_in_memory(&path).map_err(|error| refused(error.to_string()))? {
        return Err(refused("this is in memory; a directory on a disk is needed".to_owned()));
    }
    Ok(path)
}
