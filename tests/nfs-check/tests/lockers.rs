//! Clients of version 4 that lock bytes of one file, through the simulator's links: each over two connections, with lost replies,
//! and some so silent that their leases end. A model of bytes knows who may have what.
//!
//! The server may be killed between any two stores to the memory that outlives the server. No act and no answer after that store
//! counts. The next server has the memory, and another volume over the same files.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{Output, ProtocolError, ProtocolMachine, Segment};
use afflux_nfs::{Admission, ClientMemory, Connection, Server};
use afflux_nfs_client::sessions::{Compound, NFS_4, Outcome, Stateid};
use afflux_nfs_client::{Envelope, read_reply, take_record};
use afflux_simulator::{
    Disk, DiskOptions, Link, LinkEnd, LinkOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions,
    World, WorldOptions, serve_machine,
};
use bytes::BytesMut;
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
/// Words that outlive a server.
const WORDS: usize = 1 << 14;
/// Most uses of these words before a kill: some hundred calls.
const USES_MAX: u64 = 30_000;

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
    /// Servers that were killed.
    kills: u64,
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

/// Words that outlive a server. Each store is one use, and the server is killed at a use.
struct Words {
    alive: Vec<AtomicU64>,
    /// The stores after the kill go here, where nobody looks.
    dead: Vec<AtomicU64>,
    uses_left: AtomicU64,
    is_dead: AtomicBool,
}

impl Words {
    fn new(values: impl Iterator<Item = u64>, uses: u64) -> Arc<Self> {
        let alive: Vec<AtomicU64> = values.map(AtomicU64::new).collect();
        let dead = alive.iter().map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { alive, dead, uses_left: AtomicU64::new(uses), is_dead: AtomicBool::new(false) })
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        self.alive.iter().map(|word| word.load(Ordering::Relaxed))
    }

    fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }
}

impl AsRef<[AtomicU64]> for Words {
    fn as_ref(&self) -> &[AtomicU64] {
        if self.is_dead() {
            return &self.dead;
        }
        if self.uses_left.fetch_sub(1, Ordering::Relaxed) > 1 {
            return &self.alive;
        }
        self.is_dead.store(true, Ordering::Relaxed);
        self.dead.iter().zip(self.values()).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        &self.dead
    }
}

/// A connection that answers nothing once its server is killed.
struct Mortal {
    connection: Connection<SimPlatform>,
    words: Arc<Words>,
}

impl ProtocolMachine for Mortal {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        if self.words.is_dead() {
            input.clear();
            return Ok(());
        }
        self.connection.receive(input)
    }

    fn needs_input(&self) -> bool {
        self.words.is_dead() || self.connection.needs_input()
    }

    fn input_hint(&self, input: &BytesMut) -> usize {
        self.connection.input_hint(input)
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        let mut segments: Vec<Segment> = Vec::new();
        let polled = self.connection.poll_output(cx, &mut segments);
        if self.words.is_dead() {
            return Poll::Pending;
        }
        segments.into_iter().for_each(|segment| output.push(segment));
        polled
    }

    fn calls_in_progress(&self) -> usize {
        self.connection.calls_in_progress()
    }
}

/// A server, until it is killed.
struct Serving {
    server: Arc<Server<SimPlatform>>,
    words: Arc<Words>,
}

struct Site {
    world: World,
    tree: Arc<MemoryTree>,
    platform: Arc<SimPlatform>,
    link: Arc<Link>,
    serving: Mutex<Serving>,
    model: Mutex<Model>,
}

