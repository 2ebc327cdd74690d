//! Which server was the last one: of a state directory, with its end and the number of its run, and of each directory
//! of this host's file systems.
//!
//! A server draws a number before it serves. The server writes the number into the state directory, the memory of the
//! cache and the state of clients. Memory with another number is of an earlier server, and a later one has served
//! since. The successor of a killed server over the same memory retains the number. The number is in the file of the
//! write verifier.
//!
//! A state directory knows the servers that used it, and no others. So all servers of a user on a host also have one
//! record of starts, whichever state directory each uses. It shows a later server of a directory on a file system. The
//! record has a line for each served directory, and for each mount below. The directories of the latest start are last.
//! The verifier's file counts only if the record has no later server of its directories.
//!
//! The record is in the user's usual directory for state. On a host whose system is read-only it is in the server's
//! state directory, and shows the servers with this directory only. If the usual directory's record has a server of the
//! served directories, and cannot be changed, no server of these starts: once the system can be written, the earlier
//! server would count as the last one. The record has no servers of other users, of other hosts, and of containers with
//! a `/var/lib` of their own. A directory above a served one may get another name after the server's start. Then the
//! server counts as one of another directory.
//!
//! Owns: both files, their forms, the rule which directories overlap.
//! Does not own: when everything is written (`serve`), the use of the verifier (the volume), the consequences of
//! another number or a later server (`arena`, `client_state`, `start::engine`).
//! Invariants: the number and the start are durable before the first answer to a client. One server continues a
//! verifier: the file durably loses the verifier first. A file that cannot be read does not count as missing. A server
//! whose line is missing was not the last one. A line is lost only with all earlier ones.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use afflux_engine::{Engine, Platform};
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::{ExportedDirectory, HostTree};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use rustix::fs::{FlockOperation, flock};
use tracing::{info, warn};

use crate::private_directory::{self, Missing, Refused};
use crate::serve::persisted::{self, STARTS, StateDirectory, WRITE_VERIFIER};

/// The first line of a server that has not ended in order.
const BEGUN: &str = "serving";

/// What the last server has written to the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastRun {
    /// No server has used the directory.
    Unknown,
    /// One that serves, or was killed.
    Begun {
        /// The id of its run.
        run_id: u64,
    },
    /// One that ended with everything written.
    Ended {
        /// The write verifier, for the next server.
        verifier: [u8; 8],
        /// The id of its run.
        run_id: u64,
    },
}

impl LastRun {
    /// Reads the file.
    ///
    /// # Errors
    /// The host's, or the file has another form.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        match private_directory::read(path) {
            Ok(text) => parse(&text).ok_or_else(|| io::Error::other("it is of another version, or damaged")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::Unknown),
            Err(error) => Err(error),
        }
    }

    fn run_id(self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Begun { run_id } | Self::Ended { run_id, .. } => Some(run_id),
        }
    }

    /// Whether that server was the last one of the directories in the record of starts.
    pub(crate) fn is_last_in(self, starts: &StartRecord) -> bool {
        let why = match (self.run_id(), starts.standing(self.run_id())) {
            (_, Ok(Standing::Last)) | (None, Ok(Standing::Unknown)) => return true,
            (_, Ok(Standing::PassedOver { by })) => format!("another server has served {by} since"),
            (Some(_), Ok(Standing::Unknown)) => "the record of starts does not have it".to_owned(),
            (_, Err(error)) => error.to_string(),
        };
        if self != Self::Unknown {
            info!(
                "the last server of the state directory may not be the last one here ({}); clients send uncommitted data \
                 again, and ask again for their open files and locks",
                output::shown(why)
            );
        }
        false
    }
}

/// The run of this server, and the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ServerRun {
    pub(crate) last: LastRun,
    pub(crate) run_id: u64,
    /// No server with another state directory has served these directories since the last server of this one.
    pub(crate) is_next: bool,
}

impl ServerRun {
    /// How the last server of a state directory ended.
    ///
    /// # Errors
    /// As [`LastRun::read`].
    pub(crate) fn last(state: &StateDirectory) -> io::Result<LastRun> {
        state.own_file(WRITE_VERIFIER).map_or(Ok(LastRun::Unknown), |path| LastRun::read(&path))
    }

