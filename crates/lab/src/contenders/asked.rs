//! Options that experiments with contenders share: which engines, and in which directory.
//!
//! Owns: reading them.
//! Does not own: their names and defaults (the experiments).
//! Invariants: a policy, a knob or a directory that cannot be used is refused before anything is set up.

use std::path::{Path, PathBuf};

use super::EngineSetup;
use crate::experiment::{LabError, OptionInfo, Request};

/// File systems in memory (`linux/magic.h`).
const TMPFS_MAGIC: u32 = 0x0102_1994;
const RAMFS_MAGIC: u32 = 0x8584_58f6;

/// The engines that are asked for: a policy each.
pub(crate) fn engines(
    request: &Request,
    policy: &'static OptionInfo,
    knobs: &'static OptionInfo,
    memory_bytes: u64,
) -> Result<Vec<EngineSetup>, LabError> {
    let text = request.text(knobs);
    let knob_list: Vec<String> =
        text.split(',').map(str::trim).filter(|knob| !knob.is_empty()).map(str::to_owned).collect();
    let with = |name: &str| EngineSetup { policy: name.to_owned(), knobs: knob_list.clone(), memory_bytes };
    let refused = |option: &'static OptionInfo, why| LabError::Value {
        name: option.name,
        value: request.text(option).to_owned(),
        why,
    };
    // The knobs of no policy in particular are told apart from a policy's name.
    let names = request
        .list(policy, |name| EngineSetup { knobs: Vec::new(), ..with(name) }.check().map(|()| name.to_owned()))?;
    let engines: Vec<EngineSetup> = names.iter().map(|name| with(name)).collect();
    engines.iter().try_for_each(EngineSetup::check).map_err(|why| refused(knobs, why))?;
    Ok(engines)
}

/// A directory that is there, on a disk.
pub(crate) fn directory(request: &Request, option: &'static OptionInfo) -> Result<PathBuf, LabError> {
    let path = match request.text(option) {
        "" => std::env::temp_dir(),
        path => Path::new(path).to_owned(),
    };
    let refused = |why: String| LabError::Value { name: option.name, value: path.display().to_string(), why };
    let what = std::fs::metadata(&path).map_err(|error| refused(error.to_string()))?;
    if !what.is_dir() {
        return Err(refused("this is no directory".to_owned()));
    }
    let system = rustix::fs::statfs(&path).map_err(|error| refused(error.to_string()))?;
    if [TMPFS_MAGIC, RAMFS_MAGIC].contains(&(system.f_type as u32)) {
        return Err(refused("this is in memory; a directory on a disk is needed".to_owned()));
    }
    Ok(path)
}
