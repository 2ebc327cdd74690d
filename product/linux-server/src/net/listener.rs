//! Sockets that accept connections.
//!
//! Owns: their descriptors; the path of a local one.
//! Does not own: accepting (`serve`).
//! Invariants: an error names the address. A path is taken over only from a server that is gone. A dropped listener
//! takes no connection, even if another process holds a copy of its descriptor. A start that fails leaves the socket of
//! an earlier server as it was.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afflux_frontend::{Origin, Peer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getpeername, getsockname, listen,
    shutdown, socket_with, sockopt,
};

use super::origin::Origins;

/// Connections that wait to be accepted. Each connection beyond them would lose a second: the kernel drops its first
/// packets, and the client tries again.
const BACKLOG: i32 = 1_024;
/// How long a start waits for its address. A killed server's sockets stay open until the kernel has freed its rings,
/// some hundredths of a second after the process is gone.
const IN_USE_WAIT: Duration = Duration::from_secs(1);
const IN_USE_PAUSE: Duration = Duration::from_millis(10);
/// The most of a peer's bytes that the kernel holds while we do not want them. (It takes the double.)
const RECEIVE_BUFFER_BYTES: usize = 512 << 10;
/// A peer that acknowledges nothing for this long is gone: three of an NFS client's usual timeouts.
const USER_TIMEOUT_MS: u32 = 180_000;
/// Congestion control for connections of processes on this host: the first that may be set. There is no network to
/// spare. Where the host's own algorithm paces (BBR), moving a MiB to a client costs a fifth more.
const LOCAL_CONGESTION: [&str; 2] = ["cubic", "reno"];
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 6;

/// Why nothing can listen at an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another server has the address.
    #[error("cannot listen on {address}: it is in use by another program")]
    InUse {
        /// Address and port to listen on.
        address: String,
    },
    /// The path holds another kind of file than a socket.
    #[error("cannot listen on {address}: there is a file that is no socket")]
    NotASocket {
        /// Address and port to listen on.
        address: String,
    },
    /// The socket of an earlier server is another one.
    #[error("the socket of an earlier server is not for {address}: {reason}")]
    Unfit {
        /// Address and port to listen on.
        address: String,
        /// How the socket differs from the one that is wanted.
        reason: &'static str,
    },
    /// The host refused.
    #[error("cannot listen on {address}: {source}")]
    Host {
        /// Address and port to listen on.
        address: String,
        /// The host's answer.
        source: std::io::Error,
    },
}

/// A listening socket.
pub struct Listener {
    pub(super) fd: Arc<OwnedFd>,
    address: Address,
    /// This process takes connections.
    listens: AtomicBool,
    /// Connections may be older than this process.
    is_taken_over: bool,
}

enum Address {
    Internet(SocketAddr),
    Local(PathBuf),
}

impl Listener {
    /// Listens for TCP at `address`, as [`Self::tcp_bound`] and [`Self::listen`].
    pub fn tcp(address: SocketAddr) -> Result<Self, ListenError> {
        let listener = Self::tcp_bound(address)?;
        listener.listen()?;
        Ok(listener)
    }

    /// Takes the TCP address; port 0 takes a free one. Connections are refused until [`Self::listen`]. Blocks up to a
    /// second while the address is in use, so that a server can be started right after another one was killed.
    pub fn tcp_bound(address: SocketAddr) -> Result<Self, ListenError> {
        let open = || -> Result<(OwnedFd, SocketAddr), Errno> {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            sockopt::set_socket_reuseaddr(&fd, true)?;
            // Set before it listens: connections inherit the size, and with it the bound of their windows.
            sockopt::set_socket_recv_buffer_size(&fd, RECEIVE_BUFFER_BYTES)?;
            bind(&fd, &address)?;
            let bound = SocketAddr::try_from(getsockname(&fd)?)?;
            Ok((fd, bound))
        };
        let deadline = Instant::now() + IN_USE_WAIT;
        let opened = loop {
            match open() {
                Err(Errno::ADDRINUSE) if Instant::now() < deadline => thread::sleep(IN_USE_PAUSE),
                other => break other,
            }
        };
        let (fd, bound) = opened.map_err(|error| refused(address.to_string(), error))?;
        Ok(Self::over(fd, Address::Internet(bound)))
    }

    /// Takes over a socket that listens at `address` for an earlier server; port 0 stands for any. Connections wait
    /// until [`Self::listen`].
    ///
    /// # Errors
    /// It is no such socket.
    pub fn taken_over(socket: OwnedFd, address: SocketAddr) -> Result<Self, ListenError> {
        let unfit = |reason| ListenError::Unfit { address: address.to_string(), reason };
        let is_stream = sockopt::socket_type(&socket).map_err(|_| unfit("it is no socket"))? == SocketType::STREAM;
        let bound = getsockname(&socket).ok().and_then(|bound| SocketAddr::try_from(bound).ok());
        let Some(bound) = bound.filter(|_| is_stream) else { return Err(unfit("it is not for TCP")) };
        if bound.ip() != address.ip() || address.port() != 0 && bound.port() != address.port() {
            return Err(unfit("it has another address"));
        }
        if sockopt::socket_acceptconn(&socket) != Ok(true) {
            return Err(unfit("it does not listen"));
        }
        let mut listener = Self::over(socket, Address::Internet(bound));
        listener.is_taken_over = true;
        Ok(listener)
    }

