//! The protocol machine with a volume behind it, which takes any bytes in any pieces.
//!
//! Owns: one simulated server, the initial streams for fuzzing, the properties that hold for any input.
//! Does not own: the codec (`afflux_nfs_client`); the source of inputs, which is a seeded mutator in an ordinary test,
//! or libFuzzer.
//! Invariants: no input causes a panic or a hang. A partial record is kept only up to a record's largest size. The
//! answers to a stream do not depend on its cuts.

use std::future::{Future as _, poll_fn};
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_frontend::{ProtocolMachine as _, Segment};
use afflux_nfs::{AdmittedPeers, ClientMemory, RECORD_BYTES_MAX, Server};
use afflux_nfs_client::sessions::{CURRENT, Compound, NFS_4, Outcome};
use afflux_nfs_client::{Envelope, Fields, MOUNT, NFS, read_reply, take_record};
use afflux_simulator::{
    Disk, DiskOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions, World, WorldOptions,
};
use bytes::BytesMut;

const CACHE_BYTES: u64 = 4 << 20;

/// The result of one feeding.
#[derive(Debug, PartialEq, Eq)]
struct Fed {
    /// The numbers of the answered calls, in order.
    answered: Vec<u32>,
    /// The stream was refused.
    closed: bool,
}

/// A server that takes inputs.
pub struct FuzzedServer {
    world: World,
    server: Arc<Server<SimPlatform>>,
}