    /// Begins the run of a server: with the number in the memory of a killed server, or with a new number. The number
    /// must be durable if the memory `is_persistent`, or if the state directory has the number of an earlier server.
    /// The state of the `last` server of the directory counts if this run `is_next`.
    ///
    /// # Errors
    /// The number cannot be made durable: a later server would mistake an earlier server's memory for this server's.
    pub(crate) fn begin(
        engine: &Engine<LinuxPlatform>,
        state: &StateDirectory,
        starts: &StartRecord,
        is_persistent: bool,
        last: LastRun,
        is_next: bool,
    ) -> Outcome<Self> {
        let header = engine.frames().memory().header();
        let run_id = header.number().unwrap_or_else(|| engine.platform().random_u64());
        starts.note(run_id, is_persistent)?;
        match state.own_file(WRITE_VERIFIER) {
            Some(_) if last == (LastRun::Begun { run_id }) => {}
            Some(path) => {
                if let Err(error) = begin(&path, run_id) {
                    refuse_unkept(&path, &error, is_persistent)?;
                    warn!("the number of this server is not kept: {}: {error}", output::shown(path.display()));
                }
            }
            None if is_persistent => return Err(no_directory(state)),
            None => {}
        }
        header.set_number(run_id);
        Ok(Self { last, run_id, is_next })
    }

    /// Refuses a state directory or a record that [`Self::begin`] would refuse, as far as that shows without a change.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub(crate) fn rehearse(state: &StateDirectory, starts: &StartRecord, is_persistent: bool) -> Outcome {
        starts.rehearse(is_persistent)?;
        match state.own_file(WRITE_VERIFIER) {
            Some(path) => {
                private_directory::check_replaceable(&path).or_else(|error| refuse_unkept(&path, &error, is_persistent))
            }
            None if is_persistent && state.path().is_none() => Err(no_directory(state)),
            None => Ok(()),
        }
    }
}

/// Refuses to go on without a durable number if that could be mistaken for an earlier one.
fn refuse_unkept(path: &Path, error: &io::Error, is_persistent: bool) -> Outcome {
    if !is_persistent && path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{} cannot be changed: {error}. A later server could mistake older bytes for this server's; name another \
         directory with --state",
        output::shown(path.display())
    )))
}

fn no_directory(state: &StateDirectory) -> Failure {
    Failure::failed(format!(
        "--arena takes a state directory for the number of its server ({}); name one with --state",
        output::shown(state.unwritable().unwrap_or_default())
    ))
}

/// Notes that a server begins to serve.
///
/// # Errors
/// The file can be neither replaced nor, as on a full disk, removed.
pub(crate) fn begin(path: &Path, run_id: u64) -> io::Result<()> {
    private_directory::replace(path, &format!("{BEGUN}\n{run_id:016x}")).or_else(|error| match fs::remove_file(path) {
        Ok(()) => private_directory::sync_directory_of(path),
        Err(_) => Err(error),
    })
}

/// Notes the end of a server that has no unwritten bytes and answers no more calls.
///
/// # Errors
/// When it cannot be made durable.
pub(crate) fn end(path: &Path, run_id: u64, verifier: [u8; 8]) -> io::Result<()> {
    let text = format!("{:016x}\n{run_id:016x}\n", u64::from_be_bytes(verifier));
    private_directory::leave(path, &[text.as_bytes()])
}

fn parse(text: &str) -> Option<LastRun> {
    let (first, run_id) = text.trim_end().split_once('\n')?;
    let run_id = digits(run_id)?;
    match first {
        BEGUN => Some(LastRun::Begun { run_id }),
        verifier => Some(LastRun::Ended { verifier: digits(verifier)?.to_be_bytes(), run_id }),
    }
}

fn digits(text: &str) -> Option<u64> {
    let are_digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    are_digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

const LINES_MAX: usize = 4096;
/// A word that the host does not report.
const UNTOLD: &str = "-";

/// The record, for a server of some directories. A server of a store has none.
pub(crate) struct StartRecord {
    path: Result<PathBuf, String>,
    directories: Vec<RecordedDirectory>,
}

/// The position of an earlier server among those of the record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// No server of an overlapping directory has started since.
    Last,
    /// Another server of this path has started since.
    PassedOver { by: String },
    /// The record has no server of these directories.
    Unknown,
}

/// A directory, in the words of the record. A word has no blanks.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RecordedDirectory {
    /// The identity of the file system, and of the directory there.
    identity: String,
    /// The file system while its disk stays in the host: one for all subvolumes, which have identities of their own.
    stay: String,
    /// The path on the file system.
    below: String,
    /// The path on the host.
    path: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct RecordedStart {
    run_id: u64,
    directory: RecordedDirectory,
}

