//! The connection: calls out, replies in.
//!
//! Owns: the socket, call numbers, credentials, record marks, the RPC header of calls and replies.
//! Does not own: the meaning of calls (`procedures`).
//! Invariants: numbers start at random, as in real clients, so that a server does not take two runs of a test for one
//! client that repeats its calls.

use std::io::{self, BufReader, IoSlice, Read, Write};
use std::mem;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::callbacks::{Callback, is_callback};
use crate::wire::{Fields, Malformed, Results};

/// NFS version 3: program and version.
pub const NFS: (u32, u32) = (100_003, 3);
/// MOUNT version 3: program and version.
pub const MOUNT: (u32, u32) = (100_005, 3);

/// Longer replies are refused.
const REPLY_BYTES_MAX: usize = 80 << 20;
const LAST_FRAGMENT: u32 = 1 << 31;
/// Small replies come together in one read. Longer ones pass this buffer by.
const READ_BYTES: usize = 16 << 10;

/// The reason that a call has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket failed, or the server closed it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The reply is malformed.
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
        /// The procedure.
        procedure: &'static str,
        /// The protocol's status code.
        status: u32,
    },
    /// A reply that belongs to no call in flight.
    #[error("a reply to call {xid:#x}, which is not in flight")]
    Unasked {
        /// The number in the reply.
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

/// The caller named in calls.
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
    /// The results of the procedure.
    pub results: Vec<u8>,
}

/// Makes records of calls, with their numbers and their caller.
pub struct Envelope {
    xid: u32,
    credential: Vec<u8>,
}

impl Envelope {
    /// Calls of user and group 0, with numbers from `xid` on.
    pub fn new(xid: u32) -> Self {
        let mut envelope = Self { xid, credential: Vec::new() };
        envelope.set_user(Some(USER_ROOT));
        envelope
    }

    /// Sets the caller of further calls; `None` is AUTH_NONE.
    pub fn set_user(&mut self, user: Option<User>) {
        const AUTH_NONE: u32 = 0;
        match user {
            None => self.set_credential(AUTH_NONE, b""),
            Some(user) => self.set_user_in(user, &[]),
        }
    }

    /// Sets the caller of further calls, with further groups. Their number is not limited, although a credential can
    /// have only 16.
    pub fn set_user_in(&mut self, User { uid, gid }: User, groups: &[u32]) {
        const AUTH_SYS: u32 = 1;
        let body = Fields::default().u32(0).opaque(b"afflux-test").u32(uid).u32(gid).u32(groups.len() as u32);
        self.set_credential(AUTH_SYS, &groups.iter().fold(body, |body, group| body.u32(*group)).0);
    }

    /// Sets the credential of further calls to these bytes of this flavour, valid or not.
    pub fn set_credential(&mut self, flavour: u32, body: &[u8]) {
        self.credential = Fields::default().u32(flavour).opaque(body).0;
    }

    /// The number of a call, and the call as a whole record with its mark.
    pub fn record(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> (u32, Vec<u8>) {
        self.head(program, procedure, arguments, 0)
    }

    /// The number of a call, and its record up to its first arguments. So many more bytes of arguments follow.
    fn head(&mut self, program: (u32, u32), procedure: u32, first: &[u8], more: usize) -> (u32, Vec<u8>) {
        const CALL: u32 = 0;
        const RPC_VERSION: u32 = 2;
        let xid = self.xid;
        self.xid = xid.wrapping_add(1);
        let head = 24 + self.credential.len() + 8 + first.len();
        let body = head + more;
        let header = Fields(Vec::with_capacity(4 + head))
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
        (xid, header.fixed(first).0)
    }
}

/// The status with which a client answers a call of the server; none is silence.
pub type Answering = Box<dyn FnMut(&Callback) -> Option<u32> + Send>;

/// A connection to a server of NFS and MOUNT on one port.
pub struct Client {
    pub(crate) socket: BufReader<TcpStream>,
    envelope: Envelope,
    /// The bytes of the next reply that have come: its mark, and its record. A receive that ends early leaves them
    /// here.
    mark: Vec<u8>,
    record: Vec<u8>,
    answering: Option<Answering>,
}

impl Client {
    /// Connects, as user and group 0. The kernel does not delay small calls.
    pub fn connect(address: impl ToSocketAddrs) -> Result<Self, Error> {
        Self::over(TcpStream::connect(address)?)
    }

    /// Like [`Client::connect`], over an existing connection.
    pub fn over(socket: TcpStream) -> Result<Self, Error> {
        socket.set_nodelay(true)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
        let xid = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        let socket = BufReader::with_capacity(READ_BYTES, socket);
        Ok(Self { socket, envelope: Envelope::new(xid), mark: Vec::new(), record: Vec::new(), answering: None })
    }