impl FuzzedServer {
    /// A server over an empty directory, the same each time.
    pub fn new() -> Self {
        let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(1) });
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
        let mut setup = Setup::default();
        setup.settings.add(&afflux_nfs::KNOBS);
        let xattrs = setup.settings.named("nfs_xattrs").unwrap();
        setup.settings.set(xattrs, 1).unwrap();
        let memory = Memory::Whole(CACHE_BYTES);
        let volume = SimMachine::new(&world, memory, setup).unwrap().add_tree("disk", &tree).unwrap();
        let server = Server::new(volume, AdmittedPeers::AnyPeer);
        server.offer_version_4(ClientMemory::default());
        Self { world, server }
    }

    /// Feeds a stream in pieces that end at `cuts`; the output is split at its record marks.
    fn feed(&self, stream: &[u8], mut cuts: impl FnMut(usize) -> usize) -> (Fed, Vec<u8>) {
        let mut connection = self.server.connection(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        let (mut input, mut output, mut closed) = (BytesMut::new(), Vec::new(), false);
        let mut feeding = pin!(async {
            let mut at = 0;
            while at < stream.len() && !closed {
                // As in the real world, nothing is received while the machine wants no input. Without a call in
                // progress there is nothing to poll for, and polling would take most of the time.
                if connection.calls_in_progress() > 0 || !connection.needs_input() {
                    poll_fn(|cx| {
                        while take_output(&mut connection, cx, &mut output) {}
                        if connection.needs_input() { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                }
                let end = cuts(at).clamp(at + 1, stream.len());
                input.extend_from_slice(&stream[at..end]);
                at = end;
                closed = connection.receive(&mut input).is_err();
                assert!(closed || input.len() <= RECORD_BYTES_MAX + 4, "{} bytes wait", input.len());
            }
            poll_fn(|cx| {
                while take_output(&mut connection, cx, &mut output) {}
                if connection.calls_in_progress() == 0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        });
        // Most streams have nothing to wait for: a run of the world would cost more than the feeding.
        if feeding.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.world.run(feeding).unwrap_or_else(|error| panic!("it hangs: {error}"));
        }
        (Fed { answered: answered(&output), closed }, output)
    }

    /// Feeds an input. Its first byte chooses the cuts: 0 cuts at every byte, any other number after that many bytes
    /// and then every 256. The rest is the stream.
    ///
    /// # Panics
    /// When a property does not hold.
    pub fn run(&self, input: &[u8]) {
        let Some((how, stream)) = input.split_first() else { return };
        let (mut whole, _) = self.feed(stream, |_| stream.len());
        let (first, step) = if *how == 0 { (1, 1) } else { (usize::from(*how), 256) };
        if stream.len() <= first {
            return;
        }
        let (mut cut, _) = self.feed(stream, |at| if at == 0 { first } else { at + step });
        whole.answered.sort_unstable();
        cut.answered.sort_unstable();
        assert_eq!(whole.closed, cut.closed, "cut by {how}");
        // Once the rest of a stream cannot be read, the world closes the connection and drops its unanswered calls.
        assert!(whole.closed || whole == cut, "cut by {how}: {whole:?}, {cut:?}");
    }

    /// Streams of compounds of version 4, in a session that this server knows: each operation alone, and whole
    /// sessions.
    pub fn seeds_of_sessions(&self) -> Vec<Vec<u8>> {
        let none = Compound::default;
        let results = |operations: &Compound| {
            let record = &self.feed(&compound(1, 1, operations), |_| usize::MAX).1[4..];
            Outcome::read(&read_reply(record).unwrap().results).unwrap()
        };
        let introduce = none().exchange_id(b"fuzzer", [0, 0, 0, 1, 0, 0, 0, 2], 0);
        let known = results(&introduce);
        let mut known = known.reader();
        known.next_result().unwrap();
        let create = none().create_session(known.u64().unwrap(), 1, 16, 8);
        let session: [u8; 16] = results(&create).results[8..24].try_into().unwrap();
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let raw = |operations: Compound, number, arguments: &[u32]| operations.raw(number, &words(arguments));
        let current = |operations, number, rest: &[u32]| raw(operations, number, &[&[1, 0, 0, 0], rest].concat());
        let opened = || none().put_root().open((3, 0), b"owner", b"a", true);
        let extended = |operations: Compound, number, before: &[u32], parts: &[&[u8]]| {
            let parts = parts.iter().fold(Fields(words(before)), |fields, part| fields.opaque(part));
            operations.raw(number, &parts.0)
        };
        let copy = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 5000, 0, 10, 1, 1, 0];
        let allocated = current(current(current(opened(), 59, &[0, 0, 0, 9000]), 68, &[0, 0, 200]), 69, &[0, 0, 1]);
        let named = extended(extended(none().put_root(), 73, &[0], &[b"x", b"value"]), 72, &[], &[b"x"]);
        let groups = [
            (1, none().reclaim_complete()),
            (1, none().put_root().get_handle().attributes(&[u32::MAX, u32::MAX])),
            (1, opened().write(CURRENT, 0, 0, &[7; 300]).read(CURRENT, 0, 200).commit().close(CURRENT)),
            (1, none().put_root().save().rename(b"a", b"b").restore()),
            (1, none().put_root().make_directory(b"d").lookup_parent().remove(b"d")),
            (1, none().put_root().list(0, 4096, &[0x0010_0012, 2])),
            (1, none().put_root().access(0x3f).lookup(b"b").read_link()),
            (1, none().test_stateid((1, [0; 12])).free((1, [1; 12]))),
            (1, raw(none().put_root(), 52, &[0]).get_handle()),
            (1, none().raw(44, &session)),
            (2, raw(current(allocated, 62, &[0, 0, 0, 9]).save(), 60, &copy)),
            (2, extended(raw(named, 74, &[0, 0, 4096]), 75, &[], &[b"x"])),
        ];
        let numbered = groups.iter().zip(0..).map(|((minor, group), at)| {
            let sequence = none().sequence(session, 1 + at / 8, at % 8, true);
            compound(100 + at, *minor, &sequence.followed_by(group))
        });
        let mut seeds: Vec<Vec<u8>> = numbered.collect();
        seeds.extend([compound(90, 1, &introduce), compound(91, 1, &create)]);
        seeds.push([compound(90, 1, &introduce), compound(91, 1, &create), seeds.concat()].concat());
        seeds
    }

    /// The replies to all calls of [`Self::seeds`], each byte of them.
    pub fn replies(&self) -> Vec<u8> {
        self.seeds().iter().flat_map(|stream| self.feed(stream, |_| stream.len()).1).collect()
    }

    /// The handle behind the first words of the results of one call.
    fn handle(&self, program: (u32, u32), procedure: u32, arguments: Fields, words: usize) -> Vec<u8> {
        let (_, output) = self.feed(&record(1, program, procedure, &arguments.0), |_| usize::MAX);
        let results = &read_reply(&output[4..]).unwrap().results[4 * words..];
        let len = u32::from_be_bytes(*results.first_chunk().unwrap()) as usize;
        results[4..4 + len].to_vec()
    }

    /// Streams of calls of each procedure, with handles that this server knows.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let none = Fields::default;
        let nothing = [0; 24];
        let root = self.handle(MOUNT, 1, none().opaque(b"/"), 1);
        let in_root = |name: &[u8]| none().opaque(&root).opaque(name);
        let made = |procedure, arguments| self.handle(NFS, procedure, arguments, 2);
        let file = made(8, in_root(b"file").u32(0).fixed(&nothing));
        let directory = made(9, in_root(b"directory").fixed(&nothing));
        let link = made(10, in_root(b"link").fixed(&nothing).opaque(b"file"));
        let on = |object: &[u8]| none().opaque(object);
        let change = [1, 0o600, 0, 0, 1, 0, 99, 2, 1, 1, 1, 0];
        let data = [0x5a; 700];
        let calls = [
            (0, none()),
            (1, on(&file)),
            (2, change.into_iter().fold(on(&file), Fields::u32)),
            (3, in_root(b"file")),
            (4, on(&file).u32(0x3f)),
            (5, on(&link)),
            (6, on(&file).u64(0).u32(1000)),
            (7, on(&file).u64(0).u32(700).u32(0).opaque(&data)),
            (7, on(&file).u64(4096).u32(700).u32(2).opaque(&data)),
            (8, in_root(b"new").u32(2).u32(1).u32(2)),
            (8, in_root(b"new").u32(1).fixed(&nothing)),
            (9, in_root(b"sub").fixed(&nothing)),
            (10, in_root(b"l").fixed(&nothing).opaque(b"target")),
            (11, in_root(b"pipe").u32(7).fixed(&nothing)),
            (14, in_root(b"new").fixed(&in_root(b"renamed").0)),
            (15, on(&file).fixed(&in_root(b"hard").0)),
            (12, in_root(b"renamed")),
            (13, in_root(b"sub")),
            (16, on(&root).fixed(&[0; 16]).u32(4096)),
            (17, on(&root).fixed(&[0; 16]).u32(4096).u32(8192)),
            (18, on(&directory)),
            (19, on(&directory)),
            (20, on(&directory)),
            (21, on(&file).fixed(&[0; 12])),
        ];
        let calls = calls.iter().zip(100..);
        let mut seeds: Vec<Vec<u8>> =
            calls.map(|((procedure, arguments), xid)| record(xid, NFS, *procedure, &arguments.0)).collect();
        seeds.extend([0, 2, 5].map(|procedure| record(50 + procedure, MOUNT, procedure, &[])));
        seeds.extend([1, 3].map(|procedure| record(50 + procedure, MOUNT, procedure, &none().opaque(b"/").0)));
        seeds.push(seeds.concat());
        seeds
    }
}

fn take_output(
    connection: &mut afflux_nfs::Connection<SimPlatform>,
    cx: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> bool {
    let mut segments: Vec<Segment> = Vec::new();
    let more = connection.poll_output(cx, &mut segments).is_ready();
    for segment in segments {
        match segment {
            Segment::Bytes(bytes) => output.extend_from_slice(&bytes),
            Segment::Lent(bytes) => output.extend_from_slice(&bytes),
            Segment::Pages(pages) => pages.slices().for_each(|slice| output.extend_from_slice(slice)),
        }
    }
    more
}

/// The numbers in complete replies.
fn answered(output: &[u8]) -> Vec<u32> {
    let (mut output, mut numbers) = (output.to_vec(), Vec::new());
    while let Some(record) = take_record(&mut output) {
        assert!(record.len() >= 12, "a reply of {} bytes", record.len());
        numbers.push(u32::from_be_bytes(*record.first_chunk().unwrap()));
    }
    assert!(output.is_empty(), "part of a reply");
    numbers
}

/// A compound of a minor version, as a record.
fn compound(xid: u32, minor: u32, operations: &Compound) -> Vec<u8> {
    record(xid, NFS_4, 1, &operations.arguments(minor))
}

/// A call from user 0, as a record in one fragment.
fn record(xid: u32, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Vec<u8> {
    Envelope::new(xid).record(program, procedure, arguments).1
}
