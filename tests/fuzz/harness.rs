//! The protocol machine with a volume behind it, which takes any bytes in any pieces.
//!
//! Owns: one simulated server, the initial streams for fuzzing, the properties that hold for any input.
//! Does not own: the source of inputs, which is a seeded mutator in an ordinary test, or libFuzzer.
//! Invariants: no input causes a panic or a hang. A partial record is kept only up to a record's largest size. The
//! answers to a stream do not depend on its cuts.

use std::future::{Future as _, poll_fn};
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_frontend::{ProtocolMachine as _, Segment};
use afflux_nfs::{AdmittedPeers, ClientMemory, RECORD_BYTES_MAX, Server};
use afflux_simulator::{
    Disk, DiskOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions, World, WorldOptions,
};
use bytes::BytesMut;

const CACHE_BYTES: u64 = 4 << 20;
const LAST_FRAGMENT: u32 = 1 << 31;

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
        let call = |operations: &[Vec<u8>]| self.feed(&compound(1, operations), |_| usize::MAX).1[28..].to_vec();
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let introduce = || [words(&[42, 1, 2]), opaque(b"fuzzer"), words(&[0, 0, 0])].concat();
        // Status, no tag, a count, the operation's number and status.
        let client = call(&[introduce()])[20..28].to_vec();
        let channel = [0, 1 << 20, 1 << 20, 2048, 16, 8, 0];
        let create = || {
            [words(&[43]), client.clone(), words(&[1, 0]), words(&channel), words(&channel), words(&[0, 1, 0])].concat()
        };
        let session = call(&[create()])[20..36].to_vec();
        let sequence =
            |number: u32, slot: u32| [words(&[53]), session.clone(), words(&[number, slot, slot, 1])].concat();
        let root = || words(&[24]);
        let open = |name: &[u8]| {
            [words(&[18, 0, 3, 0, 0, 0]), opaque(b"owner"), words(&[1, 0, 2, 0, 2, 4, 0o644, 0]), opaque(name)].concat()
        };
        let current = |number: u32, rest: &[u32]| words(&[&[number, 1, 0, 0, 0], rest].concat());
        let groups: Vec<Vec<Vec<u8>>> = vec![
            vec![words(&[58, 0])],
            vec![root(), words(&[10]), words(&[9, 2, u32::MAX, u32::MAX])],
            vec![
                root(),
                open(b"a"),
                [current(38, &[0, 0, 0]), opaque(&[7; 300])].concat(),
                current(25, &[0, 0, 200]),
                words(&[5, 0, 0, 0]),
                words(&[4, 0, 1, 0, 0, 0]),
            ],
            vec![root(), words(&[32]), [words(&[29]), opaque(b"a"), opaque(b"b")].concat(), words(&[31])],
            vec![
                root(),
                [words(&[6, 2]), opaque(b"d"), words(&[0, 0])].concat(),
                words(&[16]),
                [words(&[28]), opaque(b"d")].concat(),
            ],
            vec![root(), words(&[26, 0, 0, 0, 0, 4096, 4096, 2, 0x0010_0012, 2])],
            vec![root(), words(&[3, 0x3f]), [words(&[15]), opaque(b"b")].concat(), words(&[27])],
            vec![words(&[55, 1, 1, 0, 0, 0]), words(&[45, 1, 1, 1, 1])],
            vec![root(), words(&[52, 0]), words(&[10])],
            vec![[words(&[44]), session.clone()].concat()],
        ];
        let of_2: Vec<Vec<Vec<u8>>> = vec![
            vec![
                root(),
                open(b"a"),
                current(59, &[0, 0, 0, 9000]),
                current(68, &[0, 0, 200]),
                current(69, &[0, 0, 1]),
                current(62, &[0, 0, 0, 9]),
                words(&[32]),
                words(&[60, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 5000, 0, 10, 1, 1, 0]),
            ],
            vec![
                root(),
                [words(&[73, 0]), opaque(b"x"), opaque(b"value")].concat(),
                [words(&[72]), opaque(b"x")].concat(),
                words(&[74, 0, 0, 4096]),
                [words(&[75]), opaque(b"x")].concat(),
            ],
        ];
        let numbered = groups.iter().map(|group| (1, group)).chain(of_2.iter().map(|group| (2, group))).enumerate();
        let mut seeds: Vec<Vec<u8>> = numbered
            .map(|(at, (minor, group))| {
                let sequence = sequence(1 + at as u32 / 8, at as u32 % 8);
                compound_of(minor, 100 + at as u32, &[&[sequence], group.as_slice()].concat())
            })
            .collect();
        seeds.extend([compound(90, &[introduce()]), compound(91, &[create()])]);
        seeds.push([compound(90, &[introduce()]), compound(91, &[create()]), seeds.concat()].concat());
        seeds
    }

    /// The replies to all calls of [`Self::seeds`], each byte of them.
    pub fn replies(&self) -> Vec<u8> {
        self.seeds().iter().flat_map(|stream| self.feed(stream, |_| stream.len()).1).collect()
    }

    /// The results of one call.
    fn call(&self, procedure: (u32, u32), arguments: &[u8]) -> Vec<u8> {
        let (_, output) = self.feed(&record(1, procedure, arguments), |_| usize::MAX);
        // Mark, number, direction, reply status, verifier, accept status.
        output[28..].to_vec()
    }

    /// Streams of calls of each procedure, with handles that this server knows.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let mounted = self.call((MOUNT, 1), &opaque(b"/"));
        let root = handle_at(&mounted[4..]);
        let nothing = [0; 24];
        let in_root = |name: &[u8]| [opaque(&root), opaque(name)].concat();
        let made = |procedure, arguments: Vec<u8>| handle_at(&self.call((NFS, procedure), &arguments)[8..]);
        let file = made(8, [in_root(b"file"), vec![0; 4], nothing.to_vec()].concat());
        let directory = made(9, [in_root(b"directory"), nothing.to_vec()].concat());
        let link = made(10, [in_root(b"link"), nothing.to_vec(), opaque(b"file")].concat());
        let (file, directory, link) = (opaque(&file), opaque(&directory), opaque(&link));
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let data = opaque(&[0x5a; 700]);
        let calls: Vec<(u32, Vec<u8>)> = vec![
            (0, vec![]),
            (1, file.clone()),
            (2, [&file[..], &words(&[1, 0o600, 0, 0, 1, 0, 99, 2, 1, 1, 1, 0])].concat()),
            (3, in_root(b"file")),
            (4, [&file[..], &words(&[0x3f])].concat()),
            (5, link),
            (6, [&file[..], &words(&[0, 0, 1000])].concat()),
            (7, [&file[..], &words(&[0, 0, 700, 0]), &data].concat()),
            (7, [&file[..], &words(&[0, 4096, 700, 2]), &data].concat()),
            (8, [in_root(b"new"), words(&[2, 1, 2])].concat()),
            (8, [in_root(b"new"), words(&[1]), nothing.to_vec()].concat()),
            (9, [in_root(b"sub"), nothing.to_vec()].concat()),
            (10, [in_root(b"l"), nothing.to_vec(), opaque(b"target")].concat()),
            (11, [in_root(b"pipe"), words(&[7]), nothing.to_vec()].concat()),
            (14, [in_root(b"new"), in_root(b"renamed")].concat()),
            (15, [&file[..], &in_root(b"hard")].concat()),
            (12, in_root(b"renamed")),
            (13, in_root(b"sub")),
            (16, [opaque(&root), vec![0; 16], words(&[4096])].concat()),
            (17, [opaque(&root), vec![0; 16], words(&[4096, 8192])].concat()),
            (18, directory.clone()),
            (19, directory.clone()),
            (20, directory),
            (21, [&file[..], &[0; 12]].concat()),
        ];
        let mut seeds: Vec<Vec<u8>> = calls
            .iter()
            .enumerate()
            .map(|(at, (procedure, arguments))| record(100 + at as u32, (NFS, *procedure), arguments))
            .collect();
        seeds.extend([0, 2, 5].map(|procedure| record(50 + procedure, (MOUNT, procedure), &[])));
        seeds.extend([1, 3].map(|procedure| record(50 + procedure, (MOUNT, procedure), &opaque(b"/"))));
        seeds.push(seeds.concat());
        seeds
    }
}

