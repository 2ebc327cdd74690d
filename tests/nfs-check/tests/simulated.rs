//! Random operations through the simulator's links: with lost and late packets, replies in any order, clients that end
//! or lose their connections, and periods without any answer from the server.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};
use afflux_nfs::{AdmittedPeers, Server};
use afflux_nfs_check::random::{Exercise, Plan};
use afflux_nfs_client::{Envelope, MOUNT, take_record};
use afflux_simulator::{
    Disk, DiskOptions, Link, LinkEnd, LinkOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions,
    World, WorldOptions, serve_machine,
};
use bytes::Bytes;
use futures_util::future::{Either, select};

const CACHE_BYTES: u64 = 4 << 20;
/// Time without a reply after which a client treats its connection as lost.
const PATIENCE_NS: u64 = 3 * Nanos::SECOND;

/// splitmix64, for the clients' behaviour besides the exercise's operations.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}

/// The disturbances of a run.
#[derive(Clone, Copy, Debug)]
struct Roughness {
    link: &'static str,
    /// A connection is lost once in this many replies; 0 is never.
    lose_one_in: u64,
    /// A client ends once in this many replies; 0 is never.
    end_one_in: u64,
    /// Number of periods in which nothing passes in either direction.
    freezes: u64,
    /// The last byte of a READ's data is changed in transit once in this many replies; 0 is never.
    corrupt_one_in: u64,
}

struct Site {
    platform: Arc<SimPlatform>,
    link: Arc<Link>,
    server: Arc<Server<SimPlatform>>,
    exercise: Arc<Mutex<Exercise>>,
}

impl Site {
    fn connect(&self) -> LinkEnd {
        let (near, far) = self.link.connect();
        let machine = self.server.connection(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        self.platform.spawn("nfs server", async move {
            let _ = serve_machine(machine, far).await;
        });
        near
    }

    /// The next piece to arrive; `None` if that takes too long or the connection is gone.
    async fn receive(&self, end: &LinkEnd) -> Option<Bytes> {
        let until = self.platform.now().after(PATIENCE_NS);
        match select(pin!(end.receive()), pin!(self.platform.sleep_until(until))).await {
            Either::Left((piece, _)) => piece,
            Either::Right(_) => None,
        }
    }

    async fn root(&self) -> Vec<u8> {
        let end = self.connect();
        let (_, record) = Envelope::new(1).record(MOUNT, 1, b"\0\0\0\x01/\0\0\0");
        end.send(record.into()).await.unwrap();
        let mut received = Vec::new();
        loop {
            received.extend(self.receive(&end).await.unwrap());
            if let Some(record) = take_record(&mut received) {
                let results = afflux_nfs_client::read_reply(&record).unwrap().results;
                let len = results[7] as usize;
                assert_eq!(results[..4], [0; 4]);
                return results[8..8 + len].to_vec();
            }
        }
    }

    /// One client, from its first operation to the end of the exercise.
    async fn client(self: Arc<Self>, at: usize, roughness: Roughness, mut random: Random) -> Result<(), String> {
        let mut end = self.connect();
        let (mut received, mut replies) = (Vec::new(), Vec::new());
        loop {
            while let Some(record) = self.with(|exercise| exercise.next(at)) {
                let _ = end.send(record.into()).await;
            }
            let in_flight = self.with(|exercise| exercise.in_flight(at));
            if in_flight == 0 {
                if self.with(|exercise| exercise.is_done()) {
                    return Ok(());
                }
                // Other clients have to proceed first.
                self.platform.sleep_until(self.platform.now().after(Nanos::MILLISECOND)).await;
                continue;
            }
            // Replies are handled in any order: some are held back while others can still come.
            while replies.len() < in_flight && (replies.is_empty() || random.below(2) == 0) {
                let Some(piece) = self.receive(&end).await else { break };
                received.extend(piece);
                while let Some(record) = take_record(&mut received) {
                    replies.push(record);
                }
            }
            let chance = |random: &mut Random, one_in: u64| one_in > 0 && random.below(one_in) == 0;
            let ends = chance(&mut random, roughness.end_one_in);
            if replies.is_empty() || ends || chance(&mut random, roughness.lose_one_in) {
                end = self.connect();
                (received, replies) = (Vec::new(), Vec::new());
                if ends {
                    self.with(|exercise| exercise.ended(at));
                }
                for record in self.with(|exercise| exercise.lost(at)) {
                    let _ = end.send(record.into()).await;
                }
                continue;
            }
            let mut record = replies.swap_remove(random.below(replies.len() as u64) as usize);
            if record.len() > 8192 && chance(&mut random, roughness.corrupt_one_in) {
                // After the reply's header and the file's attributes, everything is data.
                record[4096] ^= 1;
            }
            self.with(|exercise| exercise.reply(at, &record)).map_err(|fault| fault.to_string())?;
        }
    }

    fn with<T>(&self, run: impl FnOnce(&mut Exercise) -> T) -> T {
        run(&mut self.exercise.lock().unwrap())
    }
}

/// Runs a plan, then cuts the power and checks that all promised data is on the disk. Returns the virtual time of the
/// run, or the fault.
fn run(plan: Plan, roughness: Roughness) -> Result<u64, String> {
    let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(plan.seed) });
    let disk = Disk::new(&world, 0, DiskOptions { bytes_per_second: 100_000_000, ..DiskOptions::default() });
    let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
    let mut setup = Setup::default();
    setup.settings.add(&afflux_nfs::KNOBS);
    let volume = SimMachine::new(&world, Memory::Whole(CACHE_BYTES), setup).unwrap().add_tree("disk", &tree).unwrap();
    let link = Arc::new(Link::new(&world, 0, LinkOptions::parse(roughness.link).unwrap()));
    let server = Server::new(volume, AdmittedPeers::AnyPeer);
    let exercise = Arc::new(Mutex::new(Exercise::new(plan, b"")));
    let site = Site { platform: Arc::clone(world.platform()), link: Arc::clone(&link), server, exercise };
    let root = world.run(site.root()).unwrap();
    *site.exercise.lock().unwrap() = Exercise::new(plan, &root);
    let site = Arc::new(site);
    for at in 0..roughness.freezes {
        let from = world.platform().now().after((2 * at + 1) * Nanos::SECOND / 2).0;
        link.cut(from, from + (1 + at % 5) * Nanos::SECOND);
    }
    let ended: Arc<Mutex<Vec<Result<(), String>>>> = Arc::default();
    for at in 0..plan.clients {
        let random = Random(plan.seed ^ (at as u64) << 32);
        let (client, ended) = (Arc::clone(&site).client(at, roughness, random), Arc::clone(&ended));
        world.spawn("nfs client", async move {
            let result = client.await;
            ended.lock().unwrap().push(result);
        });
    }
    let platform = Arc::clone(world.platform());
    let (all, clients) = (Arc::clone(&ended), plan.clients);
    let waits = async move {
        while all.lock().unwrap().iter().all(Result::is_ok) && all.lock().unwrap().len() < clients {
            platform.sleep_until(platform.now().after(10 * Nanos::MILLISECOND)).await;
        }
    };
    world.run(waits).unwrap_or_else(|error| panic!("seed {}: {error}", plan.seed));
    for result in ended.lock().unwrap().drain(..) {
        result.map_err(|wrong| format!("{plan:?} {roughness:?}: {wrong}"))?;
    }
    let on_disk = |name: &str| {
        let file = tree.file_at(&[name])?;
        Some(disk.durable_bytes(file, 0, disk.durable_size(file) as usize))
    };
    let after = site.with(|exercise| exercise.killed(on_disk));
    after.map_err(|fault| format!("seed {}: {fault}", plan.seed))?;
    Ok(world.platform().now().0)
}

