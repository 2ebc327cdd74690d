//! The other end of a connection, without a socket: bytes go into the machine, segments come out. An independent
//! implementation, nfs3_types, writes the calls and reads the replies.

use std::net::IpAddr;
use std::pin::pin;
use std::task::Poll;

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{ProtocolError, ProtocolMachine, Segment};
use afflux_linux_device::LinuxPlatform;
use afflux_nfs::Connection;
use bytes::BytesMut;
use nfs3_types::nfs3::nfs_fh3;
use nfs3_types::rpc::{
    accept_stat_data, accepted_reply, auth_unix, call_body, msg_body, opaque_auth, reply_body, rpc_msg,
};
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};

use crate::world::World;

/// Time after which a test fails instead of hanging.
const PATIENCE_NS: u64 = 60 * Nanos::SECOND;

pub(crate) const NFS: (u32, u32) = (100_003, 3);
pub(crate) const MOUNT: (u32, u32) = (100_005, 3);

pub(crate) fn packed(value: &impl Pack) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.pack(&mut bytes).unwrap();
    bytes
}

pub(crate) fn unpacked<T: Unpack>(bytes: &[u8]) -> T {
    let (value, read) = T::unpack(&mut &bytes[..]).unwrap();
    assert_eq!(read, bytes.len(), "bytes after the results");
    value
}

pub(crate) fn marked(record: &[u8]) -> Vec<u8> {
    [&(record.len() as u32 | 1 << 31).to_be_bytes(), record].concat()
}

