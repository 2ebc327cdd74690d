//! The host's part in the race.
//!
//! Owns: the exported directory and its initial contents.
//! Does not own: the servers.
//! Invariants: files that servers only read are created before any server starts.

use std::fs;
use std::path::{Path, PathBuf};

use afflux_scratch::Scratch;

use super::scale::Scale;
use crate::failure::{Failure, host};

/// The directory of many files.
pub(super) const MANY: &str = "many";

pub(super) fn many_name(at: u64) -> String {
    format!("file-{at:06}")
}

/// A new directory at this place. No other user has made names in it.
pub(super) fn scratch(place: &Path) -> Result<Scratch, Failure> {
    fs::create_dir_all(place).map_err(host(place.display().to_string()))?;
    Scratch::new(place, "race").map_err(host("making a directory"))
}

/// Creates the directory to be served.
pub(super) fn prepare(directory: &Path, scale: &Scale) -> Result<PathBuf, Failure> {
    let export = directory.join("exp");
    let many = export.join(MANY);
    fs::create_dir_all(&many).map_err(host(many.display().to_string()))?;
    for at in 0..scale.many_files {
        fs::write(many.join(many_name(at)), "").map_err(host("making files"))?;
    }
    // Writes out the files now, so that their writeback does not fall into the race.
    rustix::fs::sync();
    Ok(export)
}
