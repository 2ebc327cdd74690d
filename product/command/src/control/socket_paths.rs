//! The paths of control sockets.
//!
//! Owns: the directories that may hold them; finding the servers that run.
//! Does not own: the checks of ownership (`trust`); the messages on a socket.
//! Invariants: servers and clients use one of our directories only if it belongs to this user and is closed to others.
//! A socket without a listener is removed, a socket with a listener never.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use rustix::process::geteuid;

use super::trust::{self, FileIdentity, FoundKind, TrustedDirectory};
use crate::private_directory::{self, Missing, Refused, variable};
use crate::processes::{self, Neighbour};
use afflux_report::command_line;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

/// Most sockets that are looked at in a directory.
const SOCKETS_MAX: usize = 1024;

/// The directories that may hold sockets of this user's servers, the preferred one first. The last one is at home,
/// since another user may have taken the name in the directory for temporary files.
fn directories() -> Vec<PathBuf> {
    let runtime = variable("XDG_RUNTIME_DIR").map(|path| path.join("afflux"));
    let of_root = geteuid().is_root().then(|| PathBuf::from("/run/afflux"));
    let temporary = env::temp_dir().join(format!("afflux-{}", geteuid().as_raw()));
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
    let at_home = state.map(|path| path.join("afflux/run"));
    runtime.into_iter().chain(of_root).chain([temporary]).chain(at_home).collect()
}

/// A server's socket.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    /// The path that clients connect to.
    pub(crate) path: PathBuf,
    directory: TrustedDirectory,
    name: OsString,
    identity: FileIdentity,
}

impl BoundSocket {
    /// Removes the socket, unless another file has its name by now.
    pub(crate) fn remove(&self) {
        let _ = self.directory.remove(&self.name, self.identity);
    }
}

/// A control socket that is removed when the server ends in order.
pub(crate) struct RemovedAtEnd(pub(crate) Arc<BoundSocket>);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// Listens for a server: at `named`, or under `name` where clients search by default.
pub(crate) fn bind(named: Option<&Path>, name: &str) -> Outcome<(BoundSocket, UnixListener)> {
    if let Some(path) = named {
        return bind_named(path);
    }
    bind_in_first(&directories(), OsString::from(name))
}

/// Whether the process listens at the socket that [`bind`] would make.
pub(crate) fn is_of(named: Option<&Path>, name: &str, process: u32) -> bool {
    let paths = named.map_or_else(
        || directories().into_iter().map(|directory| directory.join(name)).collect(),
        |path| vec![path.to_path_buf()],
    );
    paths.iter().any(|path| trust::connected_to_process(path, process).is_some())
}

/// Listens in the first of the directories that belongs to this user.
fn bind_in_first(directories: &[PathBuf], name: OsString) -> Outcome<(BoundSocket, UnixListener)> {
    let mut reasons = Vec::new();
    for path in directories {
        match prepare(path) {
            Ok(directory) => return bind_in(path, directory, name),
            Err(reason) => reasons.push(reason),
        }
    }
    let reasons = reasons.join("; ");
    Err(Failure::failed(format!("no place for the control socket ({reasons}); name one with --control PATH")))
}

/// Makes the directory, or checks that only this user can use it.
fn prepare(path: &Path) -> Result<TrustedDirectory, String> {
    private_directory::way(path, Missing::Make).map_err(Refused::reason)?;
    TrustedDirectory::private(path)
}

fn bind_named(path: &Path) -> Outcome<(BoundSocket, UnixListener)> {
    let checked = trust::parts(path).and_then(|(parent, name)| Ok((TrustedDirectory::named(&parent)?, name)));
    let (directory, name) = checked.map_err(|reason| cannot_be_made(path, &reason))?;
    bind_at(path.to_path_buf(), directory, name)
}

/// Holds the directory's lock, so that no client takes a bound socket that does not listen yet for a dead one.
fn bind_in(path: &Path, directory: TrustedDirectory, name: OsString) -> Outcome<(BoundSocket, UnixListener)> {
    let path = path.join(&name);
    directory.lock().map_err(|error| cannot_be_made(&path, &error.to_string()))?;
    let bound = bind_at(path, directory, name)?;
    bound.0.directory.unlock();
    Ok(bound)
}

fn bind_at(path: PathBuf, directory: TrustedDirectory, name: OsString) -> Outcome<(BoundSocket, UnixListener)> {
    let shown = output::shown(path.display());
    match directory.probe(&name).map_err(|reason| cannot_be_made(&path, &reason))? {
        FoundKind::Nothing => {}
        FoundKind::Dead(identity) => {
            directory.remove(&name, identity).map_err(|error| cannot_be_made(&path, &error.to_string()))?;
        }
        FoundKind::Server(_) | FoundKind::Busy => {
            return Err(Failure::failed(format!(
                "another server answers on the control socket {shown}; name another with --control PATH"
            )));
        }
    }
    let made = directory.listen(&name);
    let (identity, listener) = made.map_err(|error| cannot_be_made(&path, &error.to_string()))?;
    Ok((BoundSocket { path, directory, name, identity }, listener))
}

