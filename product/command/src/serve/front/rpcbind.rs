//! The server in the list of the host's rpcbind, where clients of version 3, showmount and autofs search for it.
//!
//! Owns: the services and addresses in that list, the rule by which another server has priority, the words about it;
//! the calls over a local socket (RFC 1833, version 4; RFC 5531).
//! Does not own: the services (crate `nfs`).
//! Invariants: no entry of another server that answers is touched. The list is optional: a failure is only reported. An
//! orderly end takes the entries out; those of a killed server are replaced by the next one. An rpcbind that starts
//! later gets the entries then. Each call ends within [`SILENCE_MAX`] of silence. A reply is read within its own bytes,
//! and has a bound.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::Duration;

use afflux_engine::lock;
use afflux_report::output;
use tracing::info;

use crate::serve::front::banner::reachable;

const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;
/// The lock service. It tells clients of version 3 that there are no locks.
const NLM: u32 = 100_021;

/// Time in which a server of this host takes a connection.
const ANSWER_WAIT: Duration = Duration::from_millis(500);

/// Checks between two tries while an rpcbind does not name this server.
const LOOKS_OF_A_TRY: u32 = 10;

/// The server's entry in the list, for as long as it serves.
pub(crate) struct Naming {
    listen: SocketAddr,
    has_version_4: bool,
    state: Mutex<NamingState>,
}

#[derive(Default)]
struct NamingState {
    /// From the first try to the end of the server.
    is_on: bool,
    /// The entries of this server in the list.
    entries: Option<Vec<NamedService>>,
    /// The rpcbind of the last try.
    tried: Option<SocketStamp>,
    /// Checks since then.
    looks: u32,
    said: Option<String>,
}

impl Naming {
    /// Of a server at an address.
    pub(crate) fn new(listen: SocketAddr, has_version_4: bool) -> Self {
        Self { listen, has_version_4, state: Mutex::default() }
    }

    /// Has the rpcbind name this server, now and later. A line for the user where an rpcbind is.
    pub(crate) fn begin(&self) -> Option<String> {
        let mut state = lock(&self.state);
        state.is_on = true;
        self.try_now(&mut state, Link::stamp())
    }

    /// Checks for an rpcbind that has started since the last try, or tries once more now and then. To be called once a
    /// second.
    pub(crate) fn look(&self) {
        let mut state = lock(&self.state);
        let there = Link::stamp();
        state.looks += 1;
        let is_due = state.entries.is_none() && state.looks >= LOOKS_OF_A_TRY;
        if !state.is_on || there.is_none() || (there == state.tried && !is_due) {
            return;
        }
        let before = state.said.clone();
        let said = self.try_now(&mut state, there);
        said.filter(|_| state.said != before).iter().for_each(|line| info!("{line}"));
    }

    fn try_now(&self, state: &mut NamingState, there: Option<SocketStamp>) -> Option<String> {
        let (entries, said) = register(self.listen, self.has_version_4);
        // One that does not answer yet is tried again soon.
        state.tried = there.filter(|_| said.is_some());
        (state.entries, state.looks) = (entries, 0);
        state.said.clone_from(&said);
        said
    }

    /// Takes the entries out of the list. The next server replaces those that stay.
    pub(crate) fn end(&self) {
        let entries = {
            let mut state = lock(&self.state);
            state.is_on = false;
            state.entries.take()
        };
        if let Some(entries) = entries
            && let Ok(Some(mut link)) = Link::open()
        {
            remove_all(&mut link, &entries);
        }
    }
}

/// Has the rpcbind name this server, unless it names another one. Returns the entries, and a line for the user where an
/// rpcbind is.
fn register(listen: SocketAddr, has_version_4: bool) -> (Option<Vec<NamedService>>, Option<String>) {
    let mut link = match Link::open() {
        Ok(Some(link)) => link,
        Ok(None) => return (None, None),
        Err(error) => return (None, Some(not_in_list(error))),
    };
    if listen.ip().to_canonical().is_loopback() {
        return (None, Some(not_in_list("other machines do not reach this address")));
    }
    match registered(&mut link, listen, has_version_4) {
        Ok(Ok(entries)) => {
            let note = "rpcbind names this server: clients of version 3 need no port, and their locks fail with ENOLCK";
            (Some(entries), Some(note.to_owned()))
        }
        Ok(Err(other)) => {
            let reason = format!(
                "another NFS server is in its list ({} at {}), and clients of version 3 find that one; this one takes \
                 port= and mountport=",
                other.netid, other.address
            );
            (None, Some(not_in_list(output::shown(reason))))
        }
        Err(error) => (None, Some(not_in_list(error))),
    }
}

fn not_in_list(reason: impl std::fmt::Display) -> String {
    format!("rpcbind does not name this server: {reason}")
}