impl StartRecord {
    /// The record of this user, for a server of the directories of `tree`, if the server is `allowed` to use its
    /// directory. Else it is in the directory of `state`.
    pub(crate) fn of(
        tree: Option<&HostTree>,
        state: &StateDirectory,
        missing: Missing,
        allowed: impl FnOnce(&Path) -> Outcome,
    ) -> Self {
        let Some(tree) = tree else {
            return Self { path: Err("a store has none".to_owned()), directories: Vec::new() };
        };
        let directories: Vec<RecordedDirectory> =
            tree.exported_directories().into_iter().map(RecordedDirectory::of).collect();
        let path = usual(missing, &directories, allowed).or_else(|why| state.shared_file(STARTS).ok_or(why));
        Self { path, directories }
    }

    /// Whether the server with this number was the last one of these directories. `None` for a server without a number.
    ///
    /// # Errors
    /// There is no record, or it cannot be read.
    pub(crate) fn standing(&self, run_id: Option<u64>) -> io::Result<Standing> {
        if self.directories.is_empty() {
            return Ok(Standing::Last);
        }
        let path = self.path.as_ref().map_err(|why| io::Error::other(why.as_str()))?;
        let told =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", output::shown(path.display())));
        Ok(standing(&read(path).map_err(told)?, &self.directories, run_id))
    }

    /// Refuses a record that [`Self::note`] would refuse, as far as that shows without a change.
    ///
    /// # Errors
    /// As [`Self::note`].
    pub(crate) fn rehearse(&self, is_persistent: bool) -> Outcome {
        let noted = self.path.as_ref().map_err(Clone::clone).and_then(|path| {
            private_directory::check_replaceable(path).map_err(|error| format!("{}: {error}", path.display()))
        });
        let is_there = || self.path.as_deref().is_ok_and(|path| path.symlink_metadata().is_ok());
        match noted {
            Err(why) if !self.directories.is_empty() && (is_persistent || is_there()) => {
                Err(cannot_be_noted(output::shown(why)))
            }
            _ => Ok(()),
        }
    }

    /// Notes the start of the server with this number. No record from now on is an error if the server's memory
    /// `is_persistent`.
    ///
    /// # Errors
    /// The start cannot be noted, and earlier servers would count as the last ones.
    pub(crate) fn note(&self, run_id: u64, is_persistent: bool) -> Outcome {
        if self.directories.is_empty() {
            return Ok(());
        }
        let noted = self.path.as_ref().map_err(Clone::clone).and_then(|path| {
            noted(path, &self.directories, run_id).map_err(|error| format!("{}: {error}", path.display()))
        });
        let Err(why) = noted else { return Ok(()) };
        let why = output::shown(why);
        // On a full disk, all earlier servers become unknown.
        if is_persistent || self.path.as_deref().is_ok_and(|path| !try_remove(path)) {
            return Err(cannot_be_noted(&why));
        }
        warn!(
            "the start is not in the record of starts ({why}): after a restart, clients ask again for open files and \
             locks, and send uncommitted data again"
        );
        Ok(())
    }
}

fn cannot_be_noted(why: impl std::fmt::Display) -> Failure {
    Failure::failed(format!(
        "the start cannot be noted in the record of starts ({why}). A later server could mistake older bytes for this \
         server's. Make the record writable, or remove it"
    ))
}

/// Removes the record durably. False if that fails.
fn try_remove(path: &Path) -> bool {
    match fs::remove_file(path) {
        // A read-only file system reports this even if there is no such file.
        Err(_) => path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound),
        Ok(()) => private_directory::sync_directory_of(path).is_ok(),
    }
}

/// The file in this user's usual directory for state, made if it is missing. An error says why there is no such file,
/// and can be none.
fn usual(
    missing: Missing,
    directories: &[RecordedDirectory],
    allowed: impl FnOnce(&Path) -> Outcome,
) -> Result<PathBuf, String> {
    let directory = persisted::usual().ok_or("no home directory is known")?;
    allowed(&directory).map_err(|refused| refused.to_string())?;
    private_directory::check(&directory, missing).map_err(Refused::reason)?;
    let path = directory.join(STARTS);
    match private_directory::check_replaceable(&path) {
        // A record that has these directories, or that cannot be read, stays the record.
        Err(error) if read(&path).is_ok_and(|starts| standing(&starts, directories, None) == Standing::Unknown) => {
            Err(format!("{}: {error}", directory.display()))
        }
        _ => Ok(path),
    }
}

