//! A server's own place in a state directory.
//!
//! Servers of one user have the same state directory unless `--state` names one. The first server has the directory
//! itself. Each further server has a directory below. A place has a list of the served directories. So a server finds
//! the place again, whichever server starts first.
//!
//! Owns: the choice of the place, the list, the lock.
//! Does not own: the state directory and the files in a place (`state`).
//! Invariants: one process at a time has a place, from before it reads what an earlier server left there. The lock ends
//! with the process, however that ends; a process that is about to end is waited for. A place whose list cannot be read
//! is not free.

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
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tracing::{info, warn};

use crate::private_directory::{self, Missing, Refused};

/// The list of the directories whose server has a place.
pub(super) const EXPORTS: &str = "exports";
/// The file with the lock.
pub(super) const LOCK: &str = "server";
/// The directory of the places of all servers but the first.
pub(super) const OTHERS: &str = "servers";
/// Most places that are looked at.
const DIRECTORIES_MAX: usize = 1024;

/// Between two tries to get a lock.
const TRY_EVERY: Duration = Duration::from_millis(1);
/// A process that has a lock for this time, and does not end, keeps the lock.
const ENDS_WITHIN: Duration = Duration::from_millis(100);
/// Between two reports of a wait.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// A place, locked by this process.
pub(crate) struct OwnDirectory {
    path: PathBuf,
    /// None where the host has no locks, or the place cannot be changed, or in a rehearsal.
    _lock: Option<File>,
}

/// Whose a place is.
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
        Self::taken(directory, missing)?.map_err(|holder| {
            let directory = output::shown(directory.display());
            Failure::failed(format!("{holder} keeps its state in {directory}; name another with --state"))
        })
    }

    /// The place for a server of these directories, among those of all servers of the user.
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
        let made = Self::taken(&new_directory(&below, missing)?, missing)?.map_err(|holder| {
            Failure::failed(format!("{holder} was faster to take a new place in {}; try again", below.display()))
        })?;
        info!("{} is of another server; this one keeps its state in {}", directory.display(), made.path.display());
        Ok(made.noted(exports, missing))
    }

    /// Takes a place. If another process keeps the place, returns that process for people. In a rehearsal, which makes
    /// no `missing` file, the place stays free.
    fn taken(path: &Path, missing: Missing) -> Outcome<Result<Self, String>> {
        let rehearsed = Self { path: path.to_path_buf(), _lock: None };
        match (missing, path.join(LOCK).symlink_metadata()) {
            (Missing::Make, _) => Self::locked(path),
            (Missing::Leave, Err(error)) if error.kind() == ErrorKind::NotFound => Ok(Ok(rehearsed)),
            (Missing::Leave, _) => Ok(Self::locked(path)?.map(|_| rehearsed)),
        }
    }

    /// Locks a place. If another process keeps the place, returns that process for people.
    fn locked(path: &Path) -> Outcome<Result<Self, String>> {
        let shown = output::shown(path.display());
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path.join(LOCK));
        let lock = match opened {
            Ok(lock) => lock,
            // No server can change the place.
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
            let holder = holder(&lock).or_failed(&shown)?;
            match holder {
                Some(process) if is_ending(process) => {
                    kept_since = Instant::now();
                    if told_at.unwrap_or(began).elapsed() > TELL_EVERY {
                        warn!("{shown}: waiting for process {process} to end; a disk that hangs may hold it up");
                        told_at = Some(Instant::now());
                    }
                }
                _ if kept_since.elapsed() > ENDS_WITHIN => {
                    let unseen = || "a process that cannot be seen from here".to_owned();
                    return Ok(Err(holder.map_or_else(unseen, |process| format!("process {process}"))));
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

/// A new place, with the first number that is free.
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

/// The places of all servers but the first.
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
fn holder(lock: &File) -> io::Result<Option<u32>> {
    let file = format!(":{}", lock.metadata()?.ino());
    let table = fs::read_to_string("/proc/locks")?;
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut held =
        fields.filter(|fields| fields.get(1) == Some(&"FLOCK") && fields.get(5).is_some_and(|it| it.ends_with(&file)));
    Ok(held.find_map(|fields| fields.get(4)?.parse().ok()).filter(|process| *process != 0))
}

#[cfg(test)]
mod tests;
