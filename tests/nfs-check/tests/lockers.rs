//! Clients of version 4 that lock bytes of one file, through the simulator's links: each over two connections, with lost replies,
//! and some so silent that their leases end. A model of bytes knows who may have what.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};
use afflux_nfs::{Admission, ClientMemory, Server};
use afflux_nfs_client::sessions::{Compound, NFS_4, Outcome, Stateid};
use afflux_nfs_client::{Envelope, read_reply, take_record};
use afflux_simulator::{
    Disk, DiskOptions, Link, LinkEnd, LinkOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions,
    World, WorldOptions, serve_machine,
};
use futures_util::future::{Either, select};

const BYTES: usize = 32;
const CLIENTS: usize = 4;
const PATIENCE_NS: u64 = Nanos::SECOND / 10;
/// The lease, as the server tells it.
const LEASE_NS: u64 = 60 * Nanos::SECOND;
const DENIED: u32 = 10_010;
const DELAY: u32 = 10_008;
const STALE_CLIENTID: u32 = 10_022;
const BADSESSION: u32 = 10_052;
const SHARED: u32 = 1;
const EXCLUSIVE: u32 = 2;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What a client may believe to have.
#[derive(Default)]
struct Belief {
    /// The kind of its lock on each byte; 0 is none.
    bytes: [u32; BYTES],
    /// When it sent the last call that was answered: its lease has not ended before that and a lease.
    heard_ns: u64,
}

#[derive(Default)]
struct Model {
    clients: [Belief; CLIENTS],
    granted: u64,
    denied: u64,
    /// Sessions that ended with a lease.
    ended: u64,
    /// Calls that were sent again.
    repeated: u64,
}

impl Model {
    /// A client was granted a lock: nobody whose lease lasts may have one that excludes it.
    fn grant(&mut self, at: usize, kind: u32, range: std::ops::Range<usize>, now_ns: u64) {
        for (other, belief) in self.clients.iter().enumerate().filter(|(other, _)| *other != at) {
            let lasts = now_ns < belief.heard_ns + LEASE_NS;
            let clash =
                belief.bytes[range.clone()].iter().any(|held| *held == EXCLUSIVE || (*held > 0 && kind == EXCLUSIVE));
            assert!(!(lasts && clash), "{at} was granted {range:?} that {other} has");
        }
        self.clients[at].bytes[range].fill(kind);
        self.granted += 1;
    }
}

struct Site {
    platform: Arc<SimPlatform>,
    link: Arc<Link>,
    server: Arc<Server<SimPlatform>>,
    model: Mutex<Model>,
}

struct Locker {
    site: Arc<Site>,
    at: usize,
    random: Random,
    ends: [(LinkEnd, Vec<u8>); 2],
    envelope: Envelope,
    session: [u8; 16],
    sequence: u32,
    file: Vec<u8>,
    open: Stateid,
    /// Its stateid for locks.
    locks: Option<Stateid>,
}

impl Site {
    fn connect(&self, at: usize) -> (LinkEnd, Vec<u8>) {
        let (near, far) = self.link.connect();
        let machine = self.server.connection(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1 + at as u8)));
        self.platform.spawn("nfs server", async move {
            let _ = serve_machine(machine, far).await;
        });
        (near, Vec::new())
    }

    fn now_ns(&self) -> u64 {
        self.platform.now().0
    }
}

impl Locker {
    /// Sends a call until it is answered. Some answers are lost, and the call comes again over the other connection.
    async fn call(&mut self, ops: &Compound) -> Outcome {
        let (xid, record) = self.envelope.record(NFS_4, 1, &ops.arguments(1));
        let mut over = self.random.below(2) as usize;
        loop {
            let sent_ns = self.site.now_ns();
            let _ = self.ends[over].0.send(record.clone().into()).await;
            let loses = self.random.below(8) == 0;
            loop {
                if loses {
                    break;
                }
                let until = self.site.platform.now().after(PATIENCE_NS);
                let (end, received) = &mut self.ends[over];
                let Either::Left((Some(piece), _)) =
                    select(pin!(end.receive()), pin!(self.site.platform.sleep_until(until))).await
                else {
                    break;
                };
                received.extend(piece);
                while let Some(record) = take_record(received) {
                    let Ok(reply) = read_reply(&record) else { continue };
                    let outcome = Outcome::read(&reply.results).unwrap();
                    if reply.xid == xid && outcome.status != DELAY {
                        self.site.model.lock().unwrap().clients[self.at].heard_ns = sent_ns;
                        return outcome;
                    }
                }
            }
            self.site.model.lock().unwrap().repeated += 1;
            if self.random.below(2) == 0 {
                self.ends[over] = self.site.connect(self.at);
            }
            over = 1 - over;
        }
    }

    async fn in_session(&mut self, ops: &Compound) -> Outcome {
        self.sequence += 1;
        let first = Compound::default().sequence(self.session, self.sequence, 0, true);
        self.call(&first.followed_by(ops)).await
    }