const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;

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
fn answered(mut output: &[u8]) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some((mark, rest)) = output.split_first_chunk() {
        let mark = u32::from_be_bytes(*mark);
        let len = (mark & !LAST_FRAGMENT) as usize;
        assert!(
            mark & LAST_FRAGMENT != 0 && len >= 12 && len <= rest.len(),
            "a reply of {len} bytes in {}",
            rest.len()
        );
        numbers.push(u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]));
        output = &rest[len..];
    }
    assert!(output.is_empty(), "part of a reply");
    numbers
}

fn opaque(bytes: &[u8]) -> Vec<u8> {
    let mut field = (bytes.len() as u32).to_be_bytes().to_vec();
    field.extend(bytes);
    field.resize(field.len().next_multiple_of(4), 0);
    field
}

fn handle_at(results: &[u8]) -> Vec<u8> {
    let len = u32::from_be_bytes([results[0], results[1], results[2], results[3]]) as usize;
    results[4..4 + len].to_vec()
}

/// A compound of version 4.1.
fn compound(xid: u32, operations: &[Vec<u8>]) -> Vec<u8> {
    compound_of(1, xid, operations)
}

/// A compound of a minor version.
fn compound_of(minor: u32, xid: u32, operations: &[Vec<u8>]) -> Vec<u8> {
    let head = [0, minor, operations.len() as u32].map(u32::to_be_bytes).concat();
    let arguments = [head, operations.concat()].concat();
    versioned(xid, 4, (NFS, 1), &arguments)
}

/// A call from user 0, as a record in one fragment.
fn record(xid: u32, procedure: (u32, u32), arguments: &[u8]) -> Vec<u8> {
    versioned(xid, 3, procedure, arguments)
}

fn versioned(xid: u32, version: u32, (program, procedure): (u32, u32), arguments: &[u8]) -> Vec<u8> {
    let header = [xid, 0, 2, program, version, procedure, 1, 20, 0, 0, 0, 0, 0, 0, 0];
    let mut record = ((header.len() * 4 + arguments.len()) as u32 | LAST_FRAGMENT).to_be_bytes().to_vec();
    record.extend(header.iter().flat_map(|word| word.to_be_bytes()));
    record.extend(arguments);
    record
}
