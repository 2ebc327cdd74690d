//! Checks that a file at a path belongs to this user.
//!
//! Owns: the check of directories, sockets and the servers behind them before anything there is believed or removed.
//! Does not own: the list of directories, and the requests to a server (`socket_paths`, `control`).
//! Invariants: a symbolic link at a socket's path is never followed. Nothing is removed but this user's sockets without
//! a listener. A stream that is returned leads to a server that this user runs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, open, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use rustix::process::geteuid;

use afflux_report::output;

/// Longest wait for a server whose queue of connections is full.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A checked directory. The open descriptor ensures that it stays the same directory.
#[derive(Debug)]
pub(super) struct TrustedDirectory {
    fd: OwnedFd,
    path: PathBuf,
}

/// The kind of file at a socket's path.
#[derive(Debug)]
pub(super) enum FoundKind {
    Nothing,
    /// A socket of this user without a listener.
    Dead(FileIdentity),
    /// A server of this user.
    Server(UnixStream),
    /// A server whose queue of connections is full.
    Busy,
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileIdentity {
    device: u64,
    ino: u64,
}

impl FileIdentity {
    fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, ino: stat.st_ino }
    }
}

impl TrustedDirectory {
    /// Opens a directory that belongs to this user and is closed to all others.
    pub(super) fn private(path: &Path) -> Result<Self, String> {
        let shown = output::shown(path.display());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(|errno| match errno {
            // Kernels differ in the error of NOFOLLOW and DIRECTORY for a link.
            Errno::LOOP | Errno::NOTDIR => format!("{shown} is not a directory, or is a symbolic link"),
            Errno::ACCESS => format!("{shown} is closed to this user"),
            other => format!("{shown}: {other}"),
        })?;
        let found = fstat(&fd).map_err(|errno| format!("{shown}: {errno}"))?;
        if found.st_uid != geteuid().as_raw() {
            return Err(format!("{shown} belongs to user {}", found.st_uid));
        }
        if found.st_mode & 0o077 != 0 {
            return Err(format!("{shown} is open to others (`chmod 700 {shown}` if they have left nothing in it)"));
        }
        Ok(Self { fd, path: path.to_path_buf() })
    }

    /// Opens the directory that the user has named. Refuses a directory of a stranger, and a directory in which every
    /// user can replace files. The directory's group may be able to replace files: on many hosts each user has a group
    /// of their own. The owner of a socket and of its listener is checked in any case.
    pub(super) fn named(path: &Path) -> Result<Self, String> {
        let shown = output::shown(path.display());
        let failed = |errno: Errno| format!("{shown}: {errno}");
        let ours = |uid: u32| uid == geteuid().as_raw() || uid == 0;
        let link = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if FileType::from_raw_mode(link.st_mode).is_symlink() && !ours(link.st_uid) {
            return Err(format!("{shown} is a symbolic link of user {}", link.st_uid));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(failed)?;
        let found = fstat(&fd).map_err(failed)?;
        if !ours(found.st_uid) {
            return Err(format!("the directory {shown} belongs to user {}", found.st_uid));
        }
        let sticky = found.st_mode & 0o1000 != 0;
        if found.st_mode & 0o002 != 0 && !sticky {
            return Err(format!("every user may change files in the directory {shown}"));
        }
        Ok(Self { fd, path: path.to_path_buf() })
    }

    /// Prevents other servers and clients of this user from making and removing sockets here, until
    /// [`Directory::unlock`] or the directory's end. Only for private directories: elsewhere a stranger could take the
    /// lock and hold it.
    pub(super) fn lock(&self) -> io::Result<()> {
        Ok(flock(&self.fd, FlockOperation::LockExclusive)?)
    }

    /// Takes the lock if it is free.
    pub(super) fn try_lock(&self) -> bool {
        flock(&self.fd, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    pub(super) fn unlock(&self) {
        let _ = flock(&self.fd, FlockOperation::Unlock);
    }

    fn look(&self, name: &OsStr) -> Result<Option<Stat>, String> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(format!("{}: {errno}", output::shown(self.path.join(name).display()))),
        }
    }

    /// The kind of file at `name`, if it belongs to this user.
    pub(super) fn probe(&self, name: &OsStr) -> Result<FoundKind, String> {
        let path = self.path.join(name);
        let shown = output::shown(path.display());
        let Some(found) = self.look(name)? else { return Ok(FoundKind::Nothing) };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Socket => {}
            FileType::Symlink => return Err(format!("{shown} is a symbolic link")),
            _ => return Err(format!("there is a file of that name already: {shown} is not a socket")),
        }
        if found.st_uid != geteuid().as_raw() {
            return Err(format!("{shown} belongs to user {}", found.st_uid));
        }
        if found.st_mode & 0o077 != 0 {
            return Err(format!("{shown} is open to others (mode {:o})", found.st_mode & 0o777));
        }
        match address(&self.fd, &path).and_then(|address| connected(&address)) {
            Ok(stream) => {
                let peer = socket_peercred(&stream).map_err(|errno| format!("{shown}: {errno}"))?;
                if peer.uid != geteuid() {
                    return Err(format!("the server behind {shown} is run by user {}", peer.uid.as_raw()));
                }
                Ok(FoundKind::Server(stream))
            }
            Err(Errno::CONNREFUSED) => Ok(FoundKind::Dead(FileIdentity::of(&found))),
            Err(Errno::NOENT) => Ok(FoundKind::Nothing),
            Err(Errno::AGAIN) => Ok(FoundKind::Busy),
            Err(errno) => Err(format!("{shown}: {errno}")),
        }
    }