/// A server over the files, with these words.
fn serving(world: &World, tree: &Arc<MemoryTree>, words: Arc<Words>) -> Serving {
    let mut setup = Setup::default();
    setup.settings.add(&afflux_nfs::KNOBS);
    let volume = SimMachine::new(world, Memory::Whole(4 << 20), setup).unwrap().add_tree("disk", tree).unwrap();
    let server = Server::new(volume, Admission::AnyPeer);
    server.offer_version_4(ClientMemory { words: Some(Arc::clone(&words) as _), ..ClientMemory::default() });
    Serving { server, words }
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
        let serving = self.serving.lock().unwrap();
        let connection = serving.server.connection(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1 + at as u8)));
        let machine = Mortal { connection, words: Arc::clone(&serving.words) };
        self.platform.spawn("nfs server", async move {
            let _ = serve_machine(machine, far).await;
        });
        (near, Vec::new())
    }

    fn now_ns(&self) -> u64 {
        self.platform.now().0
    }

    /// Starts the next server after each kill, some time later.
    async fn succeed(&self, mut random: Random) {
        loop {
            self.platform.sleep_until(self.platform.now().after(PATIENCE_NS / 10)).await;
            let left = {
                let serving = self.serving.lock().unwrap();
                serving.words.is_dead().then(|| serving.words.values().collect::<Vec<u64>>())
            };
            let Some(left) = left else { continue };
            let down_ns = random.below(10) * PATIENCE_NS / 10;
            self.platform.sleep_until(self.platform.now().after(down_ns)).await;
            // A third is killed soon.
            let uses = if random.below(3) == 0 { USES_MAX / 30 } else { USES_MAX };
            let words = Words::new(left.into_iter(), 1 + random.below(uses));
            *self.serving.lock().unwrap() = serving(&self.world, &self.tree, words);
            self.model.lock().unwrap().kills += 1;
        }
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
                        if outcome.status != BADSESSION {
                            self.site.model.lock().unwrap().clients[self.at].heard_ns = sent_ns;
                        }
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
        assert_eq!(self.open().await, 0);
    }

    /// Opens the file, which this client does not have open.
    async fn open(&mut self) -> u32 {
        let open = Compound::default().put_root().open((3, 0), b"program", b"file", true).get_handle();
        let opened = self.in_session(&open).await;
        if opened.status != 0 {
            return opened.status;
        }
        let mut reader = opened.reader();
        reader.skip_sequence().unwrap();
        assert_eq!(reader.next_result(), Ok((24, 0)));
        assert_eq!(reader.next_result(), Ok((18, 0)));
        self.open = reader.stateid().unwrap();
        assert_eq!(self.open.0, 1, "opened once");
        reader.skip_open().unwrap();
        assert_eq!(reader.next_result(), Ok((10, 0)));
        self.file = reader.opaque().unwrap().to_vec();
        self.locks = None;
        0
    }

    /// Closes the file, which ends the locks, and opens it again.
    async fn open_again(&mut self) -> u32 {
        self.site.model.lock().unwrap().clients[self.at].bytes.fill(0);
        let close = Compound::default().put(&self.file).close(self.open);
        match self.in_session(&close).await.status {
            0 => self.open().await,
            status => status,
        }
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

    /// Whether it has an exclusive lock of a byte.
    fn has(&self, byte: usize) -> bool {
        self.site.model.lock().unwrap().clients[self.at].bytes[byte] == EXCLUSIVE
    }

    async fn run(mut self, steps: usize) {
        let mut runs = 0;
        self.begin(runs).await;
        for _ in 0..steps {
            let (one, two) = (self.random.below(BYTES as u64) as usize, self.random.below(BYTES as u64) as usize);
            let (from, to) = (one.min(two), one.max(two) + 1);
            let range = (from as u64, (to - from) as u64);
            let status = match (self.random.below(13), self.locks) {
                (0, _) => {
                    // Half of these are longer than the lease.
                    let silent_ns = self.random.below(120) * Nanos::SECOND;
                    self.site.platform.sleep_until(self.site.platform.now().after(silent_ns)).await;
                    self.in_session(&Compound::default().put_root()).await.status
                }
                (1, Some(_)) if self.has(from) => {
                    // The lock is in the way of another owner, also after a kill.
                    let file = self.file.clone();
                    let test = Compound::default().put(&file).test_lock(SHARED, (from as u64, 1), b"another");
                    let status = self.in_session(&test).await.status;
                    assert!([DENIED, BADSESSION].contains(&status), "{} has lost byte {from}: {status}", self.at);
                    status
                }
                (12, Some(_)) => self.open_again().await,
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
                        let (now_ns, mut model) = (self.site.now_ns(), self.site.model.lock().unwrap());
                        let silent_ns = now_ns - model.clients[self.at].heard_ns;
                        assert!(silent_ns > LEASE_NS, "{} has lost its session after {silent_ns} ns", self.at);
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

fn run(seed: u64, steps: usize, kills: bool) -> Model {
    let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(seed) });
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
    let link =
        Arc::new(Link::new(&world, 0, LinkOptions::parse("rate=1Gbit,delay=1ms,loss=1%,retransmit=20ms").unwrap()));
    let mut random = Random(seed);
    let uses = if kills { 1 + random.below(USES_MAX) } else { u64::MAX };
    let first = serving(&world, &tree, Words::new((0..WORDS).map(|_| 0), uses));
    let platform = Arc::clone(world.platform());
    let site = Arc::new(Site { world, tree, platform, link, serving: Mutex::new(first), model: Mutex::default() });
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
    let lockers = futures_util::future::join_all(lockers.collect::<Vec<_>>());
    let of_keeper = Arc::clone(&site);
    let all = async move {
        let succeed = of_keeper.succeed(random);
        drop(select(pin!(lockers), pin!(succeed)).await);
    };
    site.world.run(all).unwrap();
    let held = site.serving.lock().unwrap().server.held_by_version_4().unwrap();
    assert!(held.0 <= 2 * CLIENTS, "{held:?}");
    std::mem::take(&mut *site.model.lock().unwrap())
}

#[test]
fn clients_with_lost_replies_and_ended_leases_never_have_locks_that_exclude_each_other() {
    let model = run(1, 400, false);
    let Model { granted, denied, ended, repeated, .. } = model;
    assert!(granted > 200 && denied > 100 && ended > 5 && repeated > 100, "{granted} {denied} {ended} {repeated}");
}

#[test]
fn clients_whose_server_is_killed_between_any_two_stores_lose_no_lock_and_share_none() {
    let Model { granted, ended, repeated, kills, .. } = run(1, 400, true);
    assert!(granted > 200 && ended > 5 && repeated > 100 && kills > 10, "{granted} {ended} {repeated} {kills}");
}

/// `AFFLUX_LOCKER_SEEDS` sets the number of seeds, and the first one in front of a comma.
#[test]
#[ignore = "a minute"]
fn many_lockers_with_lost_replies_ended_leases_and_kills() {
    let wanted = std::env::var("AFFLUX_LOCKER_SEEDS").unwrap_or_else(|_| "2,60".to_owned());
    let (first, count) = wanted.split_once(',').unwrap();
    let first: u64 = first.parse().unwrap();
    for seed in first..first + count.parse::<u64>().unwrap() {
        let model = std::panic::catch_unwind(|| run(seed, 300, !seed.is_multiple_of(4)));
        assert!(model.unwrap_or_else(|_| panic!("seed {seed}")).granted > 0, "seed {seed}");
    }
}
