//! Where control sockets are.
//!
//! Owns: the directories, their safety, which servers run.
//! Does not own: what is said over a socket.
//! Invariants: a directory of ours belongs to this user and is closed to others, or is not used; a
//! socket that nobody listens on is removed, one that somebody listens on never.

#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use rustix::process::geteuid;

use crate::failure::{Failure, Outcome};

/// Most sockets that are looked at in a directory.
const SOCKETS_MAX: usize = 1024;

/// The directories that may hold sockets of this user's servers, the preferred one first.
fn directories() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    found.extend(runtime.filter(|path| path.is_absolute()).map(|path| path.join("afflux")));
    if geteuid().is_root() {
        found.push(PathBuf::from("/run/afflux"));
    }
    found.push(env::temp_dir().join(format!("afflux-{}", geteuid().as_raw())));
    found
}

/// Listens for a server on `listen`: at `named`, or where clients look.
pub(crate) fn bind(named: Option<&Path>, listen: SocketAddr) -> Outcome<(PathBuf, UnixListener)> {
    if let Some(path) = named {
        return Ok((path.to_path_buf(), bind_at(path)?));
    }
    let name = format!("{}-{}.sock", listen.ip(), listen.port());
    let mut last = String::new();
    for directory in directories() {
        match prepare(&directory) {
            Ok(()) => {
                let path = directory.join(&name);
                let listener = bind_at(&path)?;
                return Ok((path, listener));
            }
            Err(reason) => last = reason,
        }
    }
    Err(Failure::failed(format!("no place for the control socket ({last}); name one with --control PATH")))
}

/// Makes the directory, or makes sure that it is ours alone.
fn prepare(directory: &Path) -> Result<(), String> {
    let shown = directory.display();
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(format!("{shown}: {error}"));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(directory).map_err(|error| format!("{shown}: {error}"))?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Err(format!("{shown} is not a directory of this user's alone"));
    }
    Ok(())
}

fn bind_at(path: &Path) -> Outcome<UnixListener> {
    let shown = path.display();
    let failed = |error: io::Error| Failure::failed(format!("cannot listen on the control socket {shown}: {error}"));
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(Failure::failed(format!(
                "the control socket {shown} cannot be made: there is a file of that name already"
            )));
        }
        if listening(path) {
            return Err(Failure::failed(format!(
                "another server answers on the control socket {shown}; name another with --control PATH"
            )));
        }
        fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Whether somebody listens there.
fn listening(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
    }
}

/// The socket to talk to: the one named, or that of the one server that runs.
pub(crate) fn find(named: Option<&Path>) -> Outcome<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_path_buf());
    }
    let directories = directories();
    let found = running(&directories);
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::failed(format!(
            "no server is running (no control socket in {}); start one with `afflux serve DIR`, or \
             name its socket with --control PATH",
            list(&directories, ", ")
        ))),
        several => Err(Failure::wrong_use(format!(
            "{} servers are running; choose one with --control PATH:\n  {}",
            several.len(),
            list(several, "\n  ")
        ))),
    }
}

fn list(paths: &[PathBuf], between: &str) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(between)
}

/// The sockets in `directories` that a server listens on. Removes those that nobody listens on.
fn running(directories: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in directories {
        let Ok(entries) = fs::read_dir(directory) else {
            continue;
        };
        for path in entries.take(SOCKETS_MAX).filter_map(|entry| Some(entry.ok()?.path())) {
            if path.extension().is_none_or(|extension| extension != "sock") {
                continue;
            }
            match UnixStream::connect(&path) {
                Ok(_) => found.push(path),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    let _ = fs::remove_file(&path);
                }
                Err(_) => {}
            }
        }
    }
    found.sort();
    found
}
