//! The FUSE machine with a volume behind it, which takes any bytes in any pieces.
//!
//! Owns: one simulated mount, the initial messages for fuzzing, the properties that hold for any input.
//! Does not own: the source of inputs, which is a seeded mutator in an ordinary test, or libFuzzer.
//! Invariants: no input causes a panic or a hang. Each message that has a reply is answered once, and the replies do
//! not depend on the cuts.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_frontend::{ProtocolMachine as _, Segment};
use afflux_fuse::{MESSAGE_BYTES_MAX, MessageStream, Mount, MountOptions, Requesters, SyncedChanges, ThreadRights};
use afflux_simulator::{
    Disk, DiskOptions, Memory, MemoryTree, Setup, SimMachine, SimPlatform, TreeOptions, World, WorldOptions,
};
use bytes::BytesMut;

const CACHE_BYTES: u64 = 4 << 20;
const HEADER_BYTES: usize = 40;
const ROOT: u64 = 1;

struct NoProcess;

impl Requesters for NoProcess {
    fn synced_changes(&self) -> SyncedChanges {
        SyncedChanges::None
    }

    fn process(&self, _: u32) -> Option<u32> {
        None
    }

    fn is_killed(&self, _: u32) -> bool {
        true
    }

    fn rights(&self, _: u32, _: u32) -> Option<ThreadRights> {
        None
    }

    fn is_over(&self, _: u32, _: u32, _: u32) -> bool {
        false
    }
}

/// A mount that takes inputs.
pub struct FuzzedMount {
    world: World,
    mount: Arc<Mount<SimPlatform>>,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

impl FuzzedMount {
    /// A mount of an empty directory, the same each time.
    pub fn new() -> Self {
        let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(1) });
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
        let memory = Memory::Whole(CACHE_BYTES);
        let volume = SimMachine::new(&world, memory, Setup::default()).unwrap().add_tree("disk", &tree).unwrap();
        let root = world.run(volume.mount(b"/")).unwrap().unwrap();
        let options = MountOptions { acts_as_callers: true, ..MountOptions::default() };
        let mount = Mount::new(volume, &root, options, NoProcess, Arc::default(), None);
        Self { world, mount }
    }

    /// Feeds a stream in pieces that end at `cuts`. Returns the replies, and whether the stream was refused.
    fn feed(&self, stream: &[u8], mut cuts: impl FnMut(usize) -> usize) -> (Vec<Vec<u8>>, bool) {
        let mut connection = MessageStream::new(Arc::clone(&self.mount));
        let mut feeding = pin!(async {
            let (mut input, mut output, mut closed, mut at) = (BytesMut::new(), Vec::new(), false, 0);
            while at < stream.len() && !closed {
                let end = cuts(at).clamp(at + 1, stream.len());
                input.extend_from_slice(&stream[at..end]);
                at = end;
                // A machine with many calls takes the rest of its input later.
                let mut before = usize::MAX;
                while !closed && input.len() < before {
                    before = input.len();
                    closed = connection.receive(&mut input).is_err();
                    drain(&mut connection, &mut output).await;
                }
                assert!(closed || input.len() <= MESSAGE_BYTES_MAX, "{} bytes wait", input.len());
            }
            (replies(&output), closed)
        });
        match feeding.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(fed) => fed,
            Poll::Pending => self.world.run(feeding).unwrap_or_else(|error| panic!("it hangs: {error}")),
        }
    }

    /// Feeds an input. Its first byte chooses the cuts: 0 cuts at every byte, any other number after that many bytes
    /// and then every 256. The rest is the stream.
    ///
    /// # Panics
    /// When a property does not hold.
    pub fn run(&self, input: &[u8]) {
        let Some((how, stream)) = input.split_first() else { return };
        let (whole, closed) = self.feed(stream, |_| stream.len());
        check_answers(stream, &whole);
        let (first, step) = if *how == 0 { (1, 1) } else { (usize::from(*how), 256) };
        if stream.len() <= first {
            return;
        }
        let (cut, cut_closed) = self.feed(stream, |at| if at == 0 { first } else { at + step });
        assert_eq!(closed, cut_closed, "cut by {how}");
        check_answers(stream, &cut);
    }

    fn call(&self, opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let (mut replies, _) = self.feed(&message(opcode, 2, node, body), |_| usize::MAX);
        replies.pop().map(|reply| reply[16..].to_vec()).unwrap_or_default()
    }

    /// Messages of each operation, with nodes and open files that this mount has.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let made = self.call(35, ROOT, &[words(&[0o102, 0o100_644, 0, 0]), b"file\0".to_vec()].concat());
        let (file, fh) = (u64_at(&made, 0), u64_at(&made, 128));
        let directory = u64_at(&self.call(9, ROOT, &[words(&[0o755, 0]), b"sub\0".to_vec()].concat()), 0);
        let listing = u64_at(&self.call(27, ROOT, &words(&[0, 0])), 0);
        let extent = |fh: u64, offset: u64, size: u32| [longs(&[fh, offset]), words(&[size, 0, 0, 0, 0, 0])].concat();
        let mut sizes = vec![0; 88];
        sizes[..4].copy_from_slice(&0x3ff_u32.to_ne_bytes());
        sizes[16] = 99;
        let calls: Vec<(u32, u64, Vec<u8>)> = vec![
            (26, 0, [words(&[7, 45, 4096, u32::MAX, u32::MAX]), vec![0; 44]].concat()),
            (1, ROOT, b"file\0".to_vec()),
            (2, file, longs(&[1])),
            (42, 0, [words(&[2, 0]), longs(&[file, 1, directory, 1])].concat()),
            (3, file, vec![0; 16]),
            (4, file, sizes),
            (6, ROOT, b"link\0target\0".to_vec()),
            (5, file, vec![]),
            (8, ROOT, [words(&[0o010_644, 0, 0, 0]), b"pipe\0".to_vec()].concat()),
            (9, directory, [words(&[0o755, 0]), b"deep\0".to_vec()].concat()),
            (13, ROOT, [longs(&[file]), b"hard\0".to_vec()].concat()),
            (12, ROOT, [longs(&[directory]), b"hard\0other\0".to_vec()].concat()),
            (45, ROOT, [longs(&[directory]), words(&[0, 0]), b"link\0x\0".to_vec()].concat()),
            (35, directory, [words(&[0o102, 0o100_644, 0, 0]), b"new\0".to_vec()].concat()),
            (14, file, words(&[2, 0])),
            (16, file, [extent(fh, 0, 700), vec![0x5a; 700]].concat()),
            (16, file, [extent(fh, 4096, 5000), vec![0x5b; 5000]].concat()),
            (15, file, extent(fh, 0, 8192)),
            (20, file, [longs(&[fh]), words(&[0, 0])].concat()),
            (25, file, vec![0; 24]),
            (27, directory, words(&[0, 0])),
            (28, ROOT, extent(listing, 0, 4096)),
            (44, ROOT, extent(listing, 0, 4096)),
            (30, ROOT, [longs(&[listing]), words(&[0, 0])].concat()),
            (17, ROOT, vec![]),
            (36, 0, longs(&[4])),
            (10, ROOT, b"pipe\0".to_vec()),
            (11, directory, b"deep\0".to_vec()),
            (18, file, [longs(&[77]), words(&[0, 0]), longs(&[0])].concat()),
            (43, file, [longs(&[fh, 10, 5000]), words(&[3, 0])].concat()),
            (21, file, [words(&[3, 0]), b"user.a\0abc".to_vec()].concat()),
            (22, file, [words(&[0, 0]), b"user.a\0".to_vec()].concat()),
            (23, file, words(&[100, 0])),
            (24, file, b"user.a\0".to_vec()),
            (46, file, [longs(&[fh, 0]), words(&[4, 0])].concat()),
            (51, ROOT, [words(&[2, 0o100_644, 0, 0]), b"/\0".to_vec()].concat()),
        ];
        let messages = calls.iter().enumerate();
        let mut seeds: Vec<Vec<u8>> =
            messages.map(|(at, (opcode, node, body))| message(*opcode, 100 + 2 * at as u64, *node, body)).collect();
        seeds.push(seeds.concat());
        seeds
    }
}

