//! Ten connections share a slow disk: what each gets of it in the long run, in virtual time.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use engine::{Nanos, Platform};
use frontend_nfs::{Admission, Server};
use nfs_client::{Call, Envelope, Handle, NFS, Stability, read_reply, take_record};
use simulator::{
    Disk, DiskOptions, Link, LinkEnd, LinkOptions, Machine, Memory, MemoryTree, Setup, SimPlatform, TreeOptions, World,
    WorldOptions, serve_machine,
};
use volume::{AttributeChange, CreateHow};

const CACHE_BYTES: u64 = 32 << 20;
const DISK_BYTES_PER_SECOND: u64 = 5_000_000;
const BLOCK: u32 = 64 << 10;
/// Offsets go round in a file: what is written again was written back long before.
const FILE_BYTES: u64 = 8 << 20;
const CONNECTIONS: usize = 10;
/// Not counted: until the band is full and prices are known.
const BEGIN_NS: u64 = 10 * Nanos::SECOND;
const END_NS: u64 = 70 * Nanos::SECOND;

struct Site {
    platform: Arc<SimPlatform>,
    link: Link,
    server: Arc<Server<SimPlatform>>,
    /// Bytes that calls of each connection moved, after the beginning.
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

    /// Keeps so many calls in flight for as long as the test lasts.
    async fn client(self: Arc<Self>, (at, address): (usize, u8), file: Handle, window: usize) {
        let end = self.connect(address);
        let mut envelope = Envelope::new(1);
        let data = vec![at as u8; BLOCK as usize];
        let (mut sent, mut in_flight, mut received) = (0_u64, 0, Vec::new());
        while self.platform.now().0 < END_NS {
            while in_flight < window {
                let (file, data) = (file.clone(), data.clone());
                let offset = sent * u64::from(BLOCK) % FILE_BYTES;
                let call = Call::Write { file, offset, data, stability: Stability::Unstable };
                let (_, record) = envelope.record(NFS, call.procedure().0, &call.arguments());
                end.send(record.into()).await.unwrap();
                (sent, in_flight) = (sent + 1, in_flight + 1);
            }
            received.extend(end.receive().await.unwrap());
            while let Some(record) = take_record(&mut received) {
                assert_eq!(read_reply(&record).unwrap().results[..4], [0; 4]);
                in_flight -= 1;
                if (BEGIN_NS..END_NS).contains(&self.platform.now().0) {
                    self.moved.lock().unwrap()[at] += u64::from(BLOCK);
                }
            }
        }
    }
}

/// What each connection moved: connection `at` comes from the address and keeps as many calls in flight as `of` says.
fn shares(of: impl Fn(usize) -> (u8, usize)) -> Vec<u64> {
    let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(1) });
    let disk = Disk::new(&world, 0, DiskOptions { bytes_per_second: DISK_BYTES_PER_SECOND, ..DiskOptions::default() });
    let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
    let mut setup = Setup::of("afflux").unwrap();
    setup.settings.add(&frontend_nfs::KNOBS);
    let volume = Machine::new(&world, Memory::Whole(CACHE_BYTES), setup).unwrap().add_tree("disk", &tree).unwrap();
    let files = RefCell::new(BTreeMap::new());
    let make = async {
        let root = volume.mount(b"/").await.unwrap();
        for at in 0..CONNECTIONS {
            let how = CreateHow::Guarded(AttributeChange::default());
            let (inode, _) = volume.create(&root, format!("file-{at}").as_bytes(), how).await.result.unwrap();
            files.borrow_mut().insert(at, volume.handle(&inode).as_bytes().to_vec());
        }
    };
    world.run(make).unwrap();
    let link = Link::new(&world, 0, LinkOptions::parse("rate=10Gbit,delay=0.1ms").unwrap());
    let server = Server::new(Arc::clone(&volume), Admission::AnyPeer);
    let platform = Arc::clone(world.platform());
    let site = Arc::new(Site { platform, link, server, moved: Mutex::new(vec![0; CONNECTIONS]) });
    for (at, file) in files.into_inner() {
        let (address, window) = of(at);
        world.spawn("nfs client", Arc::clone(&site).client((at, address), file, window));
    }
    let platform = Arc::clone(world.platform());
    world.run(async move { platform.sleep_until(Nanos(END_NS)).await }).unwrap();
    let moved = site.moved.lock().unwrap().clone();
    eprintln!("{:?} KiB", moved.iter().map(|bytes| bytes >> 10).collect::<Vec<_>>());
    moved
}

/// Fails unless the largest share is at most a tenth above the smallest.
fn are_equal(shares: &[u64]) {
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(most * 10 <= least * 11, "{shares:?}");
}

fn disk_share(moved: &[u64]) -> f64 {
    moved.iter().sum::<u64>() as f64 / ((END_NS - BEGIN_NS) as f64 / 1e9) / DISK_BYTES_PER_SECOND as f64
}

#[test]
fn ten_clients_that_write_alike_get_the_same() {
    for window in [1, 8] {
        let moved = shares(|at| (1 + at as u8, window));
        are_equal(&moved);
        assert!(disk_share(&moved) > 0.8, "{moved:?}");
    }
}

#[test]
fn ten_connections_of_one_client_that_write_alike_get_the_same() {
    are_equal(&shares(|_| (1, 8)));
}

#[test]
fn one_that_has_64_writes_in_flight_gets_no_more_of_the_disk_than_nine_that_have_one_each() {
    let moved = shares(|at| (1 + at as u8, if at == 0 { 64 } else { 1 }));
    // Payers take turns, whatever stands behind each.
    are_equal(&moved);
}