/// The entries of this server, now in the list; or that of another server.
fn registered(
    link: &mut Link,
    listen: SocketAddr,
    has_version_4: bool,
) -> io::Result<Result<Vec<NamedService>, NamedService>> {
    let (wanted, list) = (entries(listen, has_version_4), link.list()?);
    let is_own_kind = |entry: &NamedService| matches!(entry.program, NFS | MOUNT | NLM) && !wanted.contains(entry);
    let of_others = list.into_iter().filter(is_own_kind);
    let (there, gone): (Vec<NamedService>, Vec<NamedService>) = of_others.partition(|entry| is_others(entry, listen));
    if let Some(other) = there.iter().find(|entry| entry.program != NLM) {
        return Ok(Err(other.clone()));
    }
    for entry in gone {
        link.remove(&entry)?;
    }
    // The host's own lock service, which a mount of version 3 on this host has, refuses our clients' locks as well.
    let has_locker = |entry: &NamedService| there.iter().any(|other| other.is_in_place_of(entry));
    let mut set = Vec::new();
    for entry in wanted.iter().filter(|entry| !has_locker(entry)) {
        if !link.add(entry)? {
            remove_all(link, &set);
            return Err(io::Error::other(format!(
                "it refuses program {} of version {} ({})",
                entry.program, entry.version, entry.netid
            )));
        }
        set.push(entry.clone());
    }
    Ok(Ok(set))
}

/// The entries of a server at an address.
fn entries(listen: SocketAddr, has_version_4: bool) -> Vec<NamedService> {
    let mut places = Vec::new();
    match listen.ip() {
        IpAddr::V6(address) => {
            places.push(("tcp6", listen.ip()));
            if address.is_unspecified() {
                places.push(("tcp", Ipv4Addr::UNSPECIFIED.into()));
            }
        }
        IpAddr::V4(_) => places.push(("tcp", listen.ip())),
    }
    let services = [(NFS, 3), (MOUNT, 3), (NLM, 4)].into_iter().chain(has_version_4.then_some((NFS, 4)));
    let of_service = |(program, version): (u32, u32)| {
        let entry = move |(netid, ip): &(&str, IpAddr)| NamedService {
            program,
            version,
            netid: (*netid).to_owned(),
            address: universal(SocketAddr::new(*ip, listen.port())),
        };
        places.iter().map(entry).collect::<Vec<_>>()
    };
    services.flat_map(of_service).collect()
}