/// A call's record, without its mark, from user and group 0.
pub(crate) fn call_record(xid: u32, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Vec<u8> {
    let user = auth_unix { machinename: Opaque::borrowed(b"test"), ..auth_unix::default() };
    let call = call_body {
        rpcvers: 2,
        prog: program.0,
        vers: program.1,
        proc: procedure,
        cred: opaque_auth::auth_unix(&user),
        verf: opaque_auth::default(),
    };
    [packed(&rpc_msg { xid, body: msg_body::CALL(call) }), arguments.to_vec()].concat()
}

/// The number in a reply to an accepted call, and the procedure's results.
pub(crate) fn accepted(record: &[u8]) -> (u32, Vec<u8>) {
    let rest = &mut &record[..];
    let (message, _) = rpc_msg::unpack(rest).unwrap();
    match message.body {
        msg_body::REPLY(reply_body::MSG_ACCEPTED(accepted_reply { reply_data: accept_stat_data::SUCCESS, .. })) => {
            (message.xid, rest.to_vec())
        }
        other => panic!("{other:?}"),
    }
}

/// The bytes of segments.
pub(crate) fn flat(segments: &[Segment]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for segment in segments {
        let before = bytes.len();
        match segment {
            Segment::Bytes(piece) => bytes.extend_from_slice(piece),
            Segment::Lent(piece) => bytes.extend_from_slice(piece),
            Segment::Pages(pages) => pages.slices().for_each(|slice| bytes.extend_from_slice(slice)),
        }
        assert_eq!(bytes.len() - before, segment.len());
    }
    bytes
}

pub(crate) struct Peer {
    platform: LinuxPlatform,
    pub(crate) connection: Connection<LinuxPlatform>,
    pub(crate) input: BytesMut,
    output: Vec<u8>,
    pub(crate) xid: u32,
}

impl Peer {
    pub(crate) fn new(world: &World, address: impl Into<IpAddr>) -> Self {
        Self::known(world, address.into().into())
    }

    /// As `new`, with the world's knowledge of the peer.
    pub(crate) fn known(world: &World, peer: afflux_frontend::Peer) -> Self {
        Self {
            platform: world.platform.clone(),
            connection: world.server.connection(peer),
            input: BytesMut::new(),
            output: Vec::new(),
            xid: 0x1000,
        }
    }

    /// Gives bytes to the machine.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.input.extend_from_slice(bytes);
        self.connection.receive(&mut self.input)
    }

    /// Polls the machine until `done` returns true.
    pub(crate) fn poll_until(&mut self, mut done: impl FnMut(&[u8], &mut Connection<LinuxPlatform>) -> bool) {
        let platform = self.platform.clone();
        let mut patience = pin!(platform.sleep_until(platform.now().after(PATIENCE_NS)));
        platform.block_on(std::future::poll_fn(|cx| {
            loop {
                if done(&self.output, &mut self.connection) {
                    return Poll::Ready(());
                }
                let mut segments = Vec::new();
                if self.connection.poll_output(cx, &mut segments).is_pending() {
                    assert!(segments.is_empty());
                    if done(&self.output, &mut self.connection) {
                        return Poll::Ready(());
                    }
                    assert!(patience.as_mut().poll(cx).is_pending(), "no reply in {PATIENCE_NS} ns");
                    return Poll::Pending;
                }
                assert!(segments.iter().any(|segment| !segment.is_empty()), "ready without output");
                self.output.extend(flat(&segments));
            }
        }));
    }

    /// Adds output that was polled elsewhere.
    pub(crate) fn took(&mut self, output: &[u8]) {
        self.output.extend_from_slice(output);
    }

    /// Waits for `count` replies. Returns their records without marks, in the order of arrival.
    pub(crate) fn replies(&mut self, count: usize) -> Vec<Vec<u8>> {
        self.poll_until(|output, _| records(output).0.len() >= count);
        let (records, taken) = records(&self.output);
        assert_eq!(records.len(), count, "more replies than asked for");
        self.output.drain(..taken);
        records
    }

    /// Waits for a record at least, also for calls of the server. Returns all, without marks.
    pub(crate) fn records(&mut self) -> Vec<Vec<u8>> {
        self.poll_until(|output, _| !records(output).0.is_empty());
        let (records, taken) = records(&self.output);
        self.output.drain(..taken);
        records
    }

    /// Lets everything in progress end, and returns the replies.
    pub(crate) fn drain(&mut self) -> Vec<Vec<u8>> {
        self.poll_until(|_, connection| connection.calls_in_progress() == 0 && nothing_ready(connection));
        let (records, taken) = records(&self.output);
        self.output.drain(..taken);
        assert!(self.output.is_empty(), "part of a reply");
        records
    }

    /// Calls and waits. Returns the procedure's results.
    pub(crate) fn call(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Vec<u8> {
        self.xid += 1;
        self.send(&marked(&call_record(self.xid, program, procedure, arguments))).unwrap();
        let reply = self.replies(1).remove(0);
        let (xid, results) = accepted(&reply);
        assert_eq!(xid, self.xid);
        results
    }

    /// Calls a procedure of NFS.
    pub(crate) fn nfs<R: Unpack>(&mut self, procedure: u32, arguments: &impl Pack) -> R {
        unpacked(&self.call(NFS, procedure, &packed(arguments)))
    }

    /// The handle of the export.
    pub(crate) fn root(&mut self) -> nfs_fh3 {
        use nfs3_types::mount::{dirpath, mountres3};
        match unpacked(&self.call(MOUNT, 1, &packed(&dirpath(Opaque::borrowed(b"/"))))) {
            mountres3::Ok(ok) => nfs_fh3 { data: Opaque::owned(ok.fhandle.0.into_owned()) },
            mountres3::Err(status) => panic!("{status:?}"),
        }
    }
}

/// Whether a poll returns no more output. Any output would be lost, so this is only for a connection without calls in
/// progress.
fn nothing_ready(connection: &mut Connection<LinuxPlatform>) -> bool {
    let mut segments = Vec::new();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let pending = connection.poll_output(&mut cx, &mut segments).is_pending();
    assert!(pending, "a reply to nothing in progress");
    true
}

/// The whole records at the front of `output`, and their length in bytes.
fn records(output: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let (mut records, mut at) = (Vec::new(), 0);
    while let Some((mark, rest)) = output[at..].split_first_chunk() {
        let mark = u32::from_be_bytes(*mark);
        assert!(mark & 1 << 31 != 0, "a reply in fragments");
        let len = (mark & 0x7fff_ffff) as usize;
        assert!(len.is_multiple_of(4), "a reply of {len} bytes");
        let Some(record) = rest.get(..len) else { break };
        records.push(record.to_vec());
        at += 4 + len;
    }
    (records, at)
}
