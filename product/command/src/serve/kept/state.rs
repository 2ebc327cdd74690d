//! The directory for state that outlives a server.
//!
//! Owns: the place of the directory, the names in it.
//! Does not own: its checks, and how a file in it is replaced (`private_directory`); the contents of the files
//! (`afflux_linux_server::handle_key`, `afflux_linux_server::kept_places`, `kept_prices`, `kept_verifier`).
//! Invariants: a directory that others could change is not used. A server works without it if it cannot be made.

use std::path::{Path, PathBuf};

use afflux_report::failure::{Failure, Outcome};
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::private_directory::{self, Missing, Refused, variable};

/// The key that handles are sealed with.
pub(crate) const HANDLE_KEY: &str = "handle-key";
/// The last known places of objects, to find them again.
pub(crate) const PLACES: &str = "places";
pub(crate) const PRICES: &str = "disks.json";
/// The write verifier of a server that ended with everything written.
pub(crate) const WRITE_VERIFIER: &str = "write-verifier";
/// The clients of NFS version 4 that may have open files and locks.
pub(crate) const CLIENTS: &str = "nfs-clients";
/// The state of these clients, of a server that ended in order.
pub(crate) const CLIENT_STATE: &str = "nfs-state";
/// The disks' speeds that `afflux govern` has measured; these are speeds of the kernel's writeback.
pub(crate) const SPEEDS: &str = "govern-disks.json";

pub(crate) struct StateDirectory {
    directory: Option<PathBuf>,
    /// Why nothing is kept.
    refused: Option<String>,
}

impl StateDirectory {
    /// The directory `named`, or this user's place for state, made if it is `missing` and wanted.
    ///
    /// # Errors
    /// When others could change the directory that was named. Another place is only not used then.
    pub(crate) fn at(named: Option<&Path>, missing: Missing) -> Outcome<Self> {
        let Some(directory) = named.map(Path::to_path_buf).or_else(usual) else {
            return Ok(Self { directory: None, refused: Some("no home directory is known".to_owned()) });
        };
        match private_directory::check(&directory, missing) {
            Ok(()) => Ok(Self { directory: Some(directory), refused: None }),
            Err(Refused::Unsafe(reason)) if named.is_some() => Err(Failure::failed(format!(
                "--state: {reason}; name a directory that only this user and root can change"
            ))),
            Err(refused) => Ok(Self { directory: None, refused: Some(refused.reason()) }),
        }
    }

    /// Its path, if there is a place for it.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The file of this name in it.
    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(name))
    }

    /// Why nothing can be kept, if that is so.
    pub(crate) fn unwritable(&self) -> Option<String> {
        let Some(directory) = &self.directory else { return self.refused.clone() };
        let error = access(directory, Access::WRITE_OK | Access::EXEC_OK).err()?;
        Some(format!("{}: {}", directory.display(), std::io::Error::from(error)))
    }
}

fn usual() -> Option<PathBuf> {
    match variable("XDG_STATE_HOME") {
        Some(state) => Some(state.join("afflux")),
        None if geteuid().is_root() => Some(Path::new("/var/lib/afflux").to_path_buf()),
        None => Some(variable("HOME")?.join(".local/state/afflux")),
    }
}