/// Takes all replies of calls in progress.
async fn drain(connection: &mut MessageStream<SimPlatform>, output: &mut Vec<u8>) {
    poll_fn(|cx| {
        let mut segments: Vec<Segment> = Vec::new();
        while connection.poll_output(cx, &mut segments).is_ready() {}
        for segment in segments {
            match segment {
                Segment::Bytes(bytes) => output.extend_from_slice(&bytes),
                Segment::Lent(bytes) => output.extend_from_slice(&bytes),
                Segment::Pages(pages) => pages.slices().for_each(|slice| output.extend_from_slice(slice)),
            }
        }
        if connection.calls_in_progress() == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// The replies, each as long as it says.
fn replies(mut output: &[u8]) -> Vec<Vec<u8>> {
    let mut replies = Vec::new();
    while !output.is_empty() {
        let len = u32_at(output, 0) as usize;
        assert!((16..=output.len()).contains(&len), "a reply of {len} bytes in {}", output.len());
        let error = u32_at(output, 4) as i32;
        assert!(error == 0 || (-511..0).contains(&error) && len == 16, "error {error} with {len} bytes");
        replies.push(output[..len].to_vec());
        output = &output[len..];
    }
    replies
}

/// Checks that whole messages up to the first impossible one were answered once each, and no others.
fn check_answers(mut stream: &[u8], replies: &[Vec<u8>]) {
    let (mut must, mut may) = (Vec::new(), Vec::new());
    while stream.len() >= HEADER_BYTES {
        let len = u32_at(stream, 0) as usize;
        if !(HEADER_BYTES..=MESSAGE_BYTES_MAX.min(stream.len())).contains(&len) {
            break;
        }
        // FORGET, INTERRUPT and BATCH_FORGET have no reply, unless they make no sense.
        let silent = [2, 36, 42].contains(&u32_at(stream, 4));
        if silent { &mut may } else { &mut must }.push(u64_at(stream, 8));
        stream = &stream[len..];
    }
    let mut answered: Vec<u64> = replies.iter().map(|reply| u64_at(reply, 8)).collect();
    for unique in must {
        let at = answered.iter().position(|answer| *answer == unique);
        answered.swap_remove(at.unwrap_or_else(|| panic!("message {unique} has no answer")));
    }
    answered.retain(|unique| !may.contains(unique));
    assert!(answered.is_empty(), "answers that nobody asked for: {answered:?}");
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_ne_bytes()).collect()
}

/// A message of user 0.
fn message(opcode: u32, unique: u64, node: u64, body: &[u8]) -> Vec<u8> {
    let head = [words(&[(HEADER_BYTES + body.len()) as u32, opcode]), longs(&[unique, node]), words(&[0, 0, 1, 0])];
    [head.concat(), body.to_vec()].concat()
}