    /// Whether somebody waits for replies on a connection. While nobody served, clients may have come, sent calls and
    /// gone. They may have repeated these calls elsewhere, and later calls must not meet the old ones.
    pub(super) fn has_client(&self, connection: &OwnedFd) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut ends = [PollFd::new(connection, PollFlags::RDHUP)];
        !self.is_taken_over || poll(&mut ends, Some(&at_once)) == Ok(0)
    }

    fn over(fd: OwnedFd, address: Address) -> Self {
        Self { fd: Arc::new(fd), address, listens: AtomicBool::new(false), is_taken_over: false }
    }

    /// The socket, for the service manager's store.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Lets connections come.
    pub fn listen(&self) -> Result<(), ListenError> {
        self.listens.store(true, Ordering::Relaxed);
        let name = || match &self.address {
            Address::Internet(address) => address.to_string(),
            Address::Local(path) => path.display().to_string(),
        };
        listen(&self.fd, BACKLOG).map_err(|error| refused(name(), error))
    }

    /// Listens at a path that only this user can connect to. Takes over the path of a server that is gone. The drop of
    /// the listener removes the path.
    pub fn local(path: &Path) -> Result<Self, ListenError> {
        let name = path.display().to_string();
        let host = |error: Errno| refused(name.clone(), error);
        let address = SocketAddrUnix::new(path).map_err(host)?;
        let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let fd = socket().map_err(host)?;
        // The socket's file is made with these permissions: at no moment can another user connect.
        fchmod(&fd, Mode::RUSR | Mode::WUSR).map_err(host)?;
        match bind(&fd, &address) {
            Err(Errno::ADDRINUSE) => {
                match connect(socket().map_err(host)?, &address) {
                    Err(Errno::CONNREFUSED) => {}
                    Err(Errno::NOTSOCK | Errno::PROTOTYPE) => {
                        return Err(ListenError::NotASocket { address: name });
                    }
                    _ => return Err(ListenError::InUse { address: name }),
                }
                if !is_socket(path) {
                    return Err(ListenError::NotASocket { address: name });
                }
                std::fs::remove_file(path).map_err(|source| ListenError::Host { address: name.clone(), source })?;
                bind(&fd, &address).map_err(host)?;
            }
            other => other.map_err(host)?,
        }
        let listener = Self::over(fd, Address::Local(path.to_owned()));
        listener.listen()?;
        Ok(listener)
    }

    /// The TCP address; with the actual port if port 0 was requested.
    pub fn internet_address(&self) -> Option<SocketAddr> {
        match self.address {
            Address::Internet(address) => Some(address),
            Address::Local(_) => None,
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Internet(address) => address.fmt(f),
            Address::Local(path) => path.display().fmt(f),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Closing is not enough: a program that another thread is just starting has a copy of each descriptor for a
        // moment. As long as there is a copy, the kernel takes connections.
        if self.listens.load(Ordering::Relaxed) {
            let _ = shutdown(&self.fd, Shutdown::Both);
        }
        if let Address::Local(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

fn refused(address: String, error: Errno) -> ListenError {
    match error {
        Errno::ADDRINUSE => ListenError::InUse { address },
        _ => ListenError::Host { address, source: error.into() },
    }
}

/// Sets up an accepted connection and identifies its peer. The kernel is asked about every peer: a process of this host
/// may come by any of the host's addresses.
pub(super) fn accepted(socket: &OwnedFd, origins: &mut Origins) -> Result<Peer, Errno> {
    let peer_name = || Ok::<_, Errno>(getpeername(socket.as_fd())?.and_then(|name| SocketAddr::try_from(name).ok()));
    let Some(address) = peer_name()? else {
        let owner = sockopt::socket_peercred(socket)?.uid.as_raw();
        return Ok(Peer { address: Ipv4Addr::LOCALHOST.into(), port: 0, origin: Origin::User(owner) });
    };
    sockopt::set_tcp_nodelay(socket, true)?;
    if address.ip().to_canonical().is_loopback() {
        // If no algorithm may be set, the host's own stays.
        let _ = LOCAL_CONGESTION.iter().find(|name| sockopt::set_tcp_congestion(socket, name).is_ok());
    }
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_COUNT)?;
    sockopt::set_tcp_user_timeout(socket, USER_TIMEOUT_MS)?;
    let own = SocketAddr::try_from(getsockname(socket)?)?;
    // A failed question ends the connection, since its peer may be a process of this host.
    let origin = origins.of(address, own)?;
    // The connection still exists, so no other socket had these two addresses during the question.
    peer_name()?;
    Ok(Peer { address: address.ip().to_canonical(), port: address.port(), origin })
}