/// Whether another server has set the entry and still answers. This server and its killed predecessor are no others.
fn is_others(entry: &NamedService, own: SocketAddr) -> bool {
    let Some(address) = socket_address(&entry.address).filter(|_| entry.netid.starts_with("tcp")) else { return true };
    let shares_address = address.ip() == own.ip() || address.ip().is_unspecified() || own.ip().is_unspecified();
    if address.port() == own.port() && shares_address {
        // This server has the port, so nobody else has.
        return false;
    }
    let reached = SocketAddr::new(reachable(address.ip()), address.port());
    let connected = TcpStream::connect_timeout(&reached, ANSWER_WAIT);
    !connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// An address as RPC writes it: that of the host, and the two bytes of the port.
fn universal(address: SocketAddr) -> String {
    let [high, low] = address.port().to_be_bytes();
    format!("{}.{high}.{low}", address.ip())
}

/// The address in this form.
fn socket_address(universal: &str) -> Option<SocketAddr> {
    let (rest, low) = universal.rsplit_once('.')?;
    let (ip, high) = rest.rsplit_once('.')?;
    let port = u16::from_be_bytes([high.parse().ok()?, low.parse().ok()?]);
    Some(SocketAddr::new(ip.parse().ok()?, port))
}

fn remove_all(link: &mut Link, entries: &[NamedService]) {
    entries.iter().for_each(|entry| drop(link.remove(entry)));
}

/// An rpcbind knows by this socket who sets an entry, also without a port below 1024.
const SOCKET: &str = "/run/rpcbind.sock";
const SILENCE_MAX: Duration = Duration::from_secs(2);
const REPLY_BYTES_MAX: usize = 1 << 20;

const RPCBIND: u32 = 100_000;
const VERSION: u32 = 4;
const SET: u32 = 1;
const UNSET: u32 = 2;
const DUMP: u32 = 4;
const LAST_FRAGMENT: u32 = 1 << 31;

/// A service and its address in the list.
#[derive(Clone, PartialEq, Eq, Debug)]
struct NamedService {
    program: u32,
    version: u32,
    /// The transport, such as "tcp".
    netid: String,
    address: String,
}

impl NamedService {
    /// Whether the list can hold only one of the two.
    fn is_in_place_of(&self, other: &Self) -> bool {
        (self.program, self.version, &self.netid) == (other.program, other.version, &other.netid)
    }
}

/// The numbers of the socket, which differ after another start of an rpcbind.
type SocketStamp = (u64, u64, i64, i64);

struct Link {
    stream: UnixStream,
    xid: u32,
}

impl Link {
    /// The rpcbind that is there, if one is.
    fn stamp() -> Option<SocketStamp> {
        let socket = fs::metadata(SOCKET).ok()?;
        Some((socket.dev(), socket.ino(), socket.ctime(), socket.ctime_nsec()))
    }

    /// Connects. None where no rpcbind is.
    fn open() -> io::Result<Option<Self>> {
        let stream = match UnixStream::connect(SOCKET) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            stream => stream?,
        };
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        Ok(Some(Self { stream, xid: 0 }))
    }

    fn list(&mut self) -> io::Result<Vec<NamedService>> {
        let reply = self.call(DUMP, &[])?;
        let (mut rest, mut entries) = (reply.as_slice(), Vec::new());
        while word(&mut rest)? != 0 {
            let (program, version) = (word(&mut rest)?, word(&mut rest)?);
            let (netid, address) = (text(&mut rest)?, text(&mut rest)?);
            let _owner = text(&mut rest)?;
            entries.push(NamedService { program, version, netid, address });
        }
        Ok(entries)
    }

    /// Adds an entry. False if the rpcbind refuses it.
    fn add(&mut self, entry: &NamedService) -> io::Result<bool> {
        let reply = self.call(SET, &encoded(entry))?;
        Ok(word(&mut reply.as_slice())? != 0)
    }

    /// Removes an entry. False if the rpcbind refuses.
    fn remove(&mut self, entry: &NamedService) -> io::Result<bool> {
        let reply = self.call(UNSET, &encoded(entry))?;
        Ok(word(&mut reply.as_slice())? != 0)
    }

    /// The results of a call.
    fn call(&mut self, procedure: u32, arguments: &[u8]) -> io::Result<Vec<u8>> {
        self.xid += 1;
        let header = [self.xid, 0, 2, RPCBIND, VERSION, procedure, 0, 0, 0, 0];
        let call: Vec<u8> =
            header.iter().flat_map(|word| word.to_be_bytes()).chain(arguments.iter().copied()).collect();
        let mark = LAST_FRAGMENT | call.len() as u32;
        self.stream.write_all(&[&mark.to_be_bytes()[..], &call].concat())?;
        let reply = self.record()?;
        let mut rest = reply.as_slice();
        let (xid, kind, denied) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
        if (xid, kind, denied) != (self.xid, 1, 0) {
            return Err(io::Error::other("it denies the call"));
        }
        let _verifier = (word(&mut rest)?, text(&mut rest)?);
        match word(&mut rest)? {
            0 => Ok(rest.to_vec()),
            status => Err(io::Error::other(format!("it does not take the call (status {status} of RFC 5531)"))),
        }
    }

    fn record(&mut self) -> io::Result<Vec<u8>> {
        let mut record = Vec::new();
        loop {
            let mut mark = [0; 4];
            self.stream.read_exact(&mut mark)?;
            let mark = u32::from_be_bytes(mark);
            let (start, bytes) = (record.len(), (mark & !LAST_FRAGMENT) as usize);
            if start + bytes > REPLY_BYTES_MAX {
                return Err(io::Error::other("its reply is too long"));
            }
            record.resize(start + bytes, 0);
            self.stream.read_exact(&mut record[start..])?;
            if mark & LAST_FRAGMENT != 0 {
                return Ok(record);
            }
        }
    }
}

fn encoded(entry: &NamedService) -> Vec<u8> {
    let mut bytes = [entry.program.to_be_bytes(), entry.version.to_be_bytes()].concat();
    // The rpcbind knows the owner by the socket.
    for text in [&entry.netid[..], &entry.address, ""] {
        bytes.extend((text.len() as u32).to_be_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

fn word(rest: &mut &[u8]) -> io::Result<u32> {
    let (word, behind) = rest.split_first_chunk().ok_or_else(cut)?;
    *rest = behind;
    Ok(u32::from_be_bytes(*word))
}

fn text(rest: &mut &[u8]) -> io::Result<String> {
    let bytes = word(rest)? as usize;
    let text = rest.get(..bytes).ok_or_else(cut)?;
    let text = String::from_utf8_lossy(text).into_owned();
    *rest = rest.get(bytes.next_multiple_of(4)..).ok_or_else(cut)?;
    Ok(text)
}

fn cut() -> io::Error {
    io::Error::other("its reply ends too early")
}

#[cfg(test)]
mod tests;
