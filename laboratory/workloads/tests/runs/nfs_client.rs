//! The nfs-client workload: a model of a client against the real server, over a simulated link.

use std::sync::{Arc, Mutex};

use afflux_engine::{DeviceError, Nanos, Platform};
use afflux_nfs::{AdmittedPeers, Server};
use afflux_reference::StampModel;
use afflux_simulator::{
    Disk, DiskOptions, Fault, FaultTarget, FaultWhat, Link, LinkOptions, Memory, MemoryTree, Setup, SimMachine,
    SimPlatform, TreeOptions, World, WorldOptions,
};
use afflux_volume::Volume;
use afflux_workloads::nfs_client::{NfsClient, NfsClientError, NfsClientOptions, NfsClientOutcome, NfsEntry};

struct ClientFixture {
    world: World,
    disk: Arc<Disk>,
    tree: Arc<MemoryTree>,
    volume: Arc<Volume<SimPlatform>>,
    entry: Arc<NfsEntry>,
    model: Arc<Mutex<StampModel>>,
}

fn volume(world: &World, tree: &Arc<MemoryTree>, memory: Memory) -> Arc<Volume<SimPlatform>> {
    let mut setup = Setup::default();
    setup.settings.add(&afflux_nfs::KNOBS);
    let mut machine = SimMachine::new(world, memory, setup).unwrap();
    machine.add_tree("disk", tree).unwrap()
}