    /// Sets the caller of further calls; `None` is AUTH_NONE.
    pub fn set_user(&mut self, user: Option<User>) {
        self.envelope.set_user(user);
    }

    /// See [`Envelope::set_user_in`].
    pub fn set_user_in(&mut self, user: User, groups: &[u32]) {
        self.envelope.set_user_in(user, groups);
    }

    /// See [`Envelope::set_credential`].
    pub fn set_credential(&mut self, flavour: u32, body: &[u8]) {
        self.envelope.set_credential(flavour, body);
    }

    /// The socket, for callers that wait for several.
    pub fn socket(&self) -> &TcpStream {
        self.socket.get_ref()
    }

    /// Sets the longest wait of a receive; `None` is for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        Ok(self.socket().set_read_timeout(timeout)?)
    }

    /// The number of the next call. A call is sent again by setting its number again.
    pub fn next_xid(&self) -> u32 {
        self.envelope.xid
    }

    /// Sets the number of the next call.
    pub fn set_next_xid(&mut self, xid: u32) {
        self.envelope.xid = xid;
    }

    /// A call as a whole record with its mark.
    pub(crate) fn record(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> (u32, Vec<u8>) {
        self.envelope.record(program, procedure, arguments)
    }

    /// Sends a call without waiting for its reply. Returns its number.
    pub fn send(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Result<u32, Error> {
        let (xid, record) = self.record(program, procedure, arguments);
        self.send_raw(&record)?;
        Ok(xid)
    }

    /// Like [`Client::send`]. The arguments end with the bytes of `data`, which are not copied.
    pub(crate) fn send_data(
        &mut self,
        program: (u32, u32),
        procedure: u32,
        arguments: &[u8],
        data: &[u8],
    ) -> Result<u32, Error> {
        let padding = &[0; 4][..data.len().wrapping_neg() & 3];
        let (xid, head) = self.envelope.head(program, procedure, arguments, data.len() + padding.len());
        let mut parts = &mut [&head[..], data, padding].map(IoSlice::new)[..];
        while parts.iter().any(|part| !part.is_empty()) {
            match self.socket.get_mut().write_vectored(parts) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(bytes) => IoSlice::advance_slices(&mut parts, bytes),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(xid)
    }

    /// Sends bytes unchanged.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.socket.get_mut().write_all(bytes)?)
    }

    /// Has [`Client::receive`] answer the calls of the server that come before a reply.
    pub fn answer_calls(&mut self, answering: Answering) {
        self.answering = Some(answering);
    }

    /// Receives the next reply, to any call.
    pub fn receive(&mut self) -> Result<Reply, Error> {
        loop {
            let record = self.receive_raw()?;
            let Some(answering) = self.answering.as_mut().filter(|_| is_callback(&record)) else {
                return read_reply(&record);
            };
            let call = Callback::read(&record)?;
            if let Some(status) = answering(&call) {
                let answer = call.answer(status);
                let mark = (LAST_FRAGMENT | answer.len() as u32).to_be_bytes();
                self.send_raw(&[&mark[..], &answer].concat())?;
            }
        }
    }

    /// Receives the next reply's record without its mark.
    pub fn receive_raw(&mut self) -> Result<Vec<u8>, Error> {
        fill(&mut self.socket, &mut self.mark, 4)?;
        let mark = self.mark.first_chunk().map_or(0, |mark| u32::from_be_bytes(*mark));
        let len = (mark & !LAST_FRAGMENT) as usize;
        if mark & LAST_FRAGMENT == 0 || len > REPLY_BYTES_MAX {
            return Err(Malformed { what: "a reply in fragments, or a huge one" }.into());
        }
        self.record.reserve_exact(len - self.record.len());
        fill(&mut self.socket, &mut self.record, len)?;
        self.mark.clear();
        Ok(mem::take(&mut self.record))
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

/// Reads until there are `len` bytes. After an error the bytes before it are there.
fn fill(socket: &mut BufReader<TcpStream>, bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    let missing = len - bytes.len();
    let read = socket.take(missing as u64).read_to_end(bytes)?;
    if read < missing { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// Takes the first record, without its mark, from the front of the received bytes, if it is complete. Fragmented
/// records are not supported: no server sends any.
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

/// Reads a reply's record, without its mark.
pub fn read_reply(record: &[u8]) -> Result<Reply, Error> {
    let (xid, results) = split_reply(record)?;
    Ok(Reply { xid, results: results.to_vec() })
}

/// The number of a reply, and its results.
pub(crate) fn split_reply(record: &[u8]) -> Result<(u32, &[u8]), Error> {
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
    Ok((xid, results.0))
}
