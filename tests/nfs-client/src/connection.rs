//! The connection: calls out, replies in.
//!
//! Owns: the socket, call numbers, credentials, record marks, the RPC header of calls and replies.
//! Does not own: what calls mean (`procedures`).
//! Invariants: numbers start at a random place, as those of real clients do, so that two runs of a
//! test are not taken for one client that repeats itself.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::wire::{Fields, Malformed, Results};

/// NFS version 3: program and version.
pub const NFS: (u32, u32) = (100_003, 3);
/// MOUNT version 3: program and version.
pub const MOUNT: (u32, u32) = (100_005, 3);

/// Replies longer than this are not believed.
const REPLY_BYTES_MAX: usize = 80 << 20;
const LAST_FRAGMENT: u32 = 1 << 31;

/// Why a call has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket failed, or the server closed it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The reply cannot be read.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The call was refused by RPC: reply status (0 accepted, 1 denied), then the words after it.
    #[error("refused by RPC: {words:?}")]
    Refused {
        /// The words of the refusal.
        words: Vec<u32>,
    },
    /// The procedure failed.
    #[error("{procedure}: status {status}")]
    Status {
        /// Which.
        procedure: &'static str,
        /// The protocol's status code.
        status: u32,
    },
    /// A reply to no call that is in flight.
    #[error("a reply to call {xid:#x}, which is not in flight")]
    Unasked {
        /// The number in it.
        xid: u32,
    },
}

impl Error {
    /// The status of a procedure that failed.
    pub fn status(&self) -> Option<u32> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// Who the calls say to come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// User and group 0.
pub const USER_ROOT: User = User { uid: 0, gid: 0 };

/// A reply to an accepted call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The call's number.
    pub xid: u32,
    /// The procedure's results.
    pub results: Vec<u8>,
}

/// Calls as records: their numbers, and who they say to come from.
pub struct Envelope {
    xid: u32,
    credential: Vec<u8>,
}

impl Envelope {
    /// Of user and group 0, with numbers from `xid` on.
    pub fn new(xid: u32) -> Self {
        let mut envelope = Self { xid, credential: Vec::new() };
        envelope.set_user(Some(USER_ROOT));
        envelope
    }

    /// Makes further calls come from `user`; from nobody, by AUTH_NONE.
    pub fn set_user(&mut self, user: Option<User>) {
        const AUTH_NONE: u32 = 0;
        match user {
            None => self.set_credential(AUTH_NONE, b""),
            Some(user) => self.set_user_in(user, &[]),
        }
    }

    /// Makes further calls come from `user`, who is in further groups, too: of any number, though a credential can
    /// have 16.
    pub fn set_user_in(&mut self, User { uid, gid }: User, groups: &[u32]) {
        const AUTH_SYS: u32 = 1;
        let body = Fields::default().u32(0).opaque(b"afflux-test").u32(uid).u32(gid).u32(groups.len() as u32);
        self.set_credential(AUTH_SYS, &groups.iter().fold(body, |body, group| body.u32(*group)).0);
    }

    /// Has further calls carry these bytes as a credential of this flavour, whether they are one or not.
    pub fn set_credential(&mut self, flavour: u32, body: &[u8]) {
        self.credential = Fields::default().u32(flavour).opaque(body).0;
    }

    /// One call's number, and the call as a whole record, mark included.
    pub fn record(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> (u32, Vec<u8>) {
        const CALL: u32 = 0;
        const RPC_VERSION: u32 = 2;
        let xid = self.xid;
        self.xid = xid.wrapping_add(1);
        let body = 24 + self.credential.len() + 8 + arguments.len();
        let header = Fields(Vec::with_capacity(4 + body))
            .u32(LAST_FRAGMENT | body as u32)
            .u32(xid)
            .u32(CALL)
            .u32(RPC_VERSION)
            .u32(program.0)
            .u32(program.1)
            .u32(procedure)
            .fixed(&self.credential)
            .u32(0)
            .u32(0);
        (xid, header.fixed(arguments).0)
    }
}

/// A connection to a server of NFS and MOUNT on one port.
pub struct Client {
    pub(crate) socket: TcpStream,
    envelope: Envelope,
    received: Vec<u8>,
}

impl Client {
    /// Connects, as user and group 0. Small calls are not held back by the kernel.
    pub fn connect(address: impl ToSocketAddrs) -> Result<Self, Error> {
        Self::over(TcpStream::connect(address)?)
    }

    /// As [`Client::connect`], over a connection that is there.
    pub fn over(socket: TcpStream) -> Result<Self, Error> {
        socket.set_nodelay(true)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
        let xid = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        Ok(Self { socket, envelope: Envelope::new(xid), received: Vec::new() })
    }