impl ClientFixture {
    /// A server with this memory, a disk of 25 MB/s, and a link.
    fn new(seed: u64, memory: Memory, link: &str) -> Self {
        let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(seed) });
        let disk = Disk::new(&world, 0, DiskOptions { bytes_per_second: 25_000_000, ..DiskOptions::default() });
        let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
        let volume = volume(&world, &tree, memory);
        let link = Link::new(&world, 0, LinkOptions::parse(link).unwrap());
        let entry = NfsEntry::new(world.platform(), link, Server::new(Arc::clone(&volume), AdmittedPeers::AnyPeer));
        let model = Arc::new(Mutex::new(StampModel::new(1, 0)));
        Self { world, disk, tree, volume, entry, model }
    }

    fn client(&self, options: NfsClientOptions) -> NfsClient {
        NfsClient::new(self.world.platform(), &self.entry, options, Arc::clone(&self.model))
    }

    fn run(&self, options: NfsClientOptions) -> Result<NfsClientOutcome, NfsClientError> {
        self.world.run(self.client(options).run()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Checks that all committed data is on the disk, in its last version.
    fn check_disk(&self, size: u64) {
        let file = self.tree.file_at(&["file"]).unwrap();
        assert_eq!((self.disk.size(file), self.disk.durable_size(file)), (size, size));
        let mut model = self.model.lock().unwrap();
        for offset in (0..size).step_by(1 << 20) {
            let len = (size - offset).min(1 << 20);
            let look = model.begin_read();
            let bytes = self.disk.live_bytes(file, offset, len as usize);
            model.end_read(look, offset, len, &bytes).unwrap_or_else(|mismatch| panic!("{mismatch}"));
            let durable = self.disk.durable_bytes(file, offset, len as usize);
            model.check_crashed(offset, &durable).unwrap_or_else(|mismatch| panic!("{mismatch}"));
        }
    }
}

fn small() -> NfsClientOptions {
    NfsClientOptions { file_bytes: 5_000_001, dirty_limit_bytes: 1 << 20, in_flight: 8, ..NfsClientOptions::default() }
}

#[test]
fn what_the_client_committed_is_on_the_disk() {
    for stamped in [false, true] {
        let bytes = 4 << 20;
        let memory = if stamped { Memory::Stamped(bytes) } else { Memory::Whole(bytes) };
        let lab = ClientFixture::new(1, memory, "rate=100Mbit,delay=0.1ms");
        let outcome = lab.run(small()).unwrap();
        assert_eq!((outcome.bytes, outcome.writes, outcome.resent_bytes), (5_000_001, 153, 0));
        assert_eq!(outcome.commit_waits_ns.len(), 5);
        lab.check_disk(5_000_001);
        // With real bytes, too, the check can fail: for a byte of a stamp, and for a page.
        let file = lab.tree.file_at(&["file"]).unwrap();
        let mut bytes = lab.disk.live_bytes(file, 0, 8192);
        bytes[4097] ^= 1;
        let mut model = lab.model.lock().unwrap();
        let look = model.begin_read();
        model.end_read(look, 0, 8192, &bytes).unwrap_err();
    }
}

#[test]
fn a_gigabyte_passes_at_the_speed_of_the_link() {
    let lab = ClientFixture::new(1, Memory::Stamped(1 << 30), "rate=100Mbit,delay=0.1ms");
    let outcome = lab.run(NfsClientOptions::default()).unwrap();
    lab.check_disk(1_000_000_000);
    eprintln!(
        "{} B/s, {} commits of {} ms at most, {} virtual s, {} steps",
        outcome.bytes_per_second(),
        outcome.commit_waits_ns.len(),
        outcome.commit_waits_ns.iter().max().unwrap() / Nanos::MILLISECOND,
        lab.world.platform().now().0 / Nanos::SECOND,
        lab.world.steps(),
    );
    // The stream's share of 100 Mbit/s, 11.77 MB/s, less 0.5 % for the headers of RPC and NFS.
    let link = lab.entry.link().options().stream_bytes_per_second();
    assert!((11_690_000..11_730_000).contains(&(link * 32_768 / (32_768 + 164))));
    assert!(outcome.bytes_per_second() <= link * 32_768 / (32_768 + 164));
    assert_eq!(outcome.commit_waits_ns.len(), 10);
}

#[test]
fn a_link_that_loses_packets_and_is_cut_loses_no_data() {
    let lab = ClientFixture::new(3, Memory::Whole(4 << 20), "rate=100Mbit,delay=1ms,loss=0.5%,retransmit=20ms");
    lab.entry.link().cut(200 * Nanos::MILLISECOND, 900 * Nanos::MILLISECOND);
    let outcome = lab.run(small()).unwrap();
    assert!(outcome.elapsed_ns > 1_100 * Nanos::MILLISECOND, "{outcome:?}");
    assert!(lab.entry.link().figures().0.lost_packets > 0);
    lab.check_disk(5_000_001);
}

#[test]
fn after_a_restart_of_the_server_the_client_sends_again_what_was_not_committed() {
    let lab = ClientFixture::new(5, Memory::Whole(8 << 20), "rate=100Mbit,delay=0.1ms");
    let client = lab.client(NfsClientOptions { dirty_limit_bytes: 3 << 20, ..small() });
    let (platform, entry) = (Arc::clone(lab.world.platform()), Arc::clone(&lab.entry));
    let tree = lab.tree.reopened(TreeOptions::default());
    let next = volume(&lab.world, &tree, Memory::Whole(8 << 20));
    let first = Arc::clone(&lab.volume);
    lab.world.spawn("operator", async move {
        platform.sleep_until(Nanos(100 * Nanos::MILLISECOND)).await;
        entry.replace_server(None);
        entry.close_connections();
        // The first server must not write any more once the second one does.
        for device in 0..first.engine().status().devices.len() {
            assert!(first.engine().drain(afflux_engine::DeviceId(device as u32)).await.is_empty());
        }
        entry.replace_server(Some(Server::new(next, AdmittedPeers::AnyPeer)));
    });
    let outcome = lab.world.run(client.run()).unwrap().unwrap();
    assert!(outcome.connections_lost == 1 && outcome.resent_bytes >= 500_000, "{outcome:?}");
    lab.check_disk(5_000_001);
}

#[test]
fn without_a_server_the_client_gives_up() {
    let lab = ClientFixture::new(1, Memory::Whole(4 << 20), "");
    lab.entry.replace_server(None);
    assert_eq!(lab.run(small()).unwrap_err(), NfsClientError::NoServer);
}

#[test]
fn an_error_of_the_disk_reaches_the_client() {
    let lab = ClientFixture::new(1, Memory::Whole(4 << 20), "");
    lab.disk.add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(DeviceError::Io { errno: 5 })));
    assert_eq!(lab.run(small()).unwrap_err(), NfsClientError::Status { procedure: "COMMIT", status: 5 });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let run = |seed| {
        let lab = ClientFixture::new(seed, Memory::Stamped(4 << 20), "loss=1%,retransmit=5ms");
        let outcome = lab.run(small()).unwrap();
        (outcome, lab.world.trace_hash())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}