fn standing(starts: &[RecordedStart], directories: &[RecordedDirectory], run_id: Option<u64>) -> Standing {
    let is_own = |start: &&RecordedStart| Some(start.run_id) == run_id;
    let own = starts.iter().position(|start| is_own(&start));
    let of_own = starts.iter().filter(is_own).map(|start| &start.directory);
    let ours: Vec<&RecordedDirectory> = of_own.chain(directories).collect();
    let mut later = starts.iter().skip(own.unwrap_or(0)).filter(|start| !is_own(start));
    match (later.find(|start| ours.iter().any(|directory| directory.is_overlapping(&start.directory))), own) {
        (Some(other), _) => Standing::PassedOver { by: other.directory.path.clone() },
        (None, Some(_)) => Standing::Last,
        (None, None) => Standing::Unknown,
    }
}

fn noted(path: &Path, directories: &[RecordedDirectory], run_id: u64) -> io::Result<()> {
    let directory = File::open(path.parent().ok_or(ErrorKind::NotFound)?)?;
    // Some file systems of a network have no locks. Of two starts at the same moment, one may get lost there.
    let _ = flock(&directory, FlockOperation::LockExclusive);
    let mut starts = read(path).unwrap_or_else(|error| {
        warn!("{}: {error}; it begins anew, and earlier servers are unknown", output::shown(path.display()));
        Vec::new()
    });
    starts.retain(|start| {
        start.run_id != run_id && !directories.iter().any(|directory| directory.is_same(&start.directory))
    });
    starts.extend(directories.iter().map(|directory| RecordedStart { run_id, directory: directory.clone() }));
    starts.drain(..starts.len().saturating_sub(LINES_MAX.max(directories.len())));
    let lines: Vec<String> = starts.iter().map(RecordedStart::line).collect();
    private_directory::replace(path, &lines.join("\n"))
}

fn read(path: &Path) -> io::Result<Vec<RecordedStart>> {
    match private_directory::read(path) {
        Ok(text) => text
            .lines()
            .map(|line| {
                RecordedStart::parse(line).ok_or_else(|| io::Error::other("it is of another version, or damaged"))
            })
            .collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl RecordedStart {
    fn line(&self) -> String {
        let RecordedDirectory { identity, stay, below, path } = &self.directory;
        format!("{:016x}\t{identity}\t{stay}\t{below}\t{path}", self.run_id)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split('\t').map(str::to_owned);
        let run_id = u64::from_str_radix(&words.next()?, 16).ok()?;
        let (identity, stay) = (words.next()?, words.next()?);
        let directory = RecordedDirectory { identity, stay, below: words.next()?, path: words.next()? };
        words.next().is_none().then_some(Self { run_id, directory })
    }
}

impl RecordedDirectory {
    fn of(directory: ExportedDirectory) -> Self {
        let word = |path: &Path| path.as_os_str().as_bytes().escape_ascii().to_string();
        let untold = || UNTOLD.to_owned();
        let (stay, below) = match &directory.on_file_system {
            Some(on) => (on.stay.clone().unwrap_or_else(untold), word(&on.below)),
            None => (untold(), untold()),
        };
        let identity = directory.identity.map_or_else(untold, |identity| format!("{identity:?}"));
        Self { identity, stay, below, path: word(&directory.path) }
    }

    /// Whether they are one directory, or one mount of a file system.
    fn is_same(&self, other: &Self) -> bool {
        match self.identity == UNTOLD {
            true => (&self.identity, &self.stay, &self.below) == (&other.identity, &other.stay, &other.below),
            false => self.identity == other.identity,
        }
    }

    /// Whether a file may be in both directories. Below a path of the host may be a mount of another file system.
    fn is_overlapping(&self, other: &Self) -> bool {
        let is_told = |one: &str, other: &str| one == other && one != UNTOLD;
        let is_on_one = is_told(self.file_system(), other.file_system()) || is_told(&self.stay, &other.stay);
        let is_on_file_system = is_on_one && self.below != UNTOLD && is_within(&self.below, &other.below);
        let is_below_a_mount = self.path != other.path && is_within(&self.path, &other.path);
        is_told(&self.identity, &other.identity) || is_on_file_system || is_below_a_mount
    }

    fn file_system(&self) -> &str {
        self.identity.split(':').next().unwrap_or_default()
    }
}

/// Whether one path is the other, or below it.
fn is_within(one: &str, other: &str) -> bool {
    Path::new(one).starts_with(other) || Path::new(other).starts_with(one)
}

#[cfg(test)]
mod tests;
