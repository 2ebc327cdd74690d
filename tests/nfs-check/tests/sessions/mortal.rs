//! Servers that are killed between any two stores to the memory that outlives them. No act and no answer after that
//! store counts. The next server has the memory, and another volume over the files as the kill left them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{Output, ProtocolError, ProtocolMachine, Segment};
use afflux_nfs::{AdmittedPeers, ClientMemory, Connection, Server};
use afflux_simulator::{
    Disk, DiskOptions, Link, LinkEnd, LinkOptions, Memory, MemoryTree, Random as Chances, Setup, SimMachine,
    SimPlatform, TreeOptions, World, WorldOptions, serve_machine,
};
use bytes::BytesMut;

/// How long a client waits for an answer.
pub(crate) const PATIENCE_NS: u64 = Nanos::SECOND / 10;
/// Words that outlive a server.
const WORDS: usize = 1 << 14;
/// Most uses of these words before a kill: some hundred calls.
const USES_MAX: u64 = 30_000;

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Words that outlive a server. Each store is one use, and the server is killed at a use.
struct Words {
    alive: Vec<AtomicU64>,
    /// The stores after the kill go here, where nobody looks.
    dead: Vec<AtomicU64>,
    uses_left: AtomicU64,
    is_dead: AtomicBool,
    /// The files, and those that a kill leaves.
    files: Files,
    left: Mutex<Option<Files>>,
}

/// The files of a server.
#[derive(Clone)]
struct Files {
    world: Arc<World>,
    disk: Arc<Disk>,
    tree: Arc<MemoryTree>,
}

impl Files {
    fn new(world: &Arc<World>) -> Self {
        let disk = Disk::new(world, 0, DiskOptions::default());
        let tree = MemoryTree::new(world, &disk, TreeOptions::default());
        Self { world: Arc::clone(world), disk, tree }
    }

    /// The files as a kill leaves them now. What the killed server still does reaches only its own.
    fn after_kill(&self) -> Self {
        let disk = Disk::new(&self.world, 0, DiskOptions::default());
        disk.restore(self.disk.files_after_kill(&mut Chances::new(0)));
        let tree = self.tree.after_kill(&self.world, &disk, TreeOptions::default());
        Self { world: Arc::clone(&self.world), disk, tree }
    }
}

impl Words {
    fn new(files: Files, values: impl Iterator<Item = u64>, uses: u64) -> Arc<Self> {
        let alive: Vec<AtomicU64> = values.map(AtomicU64::new).collect();
        let dead = alive.iter().map(|_| AtomicU64::new(0)).collect();
        let (uses_left, is_dead) = (AtomicU64::new(uses), AtomicBool::new(false));
        Arc::new(Self { alive, dead, uses_left, is_dead, files, left: Mutex::default() })
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
        *self.left.lock().unwrap() = Some(self.files.after_kill());
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

    fn poll_calls(&mut self, cx: &mut Context<'_>) {
        self.connection.poll_calls(cx);
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

/// A world with a server that is killed now and then.
pub(crate) struct Site {
    pub(crate) world: Arc<World>,
    pub(crate) platform: Arc<SimPlatform>,
    link: Link,
    serving: Mutex<Serving>,
    /// Servers that were killed.
    kills: AtomicU64,
}

/// A server over the files, with these words.
fn serving(words: Arc<Words>) -> Serving {
    let mut setup = Setup::default();
    setup.settings.add(&afflux_nfs::KNOBS);
    let Files { world, tree, .. } = &words.files;
    let volume = SimMachine::new(world, Memory::Whole(4 << 20), setup).unwrap().add_tree("disk", tree).unwrap();
    let server = Server::new(volume, AdmittedPeers::AnyPeer);
    server.offer_version_4(ClientMemory { words: Some(Arc::clone(&words) as _), ..ClientMemory::default() });
    Serving { server, words }
}

impl Site {
    pub(crate) fn new(seed: u64, random: &mut Random, kills: bool) -> Arc<Self> {
        let world = Arc::new(World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(seed) }));
        let link = Link::new(&world, 0, LinkOptions::parse("rate=1Gbit,delay=1ms,loss=1%,retransmit=20ms").unwrap());
        let uses = if kills { 1 + random.below(USES_MAX) } else { u64::MAX };
        let first = serving(Words::new(Files::new(&world), (0..WORDS).map(|_| 0), uses));
        let platform = Arc::clone(world.platform());
        Arc::new(Self { world, platform, link, serving: Mutex::new(first), kills: AtomicU64::new(0) })
    }

    pub(crate) fn connect(&self, at: usize) -> (LinkEnd, Vec<u8>) {
        let (near, far) = self.link.connect();
        let serving = self.serving.lock().unwrap();
        let connection = serving.server.connection(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1 + at as u8)));
        let machine = Mortal { connection, words: Arc::clone(&serving.words) };
        self.platform.spawn("nfs server", async move {
            let _ = serve_machine(machine, far).await;
        });
        (near, Vec::new())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.platform.now().0
    }

    pub(crate) async fn sleep(&self, ns: u64) {
        self.platform.sleep_until(self.platform.now().after(ns)).await;
    }

    /// Numbers of clients, sessions and opens.
    pub(crate) fn held(&self) -> (usize, usize, usize) {
        self.serving.lock().unwrap().server.held_by_version_4().unwrap()
    }

    pub(crate) fn kills(&self) -> u64 {
        self.kills.load(Ordering::Relaxed)
    }

    /// Starts the next server after each kill, some time later.
    pub(crate) async fn succeed(&self, mut random: Random) {
        loop {
            self.sleep(PATIENCE_NS / 10).await;
            let left = {
                let serving = self.serving.lock().unwrap();
                let files = serving.words.left.lock().unwrap().take();
                files.map(|files| (files, serving.words.values().collect::<Vec<u64>>()))
            };
            let Some((files, values)) = left else { continue };
            self.sleep(random.below(10) * PATIENCE_NS / 10).await;
            // A third is killed soon.
            let uses = if random.below(3) == 0 { USES_MAX / 30 } else { USES_MAX };
            let words = Words::new(files, values.into_iter(), 1 + random.below(uses));
            *self.serving.lock().unwrap() = serving(words);
            self.kills.fetch_add(1, Ordering::Relaxed);
        }
    }
}
