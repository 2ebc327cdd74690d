//! The processes of this host, and the one that prevents us from listening on a port.
//!
//! Owns: their numbers, programs and descriptors; the servers among them, other users' too; the words about an address
//! on which nobody can listen.
//! Does not own: their uses of a disk (`eject::users`), listening.
//! Invariants: a process that ends meanwhile is omitted, or has no name. Nothing of another user's server is touched.
//! Nothing is guessed that /proc does not show to this user. The search for a port's owner ends in time: the kernel
//! shows no descriptors of a process in execve, and that process may wait for a mount that this server is about to
//! serve.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, iter, thread};

use afflux_report::failure::Failure;
use afflux_report::output;

/// The program of a server, as the kernel names it.
pub(crate) const SERVER: &str = "afflux";

pub(crate) fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name of a process's program; empty if the process has ended.
pub(crate) fn program(process: u32) -> String {
    let program = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&program).trim_end().to_owned()
}

/// The targets of a process's descriptors, as far as this user may see them.
pub(crate) fn links(process: u32) -> impl Iterator<Item = PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|entry| fs::read_link(entry.path()).ok())
}

/// Whether the process holds nothing any more, though its parent may not have asked for its end yet.
pub(crate) fn has_ended(process: u32) -> bool {
    has_nothing_open(&fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default())
}

/// The number of a process's threads in its `stat`, counted behind its name.
const THREADS: usize = 17;

/// The same by the process's `stat`; nothing if the process is gone.
fn has_nothing_open(stat: &str) -> bool {
    // The program's name ends at the last parenthesis, and may hold spaces.
    let Some((_, fields)) = stat.rsplit_once(") ") else { return true };
    // Files are closed with the last thread. The first one may end earlier.
    let threads: Option<u32> = fields.split(' ').nth(THREADS).and_then(|count| count.parse().ok());
    fields.starts_with(['Z', 'X']) && threads.is_none_or(|threads| threads <= 1)
}

/// Processes that may be servers.
pub(crate) fn servers() -> Vec<u32> {
    all().filter(|process| program(*process) == SERVER).collect()
}

/// Most servers of other users that are named.
const NAMED_MAX: usize = 8;

/// A server of another user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) pid: u32,
    pub(crate) uid: u32,
}

/// The servers in `proc` that do not belong to this user, by process number.
pub(crate) fn neighbours(proc: &Path, own: u32) -> Vec<Neighbour> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let server = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let uid = entry.metadata().ok()?.uid();
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        (uid != own && is_serve(&words)).then_some(Neighbour { pid, uid })
    };
    let mut found: Vec<Neighbour> = entries.filter_map(server).collect();
    found.sort_by_key(|neighbour| neighbour.pid);
    found.truncate(NAMED_MAX);
    found
}

/// Whether a command line is that of `afflux serve`.
fn is_serve(words: &[u8]) -> bool {
    let mut words = words.split(|byte| *byte == 0);
    let program = words.next().and_then(|word| word.rsplit(|byte| *byte == b'/').next());
    program == Some(b"afflux") && words.next() == Some(b"serve")
}

const SEARCH_MAX: Duration = Duration::from_secs(1);
/// The port of NFS servers.
const NFS_PORT: u16 = 2049;

/// A program that listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PortOwner {
    pub(crate) process: u32,
    /// Its name in the kernel: up to 15 bytes.
    pub(crate) program: String,
}

/// The program that occupies the address `wanted`, as far as this user can see.
pub(crate) fn of(wanted: SocketAddr) -> Option<PortOwner> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let sockets: Vec<String> =
        tables.iter().flat_map(|table| in_the_way(table, wanted)).map(|inode| format!("socket:[{inode}]")).collect();
    if sockets.is_empty() {
        return None;
    }
    let (found, search) = mpsc::channel();
    // The thread of a search that takes longer stays until the kernel answers, or the process ends.
    thread::Builder::new().name("port holder".to_owned()).spawn(move || found.send(with_any(&sockets))).ok()?;
    search.recv_timeout(SEARCH_MAX).ok()?
}

/// The error of a program that cannot listen on the address of a flag.
pub(crate) fn cannot_listen(flag: &str, address: SocketAddr, error: &io::Error) -> Failure {
    let ip = address.ip();
    Failure::failed(match error.kind() {
        ErrorKind::AddrInUse => {
            let free = format!("{flag} ({} picks a free port)", SocketAddr::new(ip, 0));
            match of(address) {
                Some(PortOwner { process, .. }) if process == std::process::id() => {
                    format!("{flag}: this server has {address} for another setting already; choose another with {free}")
                }
                Some(PortOwner { process, program }) if program == SERVER => format!(
                    "{flag}: {address} is in use by Afflux itself: process {process} serves there already. `afflux stat` \
                     shows what; `kill {process}` (or Ctrl-C where it runs) writes everything and stops it; or choose \
                     another address with {free}"
                ),
                owner => {
                    let named = |it: PortOwner| format!(" ({}, process {})", output::shown(it.program), it.process);
                    let owner = owner.map(named).unwrap_or_else(|| unseen(address.port()).to_owned());
                    format!("{flag}: {address} is in use by another program{owner}; choose another with {free}")
                }
            }
        }
        ErrorKind::AddrNotAvailable => format!("{flag}: {ip} is not an address of this machine"),
        ErrorKind::PermissionDenied => {
            format!("{flag}: this user may not listen on {address}; ports from 1024 up need no privilege")
        }
        _ => format!("{flag}: cannot listen on {address}: {error}"),
    })
}

/// Who may have a port that no process is seen to have: the kernel's own sockets have none.
fn unseen(port: u16) -> &'static str {
    match port {
        NFS_PORT => ", perhaps the kernel's NFS server (`sudo systemctl stop nfs-server` ends it)",
        _ => "",
    }
}

/// Finds the program that has any of these sockets. The search begins with this process, and waits for processes in
/// execve.
fn with_any(sockets: &[String]) -> Option<PortOwner> {
    let is_sought = |target: PathBuf| sockets.iter().any(|socket| *socket == target.to_string_lossy());
    let mut all = iter::once(std::process::id()).chain(all());
    let process = all.find(|process| links(*process).any(is_sought))?;
    Some(PortOwner { process, program: program(process) })
}

/// The inodes of the sockets in a table of /proc/net that occupy `wanted`.
fn in_the_way(table: &str, wanted: SocketAddr) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let lines = table.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (local, state) = (address(fields.nth(1)?)?, fields.nth(1)?);
        let inode: u64 = fields.nth(5)?.parse().ok()?;
        let any = local.ip().is_unspecified() || wanted.ip().is_unspecified();
        let same = local.ip().to_canonical() == wanted.ip().to_canonical();
        (state == LISTEN && local.port() == wanted.port() && (same || any)).then_some(inode)
    });
    lines.collect()
}

/// An address in the form of these tables: words of 32 bits in the machine's order, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(host.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match host.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
            }
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests;
