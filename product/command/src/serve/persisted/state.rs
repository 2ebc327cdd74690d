//! The directory for state that outlives a server.
//!
//! Owns: the place of the directory, the names in it, which part of it is a server's own, the refusal of a server's
//! paths that have such a name.
//! Does not own: its checks, and how a file in it is replaced (`private_directory`); the choice of a place and the lock
//! (`own_directory`); the contents of the files (`afflux_linux_server::handle_key`,
//! `afflux_linux_server::open_location_file`,
//! `persisted_prices`, `last_run`).
//! Invariants: a directory that others could change is not used. A server works without it if it cannot be made. One
//! server at a time has a place for files of one server. All servers of a user share the key of handles and the prices
//! of disks.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::private_directory::{self, Missing, Refused, variable};
use crate::serve::persisted::own_directory::{EXPORTS, LOCK, OTHERS, OwnDirectory};

/// The key that handles are sealed with.
pub(crate) const HANDLE_KEY: &str = "handle-key";
/// The last known places of objects, to find them again.
pub(crate) const LOCATIONS: &str = "places";
pub(crate) const PRICES: &str = "disks.json";
/// How the last server ended, its number, and its write verifier.
pub(crate) const WRITE_VERIFIER: &str = "write-verifier";
/// The clients of NFS version 4 that may have open files and locks.
pub(crate) const CLIENTS: &str = "nfs-clients";
/// The state of these clients, of a server that ended in order.
pub(crate) const CLIENT_STATE: &str = "nfs-state";
/// The disks' speeds that `afflux govern` has measured; these are speeds of the kernel's writeback.
pub(crate) const SPEEDS: &str = "govern-disks.json";
/// The number of the last server in each place of this host's file systems.
pub(crate) const STARTS: &str = "starts";

/// All names in the directory.
const NAMES: [&str; 11] =
    [HANDLE_KEY, LOCATIONS, PRICES, WRITE_VERIFIER, CLIENTS, CLIENT_STATE, SPEEDS, STARTS, EXPORTS, LOCK, OTHERS];

pub(crate) struct StateDirectory {
    directory: Option<PathBuf>,
    /// The place of this server's own files. A server of a store has none: the store has its state.
    own: Option<OwnDirectory>,
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
            let refused = Some("no home directory is known".to_owned());
            return Ok(Self { directory: None, own: None, refused });
        };
        match private_directory::check(&directory, missing) {
            Ok(()) => Ok(Self { directory: Some(directory), own: None, refused: None }),
            Err(Refused::Unsafe(reason)) if named.is_some() => Err(Failure::failed(format!(
                "--state: {reason}; name a directory that only this user and root can change"
            ))),
            Err(refused) => Ok(Self { directory: None, own: None, refused: Some(refused.reason()) }),
        }
    }

    /// The same with a place for a server of these directories, until the process ends. In a directory that was `named`
    /// this is the directory itself. If missing places are left so, nothing is taken either.
    ///
    /// # Errors
    /// When another server has the directory that was named, or the same directories.
    pub(crate) fn for_server(self, named: bool, exports: &[PathBuf], missing: Missing) -> Outcome<Self> {
        let own = match &self.directory {
            Some(directory) if named => Some(OwnDirectory::whole(directory, missing)?),
            Some(directory) => Some(OwnDirectory::among(directory, exports, missing)?),
            None => None,
        };
        Ok(Self { own, ..self })
    }

    /// Whether a start makes the directory of this path with the state directory.
    pub(crate) fn will_hold(&self, path: &Path) -> bool {
        let absolute = |path: &Path| std::path::absolute(path).ok();
        let (Some(directory), Some(path)) = (self.path().and_then(absolute), absolute(path)) else { return false };
        let is_missing = |parent: &Path| parent.symlink_metadata().is_err_and(|it| it.kind() == ErrorKind::NotFound);
        path.parent().is_some_and(|parent| directory.starts_with(parent) && is_missing(parent))
    }

    /// Its path, if there is a place for it.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The file of this name that all servers of the user share.
    pub(crate) fn shared_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(name))
    }

    /// The file of this name that belongs to this server.
    pub(crate) fn own_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.own.as_ref()?.path().join(name))
    }

    /// Why nothing can be kept, if that is so. A missing directory is one that a start could make.
    pub(crate) fn unwritable(&self) -> Option<String> {
        let Some(directory) = &self.directory else { return self.refused.clone() };
        let error = access(directory, Access::WRITE_OK | Access::EXEC_OK).err().filter(|it| *it != Errno::NOENT)?;
        Some(format!("{}: {}", directory.display(), std::io::Error::from(error)))
    }
}

/// Refuses paths of the server itself, by their flags, that are one path or a file of the state directory. That is the
/// directory `named`, or this user's place for state.
pub(crate) fn refuse_one_path(named: Option<&Path>, own: &[(&str, Option<&Path>)]) -> Outcome {
    let directory = named.map(Path::to_path_buf).or_else(usual).map(|path| real(&path));
    let mut seen: Vec<(&str, PathBuf)> = directory.iter().map(|path| ("--state", path.clone())).collect();
    for (flag, path) in own.iter().filter_map(|(flag, path)| Some((*flag, (*path)?))) {
        let (real, shown) = (real(path), output::shown(path.display()));
        if let Some((other, _)) = seen.iter().find(|(_, seen)| *seen == real) {
            return Err(Failure::wrong_use(format!("{other} and {flag} are one path, {shown}; name two")));
        }
        let is_in_state = directory.as_deref().is_some_and(|state| real.parent() == Some(state));
        if is_in_state && NAMES.iter().any(|name| real.file_name() == Some(OsStr::new(name))) {
            return Err(Failure::wrong_use(format!(
                "{flag}: {shown} is the name of a file of the state directory; name another path"
            )));
        }
        seen.push((flag, real));
    }
    Ok(())
}

/// An absolute path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let there =
        absolute.ancestors().find_map(|part| Some((part.canonicalize().ok()?, absolute.strip_prefix(part).ok()?)));
    // A rest of no name would end the path with a slash.
    there.map_or(absolute.clone(), |(there, rest)| there.components().chain(rest.components()).collect())
}

/// This user's place for state, where no other is named.
pub(super) fn usual() -> Option<PathBuf> {
    match variable("XDG_STATE_HOME") {
        Some(state) => Some(state.join("afflux")),
        None if geteuid().is_root() => Some(Path::new("/var/lib/afflux").to_path_buf()),
        None => Some(variable("HOME")?.join(".local/state/afflux")),
    }
}
