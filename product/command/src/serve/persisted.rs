//! What outlives a server: by a kill, or in its state directory.
//!
//! Servers of one user have the same state directory unless `--state` names one. The first server has the directory
//! itself. Each further server has a directory below. Each own directory has a list of the directories that its server
//! serves. So a server finds its own directory again, whichever server starts first.
//!
//! Owns: the cache's memory, the mount, prices, clients and their state, the verifier; here the state directory: where
//! it is, the names in it, the choice of a server's own directory in it, the list and the lock there, the refusal of a
//! server's paths that have such a name.
//! Does not own: the contents of the memory (the engine), the manager's store (`afflux_linux_server`); the checks of
//! the directory, and how a file in it is replaced (`private_directory`); the contents of its files
//! (`afflux_linux_server::handle_key`, `afflux_linux_server::open_location_file`, `persisted_prices`, `last_run`).
//! Invariants: a client gets no answer before the state that the answer promises is durable. A directory that others
//! could change is not used. A server works without it if it cannot be made. One process at a time has an own
//! directory, from before it reads the files of an earlier server there. The lock ends with the process, however that
//! ends; a process that is about to end is waited for. A directory whose list cannot be read is not free. All servers
//! of a user use the same key of handles and the same prices of disks.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use afflux_linux_server::is_ending;
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::output;
use rustix::fs::{Access, FlockOperation, OFlags, access, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::private_directory::{self, Missing, Refused, variable};

pub(crate) mod arena;
pub(crate) mod client_state;
pub(crate) mod last_run;
pub(crate) mod persisted_mount;
pub(crate) mod persisted_prices;
pub(crate) mod unnamed_files;

/// The key that handles are sealed with.
pub(crate) const HANDLE_KEY: &str = "handle-key";
/// The last known locations of objects, to find them again.
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
/// The number of the last server of each directory of this host's file systems.
pub(crate) const STARTS: &str = "starts";

/// All names in the directory.
const NAMES: [&str; 11] =
    [HANDLE_KEY, LOCATIONS, PRICES, WRITE_VERIFIER, CLIENTS, CLIENT_STATE, SPEEDS, STARTS, EXPORTS, LOCK, OTHERS];

pub(crate) struct StateDirectory {
    directory: Option<PathBuf>,
    /// The directory of this server's own files. A server of a store has none: the store has its state.
    own: Option<OwnDirectory>,
    /// Why nothing is persisted.
    refused: Option<String>,
}

impl StateDirectory {
    /// The directory `named`, or this user's directory for state, made if it is `missing` and wanted.
    ///
    /// # Errors
    /// When others could change the directory that was named. Another directory is only not used then.
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

    /// The same with an own directory for a server of these directories, until the process ends. In a directory that
    /// was `named` this is the directory itself. If missing directories are not made, nothing is taken either.
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

    /// Its path, if there is a directory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The file of this name for all servers of the user.
    pub(crate) fn shared_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(name))
    }

    /// The file of this name that belongs to this server.
    pub(crate) fn own_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.own.as_ref()?.path().join(name))
    }

    /// Why nothing can be persisted, if that is so. A missing directory is one that a start could make.
    pub(crate) fn unwritable(&self) -> Option<String> {
        let Some(directory) = &self.directory else { return self.refused.clone() };
        let error = access(directory, Access::WRITE_OK | Access::EXEC_OK).err().filter(|it| *it != Errno::NOENT)?;
        Some(format!("{}: {}", directory.display(), std::io::Error::from(error)))
    }
}

/// Refuses paths of the server itself, by their flags, that are one path or a file of the state directory. That is the
/// directory `named`, or this user's directory for state.
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

/// This user's directory for state, where no other is named.
fn usual() -> Option<PathBuf> {
    match variable("XDG_STATE_HOME") {
        Some(state) => Some(state.join("afflux")),
        None if geteuid().is_root() => Some(Path::new("/var/lib/afflux").to_path_buf()),
        None => Some(variable("HOME")?.join(".local/state/afflux")),
    }
}