    /// Makes further calls come from `user`; from nobody, by AUTH_NONE.
    pub fn set_user(&mut self, user: Option<User>) {
        self.envelope.set_user(user);
    }

    /// As [`Envelope::set_user_in`].
    pub fn set_user_in(&mut self, user: User, groups: &[u32]) {
        self.envelope.set_user_in(user, groups);
    }

    /// As [`Envelope::set_credential`].
    pub fn set_credential(&mut self, flavour: u32, body: &[u8]) {
        self.envelope.set_credential(flavour, body);
    }

    /// The socket, for those who wait for several.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// How long a receive waits at most; for ever if not set.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        Ok(self.socket.set_read_timeout(timeout)?)
    }

    /// The number that the next call will have. A call is sent again by setting it to the same.
    pub fn next_xid(&self) -> u32 {
        self.envelope.xid
    }

    /// Sets the number that the next call will have.
    pub fn set_next_xid(&mut self, xid: u32) {
        self.envelope.xid = xid;
    }

    /// One call as a whole record, mark included.
    pub(crate) fn record(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> (u32, Vec<u8>) {
        self.envelope.record(program, procedure, arguments)
    }

    /// Sends a call without waiting for its reply. Returns its number.
    pub fn send(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Result<u32, Error> {
        let (xid, record) = self.record(program, procedure, arguments);
        self.socket.write_all(&record)?;
        Ok(xid)
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.socket.write_all(bytes)?)
    }

    /// Receives the next reply, whichever call it is for.
    pub fn receive(&mut self) -> Result<Reply, Error> {
        let record = self.receive_raw()?;
        read_reply(&record)
    }

    /// Receives the next reply's record, mark not included.
    pub fn receive_raw(&mut self) -> Result<Vec<u8>, Error> {
        const READ_BYTES: usize = 256 << 10;
        loop {
            if let Some((mark, rest)) = self.received.split_first_chunk() {
                let mark = u32::from_be_bytes(*mark);
                let len = (mark & !LAST_FRAGMENT) as usize;
                if mark & LAST_FRAGMENT == 0 || len > REPLY_BYTES_MAX {
                    return Err(Malformed { what: "a reply in fragments, or a huge one" }.into());
                }
                if rest.len() >= len {
                    let record = rest[..len].to_vec();
                    self.received.drain(..4 + len);
                    return Ok(record);
                }
            }
            let had = self.received.len();
            self.received.resize(had + READ_BYTES, 0);
            let got = self.socket.read(&mut self.received[had..]);
            self.received.truncate(had + *got.as_ref().unwrap_or(&0));
            match got {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                // Such as by being stopped and continued.
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.into()),
                _ => {}
            }
        }
    }

    /// Calls and waits for the results.
    pub fn call(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Result<Vec<u8>, Error> {
        let xid = self.send(program, procedure, arguments)?;
        let reply = self.receive()?;
        if reply.xid != xid {
            return Err(Error::Unasked { xid: reply.xid });
        }
        Ok(reply.results)
    }
}

/// Takes the first record, its mark not included, from the front of what was received, if all of it is there. Records in
/// fragments are not known: no server sends any.
pub fn take_record(received: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mark = u32::from_be_bytes(*received.first_chunk()?);
    let end = 4 + (mark & 0x7fff_ffff) as usize;
    if received.len() < end {
        return None;
    }
    let record = received[4..end].to_vec();
    received.drain(..end);
    Some(record)
}

/// Reads a reply's record, mark not included.
///
/// # Errors
/// When it is no reply, or one that refuses its call.
pub fn read_reply(record: &[u8]) -> Result<Reply, Error> {
    const REPLY: u32 = 1;
    const ACCEPTED: u32 = 0;
    const SUCCESS: u32 = 0;
    let mut results = Results(record);
    let xid = results.u32()?;
    if results.u32()? != REPLY {
        return Err(Malformed { what: "it is no reply" }.into());
    }
    let refusal = |first: u32, rest: &[u8]| {
        let rest = rest.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        Error::Refused { words: std::iter::once(first).chain(rest).collect() }
    };
    if results.u32()? != ACCEPTED {
        return Err(refusal(1, results.0));
    }
    let _verifier_flavour = results.u32()?;
    let _verifier = results.opaque()?;
    let rest = results.0;
    if results.u32()? != SUCCESS {
        return Err(refusal(ACCEPTED, rest));
    }
    Ok(Reply { xid, results: results.0.to_vec() })
}
