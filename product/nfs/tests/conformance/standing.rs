//! Locks of version 4 that programs of the host see. The host does not answer about one file.

use std::net::Ipv4Addr;
use std::sync::Arc;

use afflux_frontend::ProtocolMachine;
use afflux_nfs::{AdmittedPeers, ClientMemory, Connection, Server};
use afflux_nfs_client::sessions::{Compound, NFS_4, Outcome, OutcomeReader, Stateid};
use afflux_simulator::{
    Disk, DiskOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions, World, WorldOptions,
};
use afflux_volume::Volume;

use crate::rig::{call_record, reply, results, send};

const BOTH: (u32, u32) = (3, 0);
const SHARED: u32 = 1;
const EXCLUSIVE: u32 = 2;
const DENIED: u32 = 10_010;

fn ops() -> Compound {
    Compound::default()
}

/// A client with a session of two slots.
struct Client {
    connection: Connection<SimPlatform>,
    session: [u8; 16],
    sequences: [u32; 2],
}

impl Client {
    fn begin(world: &World, server: &Arc<Server<SimPlatform>>, address: u8) -> Self {
        let connection = server.connection(std::net::IpAddr::from(Ipv4Addr::new(192, 0, 2, address)));
        let mut client = Self { connection, session: [0; 16], sequences: [0; 2] };
        client.send(&ops().exchange_id(b"client", [address; 8], 0));
        let known = client.outcome(world).results[8..16].try_into().unwrap();
        client.send(&ops().create_session(u64::from_be_bytes(known), 1, 16, 2));
        client.session = client.outcome(world).results[8..24].try_into().unwrap();
        assert_eq!(client.call(world, &ops().reclaim_complete()).status, 0);
        client
    }

    fn send(&mut self, compound: &Compound) {
        send(&mut self.connection, &call_record(1, NFS_4, 1, &compound.arguments(1)));
    }

    fn send_on(&mut self, slot: u32, operations: &Compound) {
        let sequence = &mut self.sequences[slot as usize];
        *sequence += 1;
        let whole = ops().sequence(self.session, *sequence, slot, true).followed_by(operations);
        self.send(&whole);
    }

    fn outcome(&mut self, world: &World) -> Outcome {
        Outcome::read(results(&reply(world, &mut self.connection))).unwrap()
    }

    /// The outcome of operations, which come to their end.
    fn call(&mut self, world: &World, operations: &Compound) -> Outcome {
        self.send_on(0, operations);
        self.outcome(world)
    }

    /// The results of operations that succeed, behind the first one.
    fn must<T>(&mut self, world: &World, operations: &Compound, read: impl FnOnce(&mut OutcomeReader<'_>) -> T) -> T {
        let outcome = self.call(world, operations);
        assert_eq!(outcome.status, 0);
        let mut reader = outcome.reader();
        reader.skip_sequence().unwrap();
        reader.next_result().unwrap();
        reader.next_result().unwrap();
        read(&mut reader)
    }

    fn open(&mut self, world: &World, name: &[u8]) -> (Stateid, Vec<u8>) {
        let opens = ops().put_root().open(BOTH, b"program", name, true).get_handle();
        self.must(world, &opens, |reader| {
            let stateid = reader.stateid().unwrap();
            reader.skip_open().unwrap();
            reader.next_result().unwrap();
            (stateid, reader.opaque().unwrap().to_vec())
        })
    }

    fn lock(&mut self, world: &World, file: &[u8], range: (u64, u64), open: Stateid) -> Stateid {
        let locks = ops().put(file).lock(EXCLUSIVE, range, open, b"owner");
        self.must(world, &locks, |reader| reader.stateid().unwrap())
    }
}

// rule: a host that does not answer about one file delays the locks of that file alone. Calls on other files and of
// other clients go on
#[test]
fn a_host_that_stands_still_at_a_file_holds_up_no_other_call_of_a_client() {
    let world = &World::new(WorldOptions::seed(1));
    let disk = Disk::new(world, 0, DiskOptions::default());
    let tree = MemoryTree::new(world, &disk, TreeOptions::default());
    let programs = Arc::clone(tree.programs());
    let mut setup = Setup::default();
    setup.settings.add(&afflux_nfs::KNOBS);
    let volume: Arc<Volume<SimPlatform>> =
        SimMachine::new(world, Memory::Whole(1 << 20), setup).unwrap().add_tree("disk", &tree).unwrap();
    volume.locks().show_on_host();
    let server = Server::new(volume, AdmittedPeers::AnyPeer);
    server.offer_version_4(ClientMemory::default());
    let (mut one, mut two) = (Client::begin(world, &server, 1), Client::begin(world, &server, 2));
    let (open_a, a) = one.open(world, b"a");
    let (open_b, b) = one.open(world, b"b");
    one.lock(world, &a, (0, 10), open_a);
    let number = tree.number_of("a").unwrap();
    programs.stand_still(number);
    one.send_on(1, &ops().put(&a).lock(EXCLUSIVE, (20, 10), open_a, b"another owner"));

    // Another client, and this one: OPEN, LOCK, LOCKT, LOCKU, a renewal and CLOSE.
    let (by_two, file) = two.open(world, b"b");
    let held = two.lock(world, &file, (0, 10), by_two);
    assert_eq!(two.call(world, &ops().put(&file).test_lock(SHARED, (20, 10), b"other")).status, 0);
    assert_eq!(one.call(world, &ops().put(&b).lock(SHARED, (0, 1), open_b, b"owner")).status, DENIED);
    one.lock(world, &b, (20, 10), open_b);
    assert_eq!(two.call(world, &ops().put(&file).unlock((0, u64::MAX), held)).status, 0);
    for client in [&mut one, &mut two] {
        assert_eq!(client.call(world, &ops()).status, 0);
    }
    assert_eq!(two.call(world, &ops().put(&file).close(by_two)).status, 0);
    Client::begin(world, &server, 3).open(world, b"c");
    // Of the file itself all but locks without a conflict.
    let (by_two, a) = two.open(world, b"a");
    assert_eq!(two.call(world, &ops().put(&a).lock(SHARED, (25, 1), by_two, b"owner")).status, DENIED);
    assert_eq!(two.call(world, &ops().put(&a).write(by_two, 0, 0, b"x").close(by_two)).status, 0);

    assert_eq!(one.connection.calls_in_progress(), 1);
    programs.go_on(number);
    assert_eq!(one.outcome(world).status, 0);
}
