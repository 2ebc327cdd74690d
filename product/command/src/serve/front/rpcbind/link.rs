//! The connection to the host's rpcbind: its calls over a local socket (RFC 1833, version 4; RFC 5531).
//!
//! Owns: the form of its calls and replies.
//! Does not own: the meaning of entries.
//! Invariants: each call ends within [`SILENCE_MAX`] of silence. A reply is read within its own bytes, and has a bound.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

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
pub(super) struct NamedService {
    pub(super) program: u32,
    pub(super) version: u32,
    /// The transport, such as "tcp".
    pub(super) netid: String,
    pub(super) address: String,
}

impl NamedService {
    /// Whether the list has room for one of the two.
    pub(super) fn is_in_place_of(&self, other: &Self) -> bool {
        (self.program, self.version, &self.netid) == (other.program, other.version, &other.netid)
    }
}

/// The numbers of the socket, which differ after another start of an rpcbind.
pub(super) type SocketStamp = (u64, u64, i64, i64);

pub(super) struct Link {
    stream: UnixStream,
    number: u32,
}

impl Link {
    /// The rpcbind that is there, if one is.
    pub(super) fn stamp() -> Option<SocketStamp> {
        let socket = fs::metadata(SOCKET).ok()?;
        Some((socket.dev(), socket.ino(), socket.ctime(), socket.ctime_nsec()))
    }

    /// Connects. None where no rpcbind is.
    pub(super) fn open() -> io::Result<Option<Self>> {
        let stream = match UnixStream::connect(SOCKET) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            stream => stream?,
        };
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        Ok(Some(Self { stream, number: 0 }))
    }

    pub(super) fn list(&mut self) -> io::Result<Vec<NamedService>> {
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
    pub(super) fn add(&mut self, entry: &NamedService) -> io::Result<bool> {
        let reply = self.call(SET, &encoded(entry))?;
        Ok(word(&mut reply.as_slice())? != 0)
    }

    /// Removes an entry. False if the rpcbind refuses.
    pub(super) fn remove(&mut self, entry: &NamedService) -> io::Result<bool> {
        let reply = self.call(UNSET, &encoded(entry))?;
        Ok(word(&mut reply.as_slice())? != 0)
    }

    /// The results of a call.
    fn call(&mut self, procedure: u32, arguments: &[u8]) -> io::Result<Vec<u8>> {
        self.number += 1;
        let header = [self.number, 0, 2, RPCBIND, VERSION, procedure, 0, 0, 0, 0];
        let call: Vec<u8> =
            header.iter().flat_map(|word| word.to_be_bytes()).chain(arguments.iter().copied()).collect();
        let mark = LAST_FRAGMENT | call.len() as u32;
        self.stream.write_all(&[&mark.to_be_bytes()[..], &call].concat())?;
        let reply = self.record()?;
        let mut rest = reply.as_slice();
        let (number, kind, denied) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
        if (number, kind, denied) != (self.number, 1, 0) {
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