fn cannot_be_made(path: &Path, reason: &str) -> Failure {
    let shown = output::shown(path.display());
    Failure::failed(format!("the control socket {shown} cannot be made: {reason}; name another with --control PATH"))
}

/// Connects to the server at the socket `named`, or to the only one that runs. Also returns the socket's path.
pub(crate) fn connect(named: Option<&Path>) -> Outcome<(PathBuf, UnixStream)> {
    let Some(path) = named else { return connect_to_the_one() };
    let probed = trust::parts(path).and_then(|(parent, name)| TrustedDirectory::named(&parent)?.probe(&name));
    let no_answer =
        |reason: &str| Failure::failed(format!("no server answers on {}: {reason}", output::shown(path.display())));
    match probed {
        Ok(FoundKind::Server(stream)) => Ok((path.to_path_buf(), stream)),
        Ok(FoundKind::Nothing) => Err(no_answer("there is no such file")),
        Ok(FoundKind::Dead(_)) => Err(no_answer("nobody listens there any more")),
        Ok(FoundKind::Busy) => Err(no_answer("it takes no more connections")),
        Err(reason) => Err(Failure::failed(format!(
            "the control socket {} is not trusted: {reason}; only the user who runs a server can talk to it",
            output::shown(path.display())
        ))),
    }
}

fn connect_to_the_one() -> Outcome<(PathBuf, UnixStream)> {
    let directories = directories();
    let Running { mut servers, distrusted } = running(&directories);
    let others =
        if servers.is_empty() { processes::neighbours(Path::new("/proc"), geteuid().as_raw()) } else { Vec::new() };
    if servers.len() > 1 {
        let paths: Vec<PathBuf> = servers.into_iter().map(|(path, _)| path).collect();
        return Err(Failure::wrong_use(format!(
            "{} servers are running; choose one with --control PATH:\n  {}",
            paths.len(),
            list(&paths, "\n  ")
        )));
    }
    match servers.pop() {
        Some((path, Some(stream))) => Ok((path, stream)),
        Some((path, None)) => {
            Err(Failure::failed(format!("the server on {} takes no more connections", output::shown(path.display()))))
        }
        None if !others.is_empty() => Err(Failure::failed(owned_by_others(&others))),
        None => {
            let passed: String = distrusted.iter().map(|reason| format!("; not looked at: {reason}")).collect();
            Err(Failure::failed(format!(
                "no server is running (no control socket in {}{passed}); start one with `afflux serve DIR`, or \
                 name its socket with --control PATH",
                list(&directories, ", ")
            )))
        }
    }
}

/// The error when only other users' servers run.
fn owned_by_others(others: &[Neighbour]) -> String {
    let one = |other: &Neighbour| match other.uid {
        0 => format!("root runs one (process {}): sudo {}", other.pid, command_line::own("afflux")),
        uid => format!("user {uid} runs one (process {}): sudo -u '#{uid}' {}", other.pid, command_line::own("afflux")),
    };
    let lines: Vec<String> = others.iter().map(one).collect();
    format!("no server of this user is running; a server answers the user who runs it:\n  {}", lines.join("\n  "))
}

fn list(paths: &[PathBuf], between: &str) -> String {
    paths.iter().map(|path| output::shown(path.display())).collect::<Vec<_>>().join(between)
}

#[derive(Debug, Default)]
struct Running {
    /// The sockets with a listening server, by path; none for the connection if the server accepts none.
    servers: Vec<(PathBuf, Option<UnixStream>)>,
    /// Sockets that are not this user's, and were not touched.
    distrusted: Vec<String>,
}

/// The servers of this user in `directories`. Removes this user's sockets without a listener.
fn running(directories: &[PathBuf]) -> Running {
    let mut found = Running::default();
    for path in directories {
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            continue;
        }
        match TrustedDirectory::private(path) {
            Ok(directory) => look_in(path, &directory, &mut found),
            Err(reason) => found.distrusted.push(reason),
        }
    }
    found.servers.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn look_in(path: &Path, directory: &TrustedDirectory, found: &mut Running) {
    // Without the lock, a socket that seems dead may belong to a server that is about to listen.
    let may_remove = directory.try_lock();
    let Ok(entries) = fs::read_dir(path) else { return };
    for name in entries.take(SOCKETS_MAX).filter_map(|entry| Some(entry.ok()?.file_name())) {
        let path = path.join(&name);
        if path.extension().is_none_or(|extension| extension != "sock") {
            continue;
        }
        match directory.probe(&name) {
            Ok(FoundKind::Server(stream)) => found.servers.push((path, Some(stream))),
            Ok(FoundKind::Busy) => found.servers.push((path, None)),
            Ok(FoundKind::Dead(identity)) if may_remove => {
                let _ = directory.remove(&name, identity);
            }
            Ok(FoundKind::Dead(_) | FoundKind::Nothing) => {}
            Err(reason) => found.distrusted.push(reason),
        }
    }
}
