//! WRITEs that a disk does not take are parked: their replies are withheld, and everything else on the same connection
//! continues. The server is the real one, in virtual time.

//! rule: a WRITE that waits is parked, and other calls of its connection go on; one client's connections share a bound
//! kept in: `product/nfs/src/connection.rs`, `product/frontend/src/quota/mod.rs`

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{ProtocolMachine as _, Segment};
use afflux_nfs::{AdmittedPeers, Connection, NfsKnob, Server};
use afflux_simulator::{
    Disk, DiskOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions, World, WorldOptions,
};
use afflux_volume::{AttributeChange, CreateHow, Volume};
use bytes::BytesMut;

const GETATTR: u32 = 1;
const READ: u32 = 6;
const WRITE: u32 = 7;
const WRITE_BYTES: u32 = 256 << 10;
const INFLIGHT_BYTES: u64 = 4 << 20;

struct ParkingFixture {
    world: World,
    disk: Arc<Disk>,
    volume: Arc<Volume<SimPlatform>>,
    server: Arc<Server<SimPlatform>>,
}

impl ParkingFixture {
    fn new() -> Self {
        let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(1) });
        let disk = Disk::new(&world, 0, DiskOptions { bytes_per_second: 25_000_000, ..DiskOptions::default() });
        let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
        let mut setup = Setup::default();
        setup.settings.add(&afflux_nfs::KNOBS);
        setup.settings.set(NfsKnob::InflightBytes, INFLIGHT_BYTES).unwrap();
        let mut machine = SimMachine::new(&world, Memory::Whole(8 << 20), setup).unwrap();
        let volume = machine.add_tree("disk", &tree).unwrap();
        let server = Server::new(Arc::clone(&volume), AdmittedPeers::AnyPeer);
        Self { world, disk, volume, server }
    }

    /// The handle of a new file.
    fn file(&self, name: &str) -> Vec<u8> {
        self.world
            .run(async {
                let root = self.volume.mount(b"/").await.unwrap();
                let how = CreateHow::Guarded(AttributeChange::default());
                let (inode, _) = self.volume.create(&root, name.as_bytes(), how).await.result.unwrap();
                self.volume.handle(&inode).as_bytes().to_vec()
            })
            .unwrap()
    }

    fn connect(&self, last: u8) -> Peer {
        let address = std::net::IpAddr::from([10, 0, 0, last]);
        Peer { connection: self.server.connection(address), output: Vec::new(), sent: 0 }
    }

    /// Polls a connection for this long; returns the number and the status of each reply.
    fn poll(&self, peer: &mut Peer, ns: u64) -> Vec<(u32, u32)> {
        let platform = self.world.platform();
        let polled = async {
            let mut over = pin!(platform.sleep_until(platform.now().after(ns)));
            poll_fn(|cx| {
                loop {
                    let mut segments = Vec::new();
                    if peer.connection.poll_output(cx, &mut segments).is_pending() {
                        return over.as_mut().poll(cx);
                    }
                    for segment in &segments {
                        match segment {
                            Segment::Bytes(bytes) => peer.output.extend_from_slice(bytes),
                            Segment::Lent(bytes) => peer.output.extend_from_slice(bytes),
                            Segment::Pages(pages) => pages.slices().for_each(|it| peer.output.extend_from_slice(it)),
                        }
                    }
                }
            })
            .await;
        };
        self.world.run(polled).unwrap();
        peer.replies()
    }
}

struct Peer {
    connection: Connection<SimPlatform>,
    output: Vec<u8>,
    sent: u32,
}

impl Peer {
    /// Sends a call with a handle, words, and bytes if there are any. Returns its number.
    fn call(&mut self, procedure: u32, handle: &[u8], words: &[u32], data: Option<&[u8]>) -> u32 {
        let number = self.sent;
        self.sent += 1;
        // A call of NFS 3 without credentials.
        let mut record: Vec<u8> =
            [number, 0, 2, 100_003, 3, procedure, 0, 0, 0, 0].iter().flat_map(|word| word.to_be_bytes()).collect();
        let opaque = |record: &mut Vec<u8>, bytes: &[u8]| {
            record.extend((bytes.len() as u32).to_be_bytes());
            record.extend(bytes);
            record.resize(record.len().next_multiple_of(4), 0);
        };
        opaque(&mut record, handle);
        record.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        data.into_iter().for_each(|data| opaque(&mut record, data));
        let mark = (1 << 31 | record.len() as u32).to_be_bytes();
        let mut input = BytesMut::from(&[&mark[..], &record].concat()[..]);
        self.connection.receive(&mut input).unwrap();
        assert!(input.is_empty());
        number
    }

    fn write(&mut self, handle: &[u8], offset: u64) -> u32 {
        let words = [(offset >> 32) as u32, offset as u32, WRITE_BYTES, 0];
        self.call(WRITE, handle, &words, Some(&vec![7; WRITE_BYTES as usize]))
    }

    /// Writes until the server wants no more.
    fn fill(&mut self, lab: &ParkingFixture, handle: &[u8]) -> Vec<(u32, u32)> {
        let mut replies = Vec::new();
        for number in 0.. {
            if !self.connection.needs_input() {
                break;
            }
            assert!(number < 1_000, "it never has enough");
            self.write(handle, number * u64::from(WRITE_BYTES));
            replies.extend(lab.poll(self, Nanos::SECOND / 1000));
        }
        replies
    }

