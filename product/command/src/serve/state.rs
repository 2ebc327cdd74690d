//! Where a server keeps what outlives it.
//!
//! Owns: the directory, and the names in it.
//! Does not own: what stands in the files (`afflux_linux::handle_key`, `afflux_linux::kept_places`, `kept_prices`,
//! `kept_verifier`).
//! Invariants: the directory is made for this user alone. A server does without it where it cannot be had.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

/// The directory.
pub(crate) struct StateDirectory(Option<PathBuf>);

impl StateDirectory {
    /// The one that is named, or this user's place for state. Makes it.
    pub(crate) fn made(named: Option<&Path>) -> Self {
        let directory = named.map(Path::to_path_buf).or_else(usual);
        if let Some(directory) = &directory {
            // What cannot be made is said by whoever finds no place.
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        }
        Self(directory)
    }

    /// The key that handles are sealed with.
    pub(crate) fn key_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("handle-key"))
    }

    /// Where objects were seen, to find them again.
    pub(super) fn places_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("places"))
    }

    /// What was learned of disks.
    pub(crate) fn prices_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("disks.json"))
    }

    /// The write verifier of a server that ended with everything written.
    pub(super) fn verifier_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("write-verifier"))
    }

    /// What `afflux govern` has learned of them, whose speeds are those of the kernel's writeback.
    pub(crate) fn speeds_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("govern-disks.json"))
    }

    /// Why nothing can be kept, if that is so.
    pub(crate) fn unwritable(&self) -> Option<String> {
        let Some(directory) = &self.0 else { return Some("no home directory is known".to_owned()) };
        let error = access(directory, Access::WRITE_OK | Access::EXEC_OK).err()?;
        Some(format!("{}: {}", directory.display(), std::io::Error::from(error)))
    }
}

fn usual() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match variable("XDG_STATE_HOME") {
        Some(state) => Some(state.join("afflux")),
        None if geteuid().is_root() => Some(Path::new("/var/lib/afflux").to_path_buf()),
        None => Some(variable("HOME")?.join(".local/state/afflux")),
    }
}