/// The list of the directories of the server that has this directory.
const EXPORTS: &str = "exports";
/// The file with the lock.
const LOCK: &str = "server";
/// The directory of the own directories of all servers but the first.
const OTHERS: &str = "servers";
/// Most directories that are checked.
const DIRECTORIES_MAX: usize = 1024;

/// Between two tries to get a lock.
const TRY_EVERY: Duration = Duration::from_millis(1);
/// A process that has a lock for this time, and does not end, retains the lock.
const ENDS_WITHIN: Duration = Duration::from_millis(100);
/// Between two reports of a wait.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// A server's own directory, locked by this process.
pub(crate) struct OwnDirectory {
    path: PathBuf,
    /// None where the host has no locks, or the directory cannot be changed, or in a rehearsal.
    _lock: Option<File>,
}

/// Whose a directory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Nobody,
    /// A server of exactly these directories.
    Same,
    /// A server of some of these directories.
    Overlapping,
    Other,
}

impl OwnDirectory {
    /// The directory itself.
    ///
    /// # Errors
    /// Another server has it.
    pub(crate) fn whole(directory: &Path, missing: Missing) -> Outcome<Self> {
        Self::taken(directory, missing)?.map_err(|owner| {
            let directory = output::shown(directory.display());
            Failure::failed(format!("{owner} keeps its state in {directory}; name another with --state"))
        })
    }

    /// The own directory for a server of these directories, among those of all servers of the user.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn among(directory: &Path, exports: &[PathBuf], missing: Missing) -> Outcome<Self> {
        let below = directory.join(OTHERS);
        let mut directories = vec![directory.to_path_buf()];
        directories.extend(others(&below).or_failed(output::shown(below.display()))?);
        let owned: Vec<(PathBuf, Owner)> = directories
            .into_iter()
            .map(|directory| (owner(&directory, exports), directory))
            .map(|(owner, directory)| (directory, owner))
            .collect();
        for wanted in [Owner::Same, Owner::Overlapping, Owner::Nobody] {
            for (directory, _) in owned.iter().filter(|(_, owner)| *owner == wanted) {
                if let Ok(taken) = Self::taken(directory, missing)? {
                    return Ok(taken.noted(exports, missing));
                }
            }
        }
        let made = Self::taken(&new_directory(&below, missing)?, missing)?.map_err(|owner| {
            Failure::failed(format!("{owner} was faster to take a new place in {}; try again", below.display()))
        })?;
        info!("{} is of another server; this one keeps its state in {}", directory.display(), made.path.display());
        Ok(made.noted(exports, missing))
    }

    /// Takes a directory. If another process has it, returns that process for people. In a rehearsal, which makes no
    /// `missing` file, the directory stays free.
    fn taken(path: &Path, missing: Missing) -> Outcome<Result<Self, String>> {
        let rehearsed = Self { path: path.to_path_buf(), _lock: None };
        match (missing, path.join(LOCK).symlink_metadata()) {
            (Missing::Make, _) => Self::locked(path),
            (Missing::Leave, Err(error)) if error.kind() == ErrorKind::NotFound => Ok(Ok(rehearsed)),
            (Missing::Leave, _) => Ok(Self::locked(path)?.map(|_| rehearsed)),
        }
    }

    /// Locks a directory. If another process has it, returns that process for people.
    fn locked(path: &Path) -> Outcome<Result<Self, String>> {
        let shown = output::shown(path.display());
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path.join(LOCK));
        let lock = match opened {
            Ok(lock) => lock,
            // No server can change the directory.
            Err(error) if [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied].contains(&error.kind()) => {
                return Ok(Ok(Self { path: path.to_path_buf(), _lock: None }));
            }
            Err(error) => return Err(Failure::failed(format!("{shown}: {LOCK}: {error}"))),
        };
        let began = Instant::now();
        let (mut told_at, mut kept_since): (Option<Instant>, Instant) = (None, began);
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Ok(Self { path: path.to_path_buf(), _lock: Some(lock) })),
                Err(Errno::WOULDBLOCK) => {}
                // Without locks, as on some file systems of a network, no second server can be noticed.
                Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => {
                    warn!("{shown} cannot be locked; let no second server use it");
                    return Ok(Ok(Self { path: path.to_path_buf(), _lock: None }));
                }
                Err(errno) => return Err(Failure::failed(format!("{shown}: lock: {}", io::Error::from(errno)))),
            }
            let owner = lock_owner(&lock).or_failed(&shown)?;
            match owner {
                Some(process) if is_ending(process) => {
                    kept_since = Instant::now();
                    if told_at.unwrap_or(began).elapsed() > TELL_EVERY {
                        warn!("{shown}: waiting for process {process} to end; a disk that hangs may hold it up");
                        told_at = Some(Instant::now());
                    }
                }
                _ if kept_since.elapsed() > ENDS_WITHIN => {
                    let unseen = || "a process that cannot be seen from here".to_owned();
                    return Ok(Err(owner.map_or_else(unseen, |process| format!("process {process}"))));
                }
                _ => {}
            }
            sleep(TRY_EVERY);
        }
    }

    /// Writes the list, unless it is there already.
    fn noted(self, exports: &[PathBuf], missing: Missing) -> Self {
        if missing == Missing::Make && owner(&self.path, exports) != Owner::Same {
            let list = self.path.join(EXPORTS);
            let written = private_directory::replace(&list, &list_of(exports));
            if let Err(error) = written {
                info!("{}: {error}; another server may take this place first", output::shown(list.display()));
            }
        }
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The paths of directories for a list: sorted, a line each.
fn list_of(exports: &[PathBuf]) -> String {
    lines_of(exports).join("\n")
}

fn lines_of(exports: &[PathBuf]) -> Vec<String> {
    let mut lines: Vec<String> =
        exports.iter().map(|path| path.as_os_str().as_bytes().escape_ascii().to_string()).collect();
    lines.sort();
    lines
}

/// A new own directory, with the first number that is free.
fn new_directory(below: &Path, missing: Missing) -> Outcome<PathBuf> {
    private_directory::check(below, missing).map_err(Refused::reason).or_failed("the state of this server")?;
    for number in 1..=DIRECTORIES_MAX {
        let directory = below.join(number.to_string());
        let made = match missing {
            Missing::Make => DirBuilder::new().mode(0o700).create(&directory),
            Missing::Leave if directory.symlink_metadata().is_ok() => Err(ErrorKind::AlreadyExists.into()),
            Missing::Leave => Ok(()),
        };
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| directory.clone()).or_failed(output::shown(directory.display())),
        }
    }
    let below = output::shown(below.display());
    Err(Failure::failed(format!(
        "{below} has places of {DIRECTORIES_MAX} servers: remove old ones, or name another with --state"
    )))
}