const SMOOTH: Roughness =
    Roughness { link: "rate=1Gbit,delay=0.1ms", lose_one_in: 0, end_one_in: 0, freezes: 0, corrupt_one_in: 0 };
const ROUGH: Roughness = Roughness {
    link: "rate=1Gbit,delay=1ms,loss=1%,retransmit=20ms",
    lose_one_in: 60,
    end_one_in: 150,
    freezes: 6,
    corrupt_one_in: 0,
};

fn small(seed: u64) -> Plan {
    Plan { seed, operations: 1_500, ..Plan::default() }
}

#[test]
fn random_operations_over_a_good_link_are_answered_rightly() {
    run(small(1), SMOOTH).unwrap();
}

#[test]
fn a_byte_that_changes_on_its_way_is_found() {
    let wrong = run(small(1), Roughness { corrupt_one_in: 100, ..SMOOTH }).unwrap_err();
    assert!(wrong.contains("READ of") && wrong.contains("holds no version of this file"), "{wrong}");
}

#[test]
fn random_operations_over_a_bad_link_with_ending_clients_and_a_frozen_server_are_answered_rightly() {
    for seed in 1..=2 {
        run(small(seed), ROUGH).unwrap();
    }
}

#[test]
#[ignore = "a million operations: minutes"]
fn a_million_random_operations_over_good_and_bad_links() {
    for seed in 0..100 {
        let plan = Plan { operations: 10_000, ..small(100 + seed) };
        let took_ns = run(plan, if seed % 2 == 0 { ROUGH } else { SMOOTH }).unwrap();
        eprintln!("seed {}: {} virtual ms", plan.seed, took_ns / Nanos::MILLISECOND);
    }
}