    /// A client of its own, with the file open.
    async fn begin(&mut self, run: u64) {
        let owner = [self.at as u8];
        // A late answer may name a client that a repetition has replaced.
        let made = loop {
            let known = self.call(&Compound::default().exchange_id(&owner, run.to_be_bytes(), 0)).await;
            let mut reader = known.reader();
            assert_eq!(reader.next_result(), Ok((42, 0)));
            let (number, sequence) = (reader.u64().unwrap(), reader.u32().unwrap());
            let made = self.call(&Compound::default().create_session(number, sequence, 16, 4)).await;
            if made.status == 0 {
                break made;
            }
            assert_eq!(made.status, STALE_CLIENTID);
        };
        (self.session, self.sequence) = (*made.results[8..].first_chunk().unwrap(), 0);
        assert_eq!(self.in_session(&Compound::default().reclaim_complete()).await.status, 0);
        let open = Compound::default().put_root().open((3, 0), b"program", b"file", true).get_handle();
        let opened = self.in_session(&open).await;
        let mut reader = opened.reader();
        reader.skip_sequence().unwrap();
        assert_eq!(reader.next_result(), Ok((24, 0)));
        assert_eq!(reader.next_result(), Ok((18, 0)));
        self.open = reader.stateid().unwrap();
        reader.skip_open().unwrap();
        assert_eq!(reader.next_result(), Ok((10, 0)));
        self.file = reader.opaque().unwrap().to_vec();
        self.locks = None;
    }

    /// A LOCK or LOCKU, whose stateid must be one step on from the last one: the call was carried out once.
    async fn step(&mut self, ops: Compound) -> u32 {
        let outcome = self.in_session(&Compound::default().put(&self.file.clone()).followed_by(&ops)).await;
        if outcome.status == 0 {
            let mut reader = outcome.reader();
            reader.skip_sequence().unwrap();
            assert_eq!(reader.next_result(), Ok((22, 0)));
            assert!(matches!(reader.next_result(), Ok((12 | 14, 0))));
            let stateid = reader.stateid().unwrap();
            assert_eq!(stateid.0, self.locks.map_or(1, |it| it.0 + 1), "carried out once");
            self.locks = Some(stateid);
        }
        outcome.status
    }

    async fn run(mut self, steps: usize) {
        let mut runs = 0;
        self.begin(runs).await;
        for _ in 0..steps {
            let (one, two) = (self.random.below(BYTES as u64) as usize, self.random.below(BYTES as u64) as usize);
            let (from, to) = (one.min(two), one.max(two) + 1);
            let range = (from as u64, (to - from) as u64);
            let status = match (self.random.below(12), self.locks) {
                (0, _) => {
                    // Half of these are longer than the lease.
                    let silent_ns = self.random.below(120) * Nanos::SECOND;
                    self.site.platform.sleep_until(self.site.platform.now().after(silent_ns)).await;
                    self.in_session(&Compound::default().put_root()).await.status
                }
                (1..=4, Some(locks)) => {
                    // From now on it may be another's.
                    self.site.model.lock().unwrap().clients[self.at].bytes[from..to].fill(0);
                    self.step(Compound::default().unlock(range, locks)).await
                }
                (choice, locks) => {
                    let kind = if choice.is_multiple_of(2) { SHARED } else { EXCLUSIVE };
                    if kind == SHARED {
                        let mut model = self.site.model.lock().unwrap();
                        model.clients[self.at].bytes[from..to].iter_mut().for_each(|held| *held = (*held).min(SHARED));
                    }
                    let status = match locks {
                        Some(locks) => self.step(Compound::default().lock_more(kind, range, locks)).await,
                        None => self.step(Compound::default().lock(kind, range, self.open, b"owner")).await,
                    };
                    let (now_ns, mut model) = (self.site.now_ns(), self.site.model.lock().unwrap());
                    match status {
                        0 => model.grant(self.at, kind, from..to, now_ns),
                        DENIED => model.denied += 1,
                        _ => {}
                    }
                    status
                }
            };
            match status {
                0 | DENIED => {}
                BADSESSION => {
                    runs += 1;
                    {
                        let mut model = self.site.model.lock().unwrap();
                        model.clients[self.at].bytes.fill(0);
                        model.ended += 1;
                    }
                    self.begin(runs).await;
                }
                other => panic!("status {other}"),
            }
        }
    }
}

fn run(seed: u64, steps: usize) -> Model {
    let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(seed) });
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
    let mut setup = Setup::default();
    setup.settings.add(&afflux_nfs::KNOBS);
    let volume = SimMachine::new(&world, Memory::Whole(4 << 20), setup).unwrap().add_tree("disk", &tree).unwrap();
    let link =
        Arc::new(Link::new(&world, 0, LinkOptions::parse("rate=1Gbit,delay=1ms,loss=1%,retransmit=20ms").unwrap()));
    let server = Server::new(Arc::clone(&volume), Admission::AnyPeer);
    server.offer_version_4(ClientMemory::default());
    let site = Arc::new(Site { platform: Arc::clone(world.platform()), link, server, model: Mutex::default() });
    let lockers = (0..CLIENTS).map(|at| {
        let locker = Locker {
            ends: [site.connect(at), site.connect(at)],
            site: Arc::clone(&site),
            at,
            random: Random(seed ^ (at as u64) << 32),
            envelope: Envelope::new(1 + at as u32 * 1_000_000),
            session: [0; 16],
            sequence: 0,
            file: Vec::new(),
            open: (0, [0; 12]),
            locks: None,
        };
        locker.run(steps)
    });
    world.run(futures_util::future::join_all(lockers.collect::<Vec<_>>())).unwrap();
    let held = volume.locks().held();
    assert!(held.len() <= CLIENTS, "{held:?}");
    std::mem::take(&mut *site.model.lock().unwrap())
}

#[test]
fn clients_with_lost_replies_and_ended_leases_never_have_locks_that_exclude_each_other() {
    let model = run(1, 400);
    let Model { granted, denied, ended, repeated, .. } = model;
    assert!(granted > 200 && denied > 100 && ended > 5 && repeated > 100, "{granted} {denied} {ended} {repeated}");
}

#[test]
#[ignore = "a minute"]
fn many_lockers_with_lost_replies_and_ended_leases() {
    for seed in 2..60 {
        assert!(run(seed, 1_000).granted > 0);
    }
}