    fn replies(&mut self) -> Vec<(u32, u32)> {
        let mut replies = Vec::new();
        while let Some(mark) = self.output.first_chunk::<4>() {
            let end = 4 + (u32::from_be_bytes(*mark) & !(1 << 31)) as usize;
            if self.output.len() < end {
                break;
            }
            let word = |at: usize| u32::from_be_bytes(self.output[4 + 4 * at..8 + 4 * at].try_into().unwrap());
            // Number, a reply, accepted, an empty verifier of two words, success; then the status.
            replies.push((word(0), word(6)));
            self.output.drain(..end);
        }
        replies
    }
}

#[test]
fn while_writes_are_parked_other_calls_of_the_connection_are_answered() {
    let lab = ParkingFixture::new();
    let (file, other) = (lab.file("file"), lab.file("other"));
    let mut peer = lab.connect(1);
    let cached = peer.write(&other, 0);
    assert_eq!(lab.poll(&mut peer, Nanos::SECOND), [(cached, 0)]);
    lab.disk.hang();
    // More than the memory, and less than the limit of calls in progress.
    let mut withheld: Vec<u32> = Vec::new();
    let mut answered = Vec::new();
    for number in 0..44 {
        if peer.connection.held_bytes() + u64::from(WRITE_BYTES) > INFLIGHT_BYTES {
            break;
        }
        withheld.push(peer.write(&file, number * u64::from(WRITE_BYTES)));
        answered.extend(lab.poll(&mut peer, Nanos::SECOND));
    }
    withheld.retain(|number| !answered.contains(&(*number, 0)));
    assert!(withheld.len() >= 8, "{} are parked, {} were taken", withheld.len(), answered.len());
    assert!(peer.connection.needs_input(), "there is room for more");
    let attributes = peer.call(GETATTR, &file, &[], None);
    let read = peer.call(READ, &other, &[0, 0, 4096], None);
    let mut replies = lab.poll(&mut peer, 100 * Nanos::SECOND);
    replies.sort_unstable();
    assert_eq!(replies, [(attributes, 0), (read, 0)], "and no WRITE is told to come again");
    lab.disk.release();
    let mut replies = lab.poll(&mut peer, 100 * Nanos::SECOND);
    replies.sort_unstable();
    assert_eq!(replies, withheld.iter().map(|number| (*number, 0)).collect::<Vec<_>>());
}

#[test]
fn only_when_no_more_can_be_parked_is_a_connection_not_read_and_then_it_is_again() {
    let lab = ParkingFixture::new();
    let file = lab.file("file");
    let mut peer = lab.connect(1);
    lab.disk.hang();
    let early = peer.fill(&lab, &file).len();
    let held = peer.connection.held_bytes();
    let most = INFLIGHT_BYTES + u64::from(WRITE_BYTES) + (64 << 10);
    assert!((INFLIGHT_BYTES..=most).contains(&held), "{held} bytes");
    let parked = u64::from(peer.sent) - early as u64;
    // Each counts with its bytes and with a call's own memory.
    assert!(parked * (u64::from(WRITE_BYTES) + (12 << 10)) <= held, "{parked} are parked, {held} bytes are held");
    lab.poll(&mut peer, 3600 * Nanos::SECOND);
    assert!(!peer.connection.needs_input());
    lab.disk.release();
    let late = lab.poll(&mut peer, 100 * Nanos::SECOND);
    assert!(peer.connection.needs_input());
    assert_eq!(early + late.len(), peer.sent as usize);
    assert!(late.iter().all(|(_, status)| *status == 0), "{late:?}");
}

#[test]
fn connections_of_one_client_share_a_bound_and_another_client_has_its_own() {
    let lab = ParkingFixture::new();
    let file = lab.file("file");
    lab.disk.hang();
    // A party has as much as four connections.
    let mut full = [1; 4].map(|client| lab.connect(client));
    let [mut fifth, mut other] = [1, 2].map(|client| lab.connect(client));
    full.iter_mut().for_each(|peer| drop(peer.fill(&lab, &file)));
    let held: u64 = full.iter().map(|peer| peer.connection.held_bytes()).sum();
    assert!(held <= 4 * INFLIGHT_BYTES + u64::from(WRITE_BYTES) + (64 << 10), "{held}");
    fifth.fill(&lab, &file);
    assert_eq!(fifth.sent, 1, "one call, as it has none else");
    assert!(fifth.connection.held_bytes() <= u64::from(WRITE_BYTES) + (64 << 10));
    other.fill(&lab, &file);
    assert!(other.connection.held_bytes() >= INFLIGHT_BYTES / 2);
    lab.disk.release();
    // Each continues when the others' calls have ended.
    for _ in 0..2 {
        for peer in full.iter_mut().chain([&mut fifth, &mut other]) {
            assert!(lab.poll(peer, 100 * Nanos::SECOND).iter().all(|(_, status)| *status == 0));
        }
    }
    for peer in full.iter().chain([&fifth, &other]) {
        assert!(peer.connection.needs_input() && peer.connection.held_bytes() == 0);
    }
}