fn owner(directory: &Path, exports: &[PathBuf]) -> Owner {
    let list = match private_directory::read(&directory.join(EXPORTS)) {
        Ok(list) => list,
        Err(error) if error.kind() == ErrorKind::NotFound => return Owner::Nobody,
        Err(error) => {
            warn!("{}: {error}; this server has another place for its state", output::shown(directory.display()));
            return Owner::Other;
        }
    };
    let (theirs, ours): (Vec<&str>, Vec<String>) = (list.trim_end().lines().collect(), lines_of(exports));
    match ours.iter().filter(|path| theirs.contains(&path.as_str())).count() {
        0 => Owner::Other,
        same if same == theirs.len() && same == ours.len() => Owner::Same,
        _ => Owner::Overlapping,
    }
}

/// The own directories of all servers but the first.
fn others(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut directories =
        entries.take(DIRECTORIES_MAX).map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    directories.sort();
    Ok(directories)
}

/// The process with the lock, if this process can see it.
fn lock_owner(lock: &File) -> io::Result<Option<u32>> {
    let file = format!(":{}", lock.metadata()?.ino());
    let table = fs::read_to_string("/proc/locks")?;
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut held =
        fields.filter(|fields| fields.get(1) == Some(&"FLOCK") && fields.get(5).is_some_and(|it| it.ends_with(&file)));
    Ok(held.find_map(|fields| fields.get(4)?.parse().ok()).filter(|process| *process != 0))
}

#[cfg(test)]
mod tests;