    /// Listens at `name`; only this user can connect, from the start.
    pub(super) fn listen(&self, name: &OsStr) -> io::Result<(FileIdentity, UnixListener)> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // `bind` makes the file with the socket's permissions, so that no other user can connect at any time.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &address(&self.fd, &self.path.join(name))?)?;
        let made = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let as_made = FileType::from_raw_mode(made.st_mode).is_socket()
            && (made.st_uid, made.st_mode & 0o077) == (geteuid().as_raw(), 0);
        if !as_made {
            return Err(io::Error::other("another program has put a file in its place"));
        }
        listen(&socket, BACKLOG)?;
        Ok((FileIdentity::of(&made), UnixListener::from(socket)))
    }

    /// Removes the file if it still is this one.
    pub(super) fn remove(&self, name: &OsStr, identity: FileIdentity) -> io::Result<()> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileIdentity::of(&found) == identity => Ok(unlinkat(&self.fd, name, AtFlags::empty())?),
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Connects to a path if the kernel says that the process `process` listens there.
pub(crate) fn connected_to_process(path: &Path, process: u32) -> Option<UnixStream> {
    let directory =
        open(parts(path).ok()?.0, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let stream = connected(&address(&directory, path).ok()?).ok()?;
    let peer = socket_peercred(&stream).ok()?;
    (u32::try_from(peer.pid.as_raw_nonzero().get()) == Ok(process)).then_some(stream)
}

/// The address of a path in an open directory. An address has 107 bytes; a longer path is addressed through the
/// descriptor.
fn address(directory: &OwnedFd, path: &Path) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new(path).or_else(|errno| match path.file_name() {
        Some(name) if errno == Errno::NAMETOOLONG => {
            let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
            SocketAddrUnix::new(by_descriptor.join(name))
        }
        _ => Err(errno),
    })
}

fn connected(address: &SocketAddrUnix) -> Result<UnixStream, Errno> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // This time limit also bounds the wait for a slot in the queue of connections.
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_MAX))?;
    connect(&socket, address)?;
    Ok(UnixStream::from(socket))
}

/// A path's directory, and its name in it.
pub(super) fn parts(path: &Path) -> Result<(PathBuf, OsString), String> {
    let name =
        path.file_name().ok_or_else(|| format!("{} is not the path of a file", output::shown(path.display())))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((directory.to_path_buf(), name.to_owned()))
}
