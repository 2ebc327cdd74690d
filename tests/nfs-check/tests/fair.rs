//! Ten connections share a slow disk, or a server limited by its processor: the long-run share of each, in virtual
//! time.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};
use afflux_nfs::{AdmittedPeers, Server};
use afflux_nfs_client::{Call, Envelope, Handle, NFS, read_reply, stable_how, take_record};
use afflux_simulator::{
    CpuOptions, Disk, DiskOptions, Link, LinkEnd, LinkOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform,
    TreeOptions, World, WorldOptions, serve_machine,
};
use afflux_volume::{AttributeChange, CreateHow};

const CACHE_BYTES: u64 = 32 << 20;
const DISK_BYTES_PER_SECOND: u64 = 5_000_000;
const CONNECTIONS: usize = 10;

/// The load of all clients, each with its own file.
#[derive(Clone, Copy)]
struct Load {
    writes: bool,
    block: u32,
    /// Offsets wrap around in a file.
    file_bytes: u64,
    /// Factor of the offsets, so that no call continues the previous one; 1: in order.
    stride: u64,
    /// Time that is not counted: until the band is full, prices are known and caches are filled.
    begin_ns: u64,
    end_ns: u64,
}

/// Rewritten blocks have long been written back before.
const WRITES: Load = Load {
    writes: true,
    block: 64 << 10,
    file_bytes: 8 << 20,
    stride: 1,
    begin_ns: 10 * Nanos::SECOND,
    end_ns: 70 * Nanos::SECOND,
};

/// No block is read twice.
const COLD_READS: Load = Load { writes: false, file_bytes: 1 << 30, ..WRITES };

/// Everything is in the cache from the beginning.
const CACHED_READS: Load = Load {
    writes: false,
    block: 4096,
    file_bytes: 1 << 20,
    stride: 1,
    begin_ns: 10 * Nanos::SECOND,
    end_ns: 10 * Nanos::SECOND + 300 * Nanos::MILLISECOND,
};

impl Load {
    fn call(&self, number: u64, file: &Handle, data: &[u8]) -> Call {
        let (file, blocks) = (file.clone(), self.file_bytes / u64::from(self.block));
        let offset = number.wrapping_mul(self.stride) % blocks * u64::from(self.block);
        if self.writes {
            Call::Write { file, offset, data: data.to_vec(), stability: stable_how::UNSTABLE }
        } else {
            Call::Read { file, offset, count: self.block }
        }
    }
}

struct Site {
    load: Load,
    platform: Arc<SimPlatform>,
    link: Link,
    server: Arc<Server<SimPlatform>>,
    /// Bytes moved by the calls of each connection, after the beginning.
    moved: Mutex<Vec<u64>>,
}

