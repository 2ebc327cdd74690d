//! A server over a tree that fails on demand, and the other end of its connection.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::task::Poll;

use afflux_frontend::{ProtocolMachine, Segment};
use afflux_nfs::{AdmittedPeers, Connection, Server};
use afflux_simulator::{
    Disk, DiskOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions, World, WorldOptions,
};
use bytes::BytesMut;
use nfs3_types::nfs3::{GETATTR3args, GETATTR3res, fattr3, nfs_fh3, nfsstat3};
use nfs3_types::rpc::{auth_unix, call_body, msg_body, opaque_auth, rpc_msg};
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};

const NFS: (u32, u32) = (100_003, 3);
const MOUNT: (u32, u32) = (100_005, 3);
/// A record's mark, and the header of an accepted call's reply.
pub(crate) const HEADER_BYTES: usize = 4 + 24;

pub(crate) fn packed(value: &impl Pack) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.pack(&mut bytes).unwrap();
    bytes
}

pub(crate) struct Rig {
    // Dropped before the world, which may run tasks of them.
    connection: Connection<SimPlatform>,
    pub(crate) server: Arc<Server<SimPlatform>>,
    pub(crate) tree: Arc<MemoryTree>,
    pub(crate) disk: Arc<Disk>,
    pub(crate) world: World,
    xid: u32,
}

fn server_over(world: &World, tree: &Arc<MemoryTree>) -> Arc<Server<SimPlatform>> {
    let mut setup = Setup::default();
    setup.settings.add(&afflux_nfs::KNOBS);
    let volume = SimMachine::new(world, Memory::Whole(1 << 20), setup).unwrap().add_tree("disk", tree);
    Server::new(volume.unwrap(), AdmittedPeers::AnyPeer)
}

impl Rig {
    /// Over an empty tree.
    pub(crate) fn new() -> Self {
        let world = World::new(WorldOptions::seed(1));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
        let server = server_over(&world, &tree);
        let connection = server.connection(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        Self { connection, server, tree, disk, world, xid: 1 }
    }

    /// The next server over the same tree. It has nothing in memory, and handles stay valid.
    pub(crate) fn restart(&mut self) {
        self.tree = self.tree.reopened(TreeOptions::default());
        self.serve_tree();
    }

    /// Over a tree that exports these directories, or its root without any.
    pub(crate) fn exporting(names: &[&str]) -> Self {
        let mut rig = Self::new();
        rig.tree = rig.tree_exporting(names);
        rig.serve_tree();
        rig
    }

    fn tree_exporting(&self, names: &[&str]) -> Arc<MemoryTree> {
        if names.is_empty() { self.tree.reopened(TreeOptions::default()) } else { self.tree.exporting(names) }
    }

    fn serve_tree(&mut self) {
        self.server = server_over(&self.world, &self.tree);
        self.connection = self.server.connection(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
    }

    /// Asks a new server over the same tree, with these exports. The one in use goes on afterwards.
    pub(crate) fn beside<T>(&mut self, exports: &[&str], ask: impl FnOnce(&mut Self) -> T) -> T {
        let tree = self.tree_exporting(exports);
        let server = server_over(&self.world, &tree);
        let connection = server.connection(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let used = (
            std::mem::replace(&mut self.connection, connection),
            std::mem::replace(&mut self.server, server),
            std::mem::replace(&mut self.tree, tree),
        );
        let answer = ask(self);
        (self.connection, self.server, self.tree) = used;
        answer
    }

    /// The reply to a call's record, whole.
    pub(crate) fn reply_to(&mut self, record: &[u8]) -> Vec<u8> {
        send(&mut self.connection, record);
        reply(&self.world, &mut self.connection)
    }

    /// The record of a call that no other call equals.
    pub(crate) fn record(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Vec<u8> {
        self.xid += 1;
        call_record(self.xid, program, procedure, arguments)
    }

    pub(crate) fn nfs_record(&mut self, procedure: u32, arguments: &[u8]) -> Vec<u8> {
        self.record(NFS, procedure, arguments)
    }

    /// The results of a call.
    pub(crate) fn call(&mut self, procedure: u32, arguments: &[u8]) -> Vec<u8> {
        let record = self.nfs_record(procedure, arguments);
        self.reply_to(&record)[HEADER_BYTES..].to_vec()
    }

    pub(crate) fn mount(&mut self, path: &[u8]) -> Vec<u8> {
        let record = self.record(MOUNT, 1, &packed(&Opaque::borrowed(path)));
        self.reply_to(&record)[HEADER_BYTES..].to_vec()
    }

    /// The attributes of an object that is there.
    pub(crate) fn attributes(&mut self, object: &nfs_fh3) -> fattr3 {
        match unpacked(&self.call(1, &packed(&GETATTR3args { object: object.clone() }))) {
            GETATTR3res::Ok(ok) => ok.obj_attributes,
            GETATTR3res::Err((status, _)) => panic!("{status}"),
        }
    }

    /// The connection has nothing in progress, and it holds no memory for a reply.
    pub(crate) fn holds(&self) -> (usize, u64) {
        (self.connection.calls_in_progress(), self.connection.held_bytes())
    }
}

/// Gives a call's record to the machine.
pub(crate) fn send(connection: &mut Connection<SimPlatform>, record: &[u8]) {
    let mut input = BytesMut::from(&(record.len() as u32 | 1 << 31).to_be_bytes()[..]);
    input.extend_from_slice(record);
    connection.receive(&mut input).unwrap();
}

/// The next reply of a connection, whole.
pub(crate) fn reply(world: &World, connection: &mut Connection<SimPlatform>) -> Vec<u8> {
    let mut output = Vec::new();
    let polled = std::future::poll_fn(|cx| {
        let mut segments: Vec<Segment> = Vec::new();
        while connection.poll_output(cx, &mut segments).is_ready() {}
        for segment in segments {
            match segment {
                Segment::Bytes(bytes) => output.extend_from_slice(&bytes),
                Segment::Lent(bytes) => output.extend_from_slice(&bytes),
                Segment::Pages(pages) => pages.slices().for_each(|slice| output.extend_from_slice(slice)),
            }
        }
        if output.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    });
    world.run(polled).unwrap_or_else(|error| panic!("no reply: {error}"));
    let len = u32::from_be_bytes(*output.first_chunk().unwrap()) & !(1 << 31);
    assert_eq!(len as usize + 4, output.len(), "one reply, and all of it");
    output
}

/// A call's record, without its mark.
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

/// The results of a whole reply.
pub(crate) fn results(reply: &[u8]) -> &[u8] {
    &reply[HEADER_BYTES..]
}

pub(crate) fn status_of(results: &[u8]) -> nfsstat3 {
    nfsstat3::unpack(&mut &results[..]).unwrap().0
}

pub(crate) fn unpacked<T: Unpack>(bytes: &[u8]) -> T {
    let (value, read) = T::unpack(&mut &bytes[..]).unwrap();
    assert_eq!(read, bytes.len(), "bytes after the results");
    value
}