impl Site {
    fn connect(&self, last: u8) -> LinkEnd {
        let (near, far) = self.link.connect();
        let machine = self.server.connection(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
        self.platform.spawn("nfs server", async move {
            let _ = serve_machine(machine, far).await;
        });
        near
    }

    /// Keeps this many calls in flight until the test ends.
    async fn client(self: Arc<Self>, at: usize, address: u8, file: Handle, window: usize) {
        let end = self.connect(address);
        let mut envelope = Envelope::new(1);
        let Load { block, begin_ns, end_ns, .. } = self.load;
        let data = vec![at as u8; block as usize];
        let (mut sent, mut in_flight, mut received) = (0_u64, 0, Vec::new());
        while self.platform.now().0 < end_ns {
            while in_flight < window {
                let call = self.load.call(sent, &file, &data);
                let (_, record) = envelope.record(NFS, call.procedure().0, &call.arguments());
                end.send(record.into()).await.unwrap();
                (sent, in_flight) = (sent + 1, in_flight + 1);
            }
            received.extend_from_slice(&end.receive().await.unwrap());
            while let Some(record) = take_record(&mut received) {
                assert_eq!(read_reply(&record).unwrap().results[..4], [0; 4]);
                assert!(self.load.writes || record.len() > block as usize, "a READ of {} bytes", record.len());
                in_flight -= 1;
                if (begin_ns..end_ns).contains(&self.platform.now().0) {
                    self.moved.lock().unwrap()[at] += u64::from(block);
                }
            }
        }
    }
}

/// The bytes that each connection moved. For connection `at`, `of` returns its address and its number of calls in
/// flight.
fn shares(load: Load, options: WorldOptions, of: impl Fn(usize) -> (u8, usize)) -> Vec<u64> {
    let world = World::new(WorldOptions { steps_max: 1 << 40, ..options });
    let disk = Disk::new(&world, 0, DiskOptions { bytes_per_second: DISK_BYTES_PER_SECOND, ..DiskOptions::default() });
    let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
    let mut setup = Setup::of("afflux").unwrap();
    setup.settings.add(&afflux_nfs::KNOBS);
    let volume = SimMachine::new(&world, Memory::Whole(CACHE_BYTES), setup).unwrap().add_tree("disk", &tree).unwrap();
    let files = RefCell::new(BTreeMap::new());
    let is_small = load.file_bytes * CONNECTIONS as u64 <= CACHE_BYTES;
    let make = async {
        let root = volume.mount(b"/").await.unwrap();
        for at in 0..CONNECTIONS {
            let how = CreateHow::Guarded(AttributeChange::default());
            let (inode, _) = volume.create(&root, format!("file-{at}").as_bytes(), how).await.result.unwrap();
            if !load.writes && is_small {
                volume.write(&inode, 0, vec![at as u8; load.file_bytes as usize].into()).await.result.unwrap();
            } else if !load.writes {
                let size = AttributeChange { size: Some(load.file_bytes), ..AttributeChange::default() };
                volume.set_attributes(&inode, size, None).await.result.unwrap();
            }
            files.borrow_mut().insert(at, volume.handle(&inode).as_bytes().to_vec());
        }
        assert!(world.platform().now().0 < load.begin_ns);
        if is_small {
            world.platform().sleep_until(Nanos(load.begin_ns)).await;
        }
    };
    world.run(make).unwrap();
    let link = Link::new(&world, 0, LinkOptions::parse("rate=10Gbit,delay=0.1ms").unwrap());
    let server = Server::new(Arc::clone(&volume), AdmittedPeers::AnyPeer);
    let platform = Arc::clone(world.platform());
    let site = Arc::new(Site { load, platform, link, server, moved: Mutex::new(vec![0; CONNECTIONS]) });
    for (at, file) in files.into_inner() {
        let (address, window) = of(at);
        world.spawn("nfs client", Arc::clone(&site).client(at, address, file, window));
    }
    let platform = Arc::clone(world.platform());
    world.run(async move { platform.sleep_until(Nanos(load.end_ns)).await }).unwrap();
    let moved = site.moved.lock().unwrap().clone();
    eprintln!("{:?} KiB", moved.iter().map(|bytes| bytes >> 10).collect::<Vec<_>>());
    moved
}

fn writes(of: impl Fn(usize) -> (u8, usize)) -> Vec<u64> {
    shares(WRITES, WorldOptions::seed(1), of)
}

/// Fails unless the largest share is at most a tenth above the smallest.
fn are_equal(shares: &[u64]) {
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(most * 10 <= least * 11, "{shares:?}");
}

fn disk_share(load: Load, moved: &[u64]) -> f64 {
    let seconds = (load.end_ns - load.begin_ns) as f64 / 1e9;
    moved.iter().sum::<u64>() as f64 / seconds / DISK_BYTES_PER_SECOND as f64
}

#[test]
fn ten_clients_that_write_alike_get_the_same() {
    for window in [1, 8] {
        let moved = writes(|at| (1 + at as u8, window));
        are_equal(&moved);
        assert!(disk_share(WRITES, &moved) > 0.8, "{moved:?}");
    }
}

#[test]
fn ten_connections_of_one_client_that_write_alike_get_the_same() {
    are_equal(&writes(|_| (1, 8)));
}

#[test]
fn one_that_has_64_writes_in_flight_gets_no_more_of_the_disk_than_nine_that_have_one_each() {
    let moved = writes(|at| (1 + at as u8, if at == 0 { 64 } else { 1 }));
    // Payers take turns, however many calls each has.
    are_equal(&moved);
}

#[test]
fn ten_clients_that_read_alike_here_and_there_what_is_not_cached_get_the_same() {
    for window in [1, 8] {
        // The disk serves waiting requests in a random order: with few calls the test would measure chance.
        let load = Load { block: 16 << 10, stride: 7_919, ..COLD_READS };
        let moved = shares(load, WorldOptions::seed(1), |at| (1 + at as u8, window));
        are_equal(&moved);
        assert!((0.3..1.02).contains(&disk_share(load, &moved)), "{moved:?}");
    }
}

/// They share by requests that are read ahead, of a mebibyte and more with one call in flight: a minute is some thirty
/// of them for each. The disk draws the next of those that wait from the seed. Chance alone, ten that draw 300 times,
/// leaves somebody with less than 0.8 of the mean in 73 of 100 minutes. Four minutes leave little to chance.
#[test]
fn of_ten_clients_that_read_alike_in_order_what_is_not_cached_none_is_left_behind() {
    are_equal_in_order(&[(MINUTE, 1, 1, 8..14), (MINUTE, 8, 1, 9..12), (FOUR_MINUTES, 1, 1, 9..12)]);
}

#[test]
#[ignore = "other seeds: most of a minute"]
fn of_ten_clients_that_read_alike_in_order_none_is_left_behind_with_other_seeds() {
    let minutes = (2..6).map(|seed| (MINUTE, 1, seed, 8..14));
    are_equal_in_order(&minutes.chain((2..4).map(|seed| (FOUR_MINUTES, 1, seed, 9..12))).collect::<Vec<_>>());
}

const MINUTE: Load = COLD_READS;
const FOUR_MINUTES: Load = Load { end_ns: COLD_READS.begin_ns + 240 * Nanos::SECOND, ..COLD_READS };

/// Runs each load with a window and a seed. Every client gets so many tenths of the mean, the end of the range
/// excluded.
fn are_equal_in_order(runs: &[(Load, usize, u64, Range<u64>)]) {
    for (load, window, seed, tenths) in runs {
        let moved = shares(*load, WorldOptions::seed(*seed), |at| (1 + at as u8, *window));
        let mean = moved.iter().sum::<u64>() / CONNECTIONS as u64;
        let bytes = mean * tenths.start..=mean * (tenths.end - 1);
        assert!(moved.iter().all(|moved| bytes.contains(&(moved * 10))), "{moved:?}");
        assert!((0.9..1.02).contains(&disk_share(*load, &moved)), "{moved:?}");
    }
}

#[test]
fn ten_clients_that_read_alike_what_is_cached_get_the_same() {
    for window in [1, 8, 64] {
        // One processor, which all of them need.
        let options = WorldOptions::machine(1, CpuOptions::count(1));
        let moved = shares(CACHED_READS, options, |at| (1 + at as u8, window));
        are_equal(&moved);
        assert!(disk_share(CACHED_READS, &moved) > 10.0, "{moved:?}");
    }
}
