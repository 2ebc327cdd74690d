use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::task::{Poll, Waker};

use afflux_engine::{Backing, Platform};
use afflux_frames::{Effort, Frames};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::file::{DescriptorUse, Path};
use super::flight::{FlightStep, UNCACHED_BYTES_MAX};
use super::*;
use crate::platform::{IoChoice, Reactors};
use crate::reactor::io::RingOperation;
use afflux_scratch::TestDirectory as Scratch;

/// The thread that submits a request.
#[derive(Clone, Copy, Debug)]
enum From {
    Elsewhere,
    BlockOn,
    Reactor,
}

struct Rig {
    from: From,
    /// Its writes are for syncs.
    is_for_sync: bool,
    frames: Arc<Frames>,
    platform: LinuxPlatform,
    device: Arc<HostDevice>,
    directory: Scratch,
    _reactors: Reactors,
}

type Outcome = (Result<(), DeviceError>, Vec<u8>);

/// The slot where a test waits for an outcome.
struct Slot(Mutex<(Option<Outcome>, Option<Waker>)>);

impl Rig {
    fn new(choice: IoChoice, caching: Caching, from: From, directory: Scratch) -> Self {
        let reactors = Reactors::start(2, choice).unwrap();
        let platform = reactors.platform();
        let device = HostDevice::new(&platform, directory.descriptor(), caching).unwrap();
        let frames = Arc::new(Frames::new(64 << 20).unwrap());
        Self { from, is_for_sync: false, frames, platform, device, directory, _reactors: reactors }
    }

    /// Every rig that this host supports.
    fn all() -> Vec<Self> {
        let mut rigs = vec![
            Self::new(IoChoice::Auto, Caching::Auto, From::Elsewhere, Scratch::new()),
            Self::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new()),
            Self::new(IoChoice::Auto, Caching::Auto, From::Reactor, Scratch::new()),
            Self::new(IoChoice::Auto, Caching::Buffered, From::Reactor, Scratch::new()),
            Self::new(IoChoice::Syscalls, Caching::Auto, From::BlockOn, Scratch::new()),
            Self::new(IoChoice::Syscalls, Caching::Buffered, From::Elsewhere, Scratch::new()),
        ];
        rigs[2].is_for_sync = true;
        rigs[4].is_for_sync = true;
        rigs.extend(Scratch::in_memory().map(|place| Self::new(IoChoice::Auto, Caching::Auto, From::BlockOn, place)));
        rigs.extend(
            Scratch::mounted("xfs", 512 << 20, "")
                .map(|place| Self::new(IoChoice::Auto, Caching::Auto, From::BlockOn, place)),
        );
        rigs
    }

    fn name(&self) -> String {
        let what = if self.is_for_sync { "for syncs, " } else { "" };
        format!("{}, {}, {what}from {:?}", self.platform.describe(), self.device.describe(), self.from)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self, name: &str) -> (File, Backing) {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(self.path(name)).unwrap();
        let given = File::open(self.path(name)).unwrap();
        (file, backing(given))
    }

    /// Opens the descriptors that requests for the file will need.
    fn opens(&self, file: &HostFile, wanted: DescriptorUse) {
        let path = if self.device.core().is_direct() { Path::Direct } else { Path::Buffered };
        file.open(path, wanted).unwrap();
    }

    fn request(&self, backing: &Backing, operation: Operation, bytes: &[u8]) -> (Request, Arc<Slot>) {
        let slot = Arc::new(Slot(Mutex::new((None, None))));
        let told = Arc::clone(&slot);
        let request = Request::probe(&self.frames, backing.clone(), operation, bytes, move |result, bytes| {
            let mut slot = told.0.lock().unwrap();
            slot.0 = Some((result, bytes));
            let waker = slot.1.take();
            drop(slot);
            waker.into_iter().for_each(Waker::wake);
        });
        (request.for_sync(self.is_for_sync), slot)
    }

    fn submit(&self, backing: &Backing, operation: Operation, bytes: &[u8]) -> Arc<Slot> {
        let (request, slot) = self.request(backing, operation, bytes);
        match self.from {
            From::Elsewhere => self.device.submit(request),
            From::BlockOn => self.platform.block_on(async { self.device.submit(request) }),
            From::Reactor => {
                let device = Arc::clone(&self.device);
                self.platform.spawn("submit", async move { device.submit(request) });
            }
        }
        slot
    }

    fn outcome(&self, slot: &Slot) -> Outcome {
        self.platform.block_on(std::future::poll_fn(|cx| {
            let mut slot = slot.0.lock().unwrap();
            match slot.0.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    slot.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }

    fn run(&self, backing: &Backing, operation: Operation, bytes: &[u8]) -> Outcome {
        if matches!(self.from, From::BlockOn) {
            let (request, slot) = self.request(backing, operation, bytes);
            return self.platform.block_on(async {
                self.device.submit(request);
                std::future::poll_fn(|cx| {
                    let mut slot = slot.0.lock().unwrap();
                    slot.1 = Some(cx.waker().clone());
                    slot.0.take().map_or(Poll::Pending, Poll::Ready)
                })
                .await
            });
        }
        let slot = self.submit(backing, operation, bytes);
        self.outcome(&slot)
    }

    fn ok(&self, backing: &Backing, operation: Operation, bytes: &[u8]) -> Vec<u8> {
        let (result, bytes) = self.run(backing, operation, bytes);
        assert_eq!(result, Ok(()), "{operation:?} with {}", self.name());
        bytes
    }

    fn write(&self, backing: &Backing, offset: u64, bytes: &[u8]) {
        self.ok(backing, Operation::Write { offset, len: bytes.len() as u32 }, bytes);
    }

    fn read(&self, backing: &Backing, offset: u64, len: u32) -> Vec<u8> {
        self.ok(backing, Operation::Read { offset, len }, &[])
    }
}

fn backing(file: File) -> Backing {
    Backing::new(Arc::new(HostFile::new(file.into())))
}

fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[test]
fn says_how_it_works() {
    let disk = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new());
    println!("{}", disk.name());
    let forced = Rig::new(IoChoice::Syscalls, Caching::Buffered, From::BlockOn, Scratch::new());
    assert_eq!(
        forced.device.describe(),
        "the host's page cache (as asked for) + preadv and pwritev on threads (io_uring: as asked for)"
    );
    if let Some(place) = Scratch::in_memory() {
        let memory = Rig::new(IoChoice::Syscalls, Caching::Auto, From::BlockOn, place);
        assert!(memory.device.describe().contains("in memory"), "{}", memory.device.describe());
    }
    assert_eq!(std::fs::read_dir(disk.directory.path()).unwrap().count(), 0, "the probe left something");
}

#[test]
fn random_operations_match_a_model() {
    for rig in Rig::all() {
        println!("{}", rig.name());
        let block = u64::from(rig.device.limits().block_bytes);
        for seed in 1..=4 {
            let name = format!("file{seed}");
            let (file, backing) = rig.file(&name);
            let mut model: Vec<u8> = Vec::new();
            let mut numbers = pattern(seed, 8 * 200)
                .chunks(8)
                .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
                .collect::<Vec<_>>()
                .into_iter();
            while let (Some(kind), Some(at), Some(len)) = (numbers.next(), numbers.next(), numbers.next()) {
                let offset = at % 64 * 1024 / block * block;
                match kind % 8 {
                    0..=2 => {
                        let mut len = (len % 40_000 + 1) as usize;
                        if offset + (len as u64) < model.len() as u64 {
                            len = len.next_multiple_of(block as usize);
                        }
                        let bytes = pattern(at, len);
                        rig.write(&backing, offset, &bytes);
                        let end = offset as usize + len;
                        model.resize(model.len().max(end), 0);
                        model[offset as usize..end].copy_from_slice(&bytes);
                    }
                    3 | 4 => {
                        let len = (len % 30 + 1) * block;
                        let got = rig.read(&backing, offset, len as u32);
                        let mut expected = vec![0; len as usize];
                        for (at, byte) in expected.iter_mut().enumerate() {
                            *byte = model.get(offset as usize + at).copied().unwrap_or(0);
                        }
                        assert!(got == expected, "seed {seed}, read {offset}+{len}, {}", rig.name());
                    }
                    5 => {
                        let size = len % 100_000;
                        rig.ok(&backing, Operation::SetSize { size }, &[]);
                        model.resize(size as usize, 0);
                    }
                    6 => {
                        let (offset, len) = (offset / 4096 * 4096, (len % 5 + 1) * 4096);
                        rig.ok(&backing, Operation::Punch { offset, len }, &[]);
                        let end = model.len().min((offset + len) as usize);
                        if (offset as usize) < end {
                            model[offset as usize..end].fill(0);
                        }
                    }
                    _ => {
                        rig.ok(&backing, Operation::Reserve { offset, len: len % 50_000 }, &[]);
                        rig.ok(&backing, Operation::Sync, &[]);
                    }
                }
                assert_eq!(file.metadata().unwrap().len(), model.len() as u64, "seed {seed}, {}", rig.name());
            }
            assert!(std::fs::read(rig.path(&name)).unwrap() == model, "seed {seed}, {}", rig.name());
        }
    }
}

#[test]
fn size_is_never_rounded_up_at_any_moment() {
    for rig in Rig::all() {
        let (file, backing) = rig.file("tail");
        let most = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = mpsc::channel::<()>();
        let watcher = std::thread::spawn({
            let most = Arc::clone(&most);
            let file = file.try_clone().unwrap();
            move || {
                while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                    most.fetch_max(file.metadata().unwrap().len(), Ordering::SeqCst);
                }
            }
        });
        for len in [1, 511, 513, 4095, 4097, 5_000, 70_001, 131_073] {
            rig.ok(&backing, Operation::SetSize { size: 0 }, &[]);
            most.store(0, Ordering::SeqCst);
            for _ in 0..20 {
                rig.write(&backing, 0, &pattern(len, len as usize));
                assert_eq!(file.metadata().unwrap().len(), len);
            }
            let seen = most.load(Ordering::SeqCst);
            assert!(seen <= len, "a size of {seen} was seen for {len} bytes with {}", rig.name());
        }
        // The file is larger than the end of the write, and retains its size.
        rig.ok(&backing, Operation::SetSize { size: 9_000 }, &[]);
        rig.write(&backing, 4096, &pattern(3, 700));
        assert_eq!(file.metadata().unwrap().len(), 9_000);
        drop(stop);
        watcher.join().unwrap();
    }
}

/// When a file is made longer, the host changes the page at the old end in its page cache. A direct write to blocks of
/// that page may be in flight; it then collides with the change, and the next sync fails on a healthy disk.
#[test]
fn the_page_at_the_old_end_may_be_written_while_the_file_is_made_longer() {
    const PAGE: u64 = 4096;
    const ROUNDS: u64 = 300;
    const GAP: u64 = 3;
    const TAIL: usize = 3001;
    const BLOCK: usize = 512;
    for rig in Rig::all() {
        let name = rig.name();
        let (file, backing) = rig.file("growing");
        let (tail, block) = (|round: u64| pattern(round, TAIL), |round: u64| pattern(round + ROUNDS, BLOCK));
        let write = |offset: u64, bytes: &[u8]| {
            rig.submit(&backing, Operation::Write { offset, len: bytes.len() as u32 }, bytes)
        };
        let sync = || rig.run(&backing, Operation::Sync, &[]).0;
        rig.outcome(&write(0, &tail(0))).0.unwrap();
        for round in 0..ROUNDS {
            let page = round * GAP * PAGE;
            sync().unwrap();
            let slots = [write(page + BLOCK as u64, &block(round)), write(page + GAP * PAGE, &tail(round + 1))];
            slots.iter().for_each(|slot| rig.outcome(slot).0.unwrap());
            assert_eq!(sync(), Ok(()), "{name}, round {round}");
        }
        for round in 0..ROUNDS {
            let mut wanted = tail(round);
            wanted[BLOCK..2 * BLOCK].copy_from_slice(&block(round));
            wanted.resize(PAGE as usize, 0);
            let mut found = vec![0xff; PAGE as usize];
            file.read_exact_at(&mut found, round * GAP * PAGE).unwrap();
            assert!(found == wanted, "{name}, round {round}");
        }
        assert_eq!(file.metadata().unwrap().len(), ROUNDS * GAP * PAGE + TAIL as u64, "{name}");
    }
}

/// Writes that each make the file longer go on together. The file never has a size that no write asked for, and it
/// takes no more space than its data.
#[test]
fn writes_that_make_a_file_longer_go_together() {
    const LEN: u64 = 64 << 10;
    const COUNT: u64 = 40;
    for rig in Rig::all() {
        let name = rig.name();
        let (file, backing) = rig.file("longer");
        // The writes come in order, in reverse order, and from the middle on. In the second half the last write ends
        // inside a page, and the host may allocate more than the file needs.
        for (round, tail) in [(0, LEN), (1, LEN), (2, LEN), (0, 777), (1, 777), (2, 777)] {
            rig.ok(&backing, Operation::SetSize { size: 0 }, &[]);
            let size = COUNT * LEN + tail;
            let bytes = |at: u64| pattern(at + 1, if at == COUNT { tail } else { LEN } as usize);
            let order = (0..=COUNT).map(|at| match round {
                0 => at,
                1 => COUNT - at,
                _ => (at + COUNT / 2) % (COUNT + 1),
            });
            let slots: Vec<_> = order
                .map(|at| {
                    let bytes = bytes(at);
                    let operation = Operation::Write { offset: at * LEN, len: bytes.len() as u32 };
                    rig.submit(&backing, operation, &bytes)
                })
                .collect();
            for slot in &slots {
                assert!(file.metadata().unwrap().len() <= size, "{name}");
                assert_eq!(rig.outcome(slot).0, Ok(()), "{name}, round {round}");
            }
            assert_eq!(file.metadata().unwrap().len(), size, "{name}, round {round}");
            rig.ok(&backing, Operation::Sync, &[]);
            let wanted: Vec<u8> = (0..=COUNT).flat_map(bytes).collect();
            assert!(std::fs::read(rig.path("longer")).unwrap() == wanted, "{name}, round {round}");
            let taken = file.metadata().unwrap().blocks() * 512;
            assert!(tail < LEN || taken <= size + LEN, "{name}: {taken} bytes are taken for {size}");
        }
    }
}

/// A local program may make the file longer between the check of its size and the growth.
#[test]
fn a_growth_cuts_nothing_off() {
    const PAGE: u64 = 4096;
    for rig in Rig::all() {
        let (file, backing) = rig.file("longer");
        let bytes = pattern(1, PAGE as usize);
        let (request, slot) = rig.request(&backing, Operation::Write { offset: 0, len: PAGE as u32 }, &bytes);
        let flight = RequestFlight::new(request, Arc::clone(&rig.device.flights));
        let gate = Arc::new(write_gate::WriteGate::default());
        let mut begun = gate.enter(write_gate::WriteSharing::Longer, flight);
        begun.iter_mut().for_each(|flight| flight.grows_to = Some(8 * PAGE));
        let local = pattern(2, 3 * PAGE as usize);
        file.write_all_at(&local, 7 * PAGE).unwrap();
        begun.into_iter().for_each(launch);
        assert_eq!(rig.outcome(&slot).0, Ok(()), "{}", rig.name());
        let found = std::fs::read(rig.path("longer")).unwrap();
        assert!(found[..PAGE as usize] == bytes && found[7 * PAGE as usize..] == local, "{}", rig.name());
    }
}

#[test]
fn a_long_transfer_begins_at_once_and_short_ones_together() {
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new());
    let (file, backing) = rig.file("long");
    file.write_all_at(&pattern(3, 256 << 10), 0).unwrap();
    // Opens the file, which takes a thread.
    rig.read(&backing, 0, 4096);
    let slots = rig.platform.block_on(async {
        let handed_over = || rig.platform.current_reactor().unwrap().has_handed_over();
        let submit = |len: u32| {
            let (request, slot) = rig.request(&backing, Operation::Read { offset: 0, len }, &[]);
            rig.device.submit(request);
            slot
        };
        let mut slots = vec![submit(4096), submit(8192)];
        let uses_ring = rig.platform.is_on_ring();
        assert_eq!(handed_over(), !uses_ring);
        slots.push(submit(128 << 10));
        assert!(handed_over(), "a reader would compute while the disk waits");
        slots
    });
    slots.iter().for_each(|slot| assert_eq!(rig.outcome(slot).0, Ok(())));
}

#[test]
fn reads_past_the_end_and_in_holes_are_zeros() {
    for rig in Rig::all() {
        let (file, backing) = rig.file("sparse");
        assert!(rig.read(&backing, 1 << 40, 65_536).iter().all(|byte| *byte == 0));
        let far = 3 << 30;
        rig.write(&backing, far, b"end");
        assert_eq!(file.metadata().unwrap().len(), far + 3);
        assert!(file.metadata().unwrap().blocks() * 512 < 1 << 20, "the hole takes space with {}", rig.name());
        assert!(rig.read(&backing, far - 8192, 8192).iter().all(|byte| *byte == 0));
        let tail = rig.read(&backing, far, 4096);
        assert_eq!(&tail[..3], b"end");
        assert!(tail[3..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn punching_and_reserving_change_space_and_no_size() {
    for rig in Rig::all() {
        let (file, backing) = rig.file("space");
        rig.write(&backing, 0, &pattern(5, 1 << 20));
        rig.ok(&backing, Operation::Sync, &[]);
        let blocks = file.metadata().unwrap().blocks();
        rig.ok(&backing, Operation::Punch { offset: 65_536, len: 524_288 }, &[]);
        assert!(file.metadata().unwrap().blocks() + 524_288 / 512 <= blocks, "{}", rig.name());
        rig.ok(&backing, Operation::Reserve { offset: 4 << 20, len: 1 << 20 }, &[]);
        assert!(file.metadata().unwrap().blocks() + 524_288 / 512 >= blocks + 2048, "{}", rig.name());
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
        rig.ok(&backing, Operation::Reserve { offset: 0, len: 0 }, &[]);
        rig.ok(&backing, Operation::Punch { offset: 0, len: 0 }, &[]);
    }
}

#[test]
fn memory_in_more_pieces_than_one_call_takes() {
    for rig in Rig::all() {
        // Every second frame is taken, so that no two pieces of a request are adjacent.
        let mut taken = Vec::new();
        while let Some(frame) = rig.frames.allocate(Effort::Normal) {
            taken.push(frame);
        }
        taken.sort_unstable();
        for frame in taken.iter().step_by(2) {
            rig.frames.free(*frame);
        }
        let (_, backing) = rig.file("pieces");
        let bytes = pattern(9, 2_500 * 4096 + 77);
        rig.write(&backing, 4096, &bytes);
        let got = rig.read(&backing, 4096, 2_501 * 4096);
        assert!(got[..bytes.len()] == bytes[..], "{}", rig.name());
        assert!(got[bytes.len()..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn many_requests_in_flight_on_many_files() {
    for rig in Rig::all() {
        let files: Vec<_> = (0..8).map(|number| rig.file(&format!("many{number}")).1).collect();
        for (number, file) in files.iter().enumerate() {
            let slots: Vec<_> = (0..64)
                .map(|at| {
                    let bytes = pattern(number as u64 * 100 + at, 16_384);
                    rig.submit(file, Operation::Write { offset: at * 16_384, len: 16_384 }, &bytes)
                })
                .collect();
            for slot in slots {
                assert_eq!(rig.outcome(&slot).0, Ok(()));
            }
        }
        for (number, file) in files.iter().enumerate() {
            let slots: Vec<_> =
                (0..64).map(|at| rig.submit(file, Operation::Read { offset: at * 16_384, len: 16_384 }, &[])).collect();
            for (at, slot) in slots.iter().enumerate() {
                let (result, bytes) = rig.outcome(slot);
                assert_eq!(result, Ok(()));
                assert!(bytes == pattern((number * 100 + at) as u64, 16_384));
            }
        }
    }
}

#[test]
fn files_are_reached_however_they_were_opened() {
    const O_PATH: i32 = 0o10_000_000;
    const O_DIRECT: i32 = 0o40_000;
    for rig in Rig::all() {
        let path = rig.path("file");
        std::fs::write(&path, vec![7; 10_000]).unwrap();
        let mut openings = vec![
            OpenOptions::new().read(true).open(&path),
            OpenOptions::new().write(true).open(&path),
            OpenOptions::new().read(true).write(true).open(&path),
            OpenOptions::new().read(true).append(true).open(&path),
            OpenOptions::new().read(true).custom_flags(O_PATH).open(&path),
        ];
        openings.push(OpenOptions::new().read(true).write(true).custom_flags(O_DIRECT).open(&path));
        for given in openings.into_iter().flatten() {
            let backing = backing(given);
            rig.write(&backing, 4096, &[8; 4096]);
            rig.write(&backing, 8192, &[9; 1808]);
            rig.ok(&backing, Operation::Sync, &[]);
            assert!(rig.read(&backing, 0, 4096).iter().all(|byte| *byte == 7));
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 10_000, "{}", rig.name());
        }
        // The file outlives its last name.
        let backing = backing(File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        rig.write(&backing, 0, &[1; 100]);
        assert_eq!(rig.read(&backing, 0, 4096)[..100], [1; 100]);
    }
}

#[test]
fn prepared_files_are_open_and_closed_with_their_last_user() {
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new());
    let (_file, _) = rig.file("prepared");
    let links = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap();
        let target = rig.path("prepared");
        links.flatten().filter(|link| std::fs::read_link(link.path()).is_ok_and(|path| path == target)).count()
    };
    let before = links();
    let host = Arc::new(HostFile::new(File::open(rig.path("prepared")).unwrap().into()));
    rig.opens(&host, DescriptorUse::Write);
    assert_eq!(links(), before + 2);
    let backing = Backing::new(Arc::<HostFile>::clone(&host));
    rig.write(&backing, 0, &[1; 5000]);
    assert!(links() > before + 1);
    drop(host);
    drop(backing);
    // The last request drops its reference just after its answer.
    while links() > before {
        std::thread::yield_now();
    }
}

#[test]
fn block_on_leaves_nothing_in_flight() {
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new());
    if !rig.platform.is_on_ring() {
        afflux_scratch::skipped!("no io_uring here; worker threads go on by themselves");
        return;
    }
    let (file, backing) = rig.file("left");
    file.write_all_at(&[3; 1 << 20], 0).unwrap();
    if let Some(host) = backing.get::<HostFile>() {
        rig.opens(host, DescriptorUse::Read);
    }
    let slots: Vec<_> =
        (0..32).map(|at| rig.submit(&backing, Operation::Read { offset: at * 4096, len: 4096 }, &[])).collect();
    for slot in slots {
        let outcome = slot.0.lock().unwrap().0.take();
        assert_eq!(outcome.map(|outcome| outcome.0), Some(Ok(())), "completed before block_on returned");
    }
}

#[test]
fn requests_that_cannot_be() {
    for rig in Rig::all() {
        let (file, good) = rig.file("good");
        let foreign = Backing::new(Arc::new(5_u8));
        assert!(matches!(rig.run(&foreign, Operation::Sync, &[]).0, Err(DeviceError::Io { .. })));
        let too_large = Err(DeviceError::TooLarge);
        let end = (i64::MAX as u64) / 4096 * 4096;
        assert_eq!(rig.run(&good, Operation::Write { offset: end, len: 8192 }, &[0; 8192]).0, too_large);
        assert_eq!(rig.run(&good, Operation::Read { offset: u64::MAX / 4096 * 4096, len: 4096 }, &[]).0, too_large);
        assert_eq!(rig.run(&good, Operation::SetSize { size: u64::MAX }, &[]).0, too_large);
        assert_eq!(rig.run(&good, Operation::Punch { offset: 4096, len: u64::MAX }, &[]).0, too_large);
        assert_eq!(rig.run(&good, Operation::Reserve { offset: 1 << 62, len: 1 << 63 }, &[]).0, too_large);
        assert_eq!(file.metadata().unwrap().len(), 0);
        // The engine allows larger files than most file systems can store.
        let result = rig.run(&good, Operation::Write { offset: 1 << 62, len: 4096 }, &[0; 4096]).0;
        assert!(matches!(result, Ok(()) | Err(DeviceError::TooLarge)), "{result:?} with {}", rig.name());
    }
}

#[test]
fn a_running_program_is_not_written() {
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new());
    let path = rig.path("program");
    std::fs::copy("/bin/sleep", &path).unwrap();
    let mut child =
        std::process::Command::new(&path).arg("100").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let backing = backing(File::open(&path).unwrap());
    assert_eq!(rig.run(&backing, Operation::Write { offset: 0, len: 4 }, b"ELF!").0, Err(DeviceError::Denied));
    assert_eq!(rig.run(&backing, Operation::SetSize { size: 0 }, &[]).0, Err(DeviceError::Denied));
    assert_eq!(&rig.read(&backing, 0, 4096)[1..4], b"ELF");
    child.kill().unwrap();
    child.wait().unwrap();
    // The refusal does not last: the next try opens the file anew.
    rig.write(&backing, 0, b"free");
}

/// Whether the host's page cache has the page at `offset`, a multiple of the page size.
fn is_cached(file: &File, offset: u64) -> bool {
    unsafe extern "C" {
        fn mincore(start: *mut std::ffi::c_void, len: usize, pages: *mut u8) -> i32;
    }
    let (mut page, none) = (0u8, std::ptr::null_mut());
    // SAFETY: a new mapping of a page, used here alone and not read.
    let told = unsafe {
        let start = mmap(none, 4096, ProtFlags::READ, MapFlags::SHARED, file, offset).unwrap();
        let told = mincore(start, 4096, &raw mut page);
        munmap(start, 4096).unwrap();
        told
    };
    assert_eq!(told, 0);
    page & 1 == 1
}

/// A flight of a write of `len` bytes at `offset`, with its grant.
fn write_flight(rig: &Rig, backing: &Backing, offset: u64, len: u32, is_for_sync: bool) -> Box<RequestFlight> {
    let bytes = pattern(offset, len as usize);
    let (request, _) = rig.request(backing, Operation::Write { offset, len }, &bytes);
    let mut flight = RequestFlight::new(request.for_sync(is_for_sync), Arc::clone(&rig.device.flights));
    let (gate, share) = flight.sharing().unwrap();
    gate.enter(share, flight).unwrap()
}

/// The bytes that the flight's next step writes, and whether the write is uncached.
fn next_write(flight: &mut RequestFlight) -> (usize, bool) {
    let (iovecs, count, uncached) = match flight.next(true) {
        FlightStep::Do(RingOperation::WriteV { iovecs, count, .. }) => (iovecs, count, false),
        FlightStep::Do(RingOperation::WriteUncached { iovecs, count, .. }) => (iovecs, count, true),
        _ => panic!("no write"),
    };
    // SAFETY: the vectors are the flight's, which lives.
    let iovecs = unsafe { std::slice::from_raw_parts(iovecs, count as usize) };
    (iovecs.iter().map(|iovec| iovec.len).sum(), uncached)
}

#[test]
fn what_makes_a_small_file_longer_for_a_sync_is_written_in_one_piece() {
    const PAGE: u64 = 4096;
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new());
    if !rig.device.core().is_direct() || !rig.device.core().may_write_uncached() {
        return afflux_scratch::skipped!("{}", rig.name());
    }
    // Each row: the host's size, the write's offset and length, whether it is for a sync; the first step's bytes, and
    // whether that write is uncached.
    let most = UNCACHED_BYTES_MAX;
    let table = [
        (0, 0, 5_000, true, (5_000, true)),
        (0, 0, most - 1, true, (most - 1, true)),
        (PAGE, PAGE, 5_000, true, (5_000, true)),
        (PAGE + 1, 2 * PAGE, 5_000, true, (5_000, true)),
        // No sync waits for the write, and a later sync would not report an early error.
        (0, 0, 5_000, false, (4_096, false)),
        // One write in either case.
        (0, 0, 2 * PAGE as u32, true, (2 * PAGE as u32, false)),
        (0, 0, 1_000, true, (1_000, false)),
        // The copy takes longer.
        (0, 0, most + 1, true, (most, false)),
        // A page would have to be read first.
        (1_000, 0, 5_000, true, (4_096, false)),
        (PAGE, 512, 5_000, true, (3_584, false)),
        (20_000, 0, 5_000, true, (4_096, false)),
    ];
    for (at, (size, offset, len, is_for_sync, wanted)) in table.into_iter().enumerate() {
        let (file, backing) = rig.file(&format!("file{at}"));
        file.set_len(size).unwrap();
        let mut flight = write_flight(&rig, &backing, offset, len, is_for_sync);
        let (first, uncached) = next_write(&mut flight);
        assert_eq!((first as u32, uncached), wanted, "{len} bytes at {offset} of {size}, for a sync: {is_for_sync}");
        flight.answer(Err(DeviceError::Lost));
    }
}

#[test]
fn where_the_host_takes_no_uncached_writes_they_are_made_as_others() {
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new());
    if !rig.device.core().is_direct() || !rig.device.core().may_write_uncached() {
        return afflux_scratch::skipped!("{}", rig.name());
    }
    let (_, backing) = rig.file("refused");
    let mut flight = write_flight(&rig, &backing, 0, 5_000, true);
    assert_eq!(next_write(&mut flight), (5_000, true));
    flight.advance(-Errno::OPNOTSUPP.raw_os_error()).unwrap();
    assert_eq!(next_write(&mut flight), (4_096, false));
    flight.answer(Err(DeviceError::Lost));
    // The device does not try again.
    let (_, backing) = rig.file("next");
    let mut flight = write_flight(&rig, &backing, 0, 5_000, true);
    assert_eq!(next_write(&mut flight), (4_096, false));
    flight.answer(Err(DeviceError::Lost));
}

#[test]
fn a_small_new_file_that_is_synced_is_on_the_disk_and_not_in_the_hosts_cache() {
    const COUNT: usize = 16;
    const LEN: usize = 9_000;
    for rig in Rig::all().into_iter().filter(|rig| rig.device.core().is_direct()) {
        let kept = |is_for_sync: bool| {
            let each = |at: usize| {
                let name = format!("{is_for_sync}{at}");
                let (file, backing) = rig.file(&name);
                let bytes = pattern(at as u64, LEN);
                let operation = Operation::Write { offset: 0, len: LEN as u32 };
                let (request, slot) = rig.request(&backing, operation, &bytes);
                rig.device.submit(request.for_sync(is_for_sync));
                assert_eq!(rig.outcome(&slot).0, Ok(()), "{}", rig.name());
                rig.ok(&backing, Operation::Sync, &[]);
                let cached = is_cached(&file, 8_192);
                // The bytes are the same past the host's cache and through it.
                assert!(rig.read(&backing, 0, 8_192) == bytes[..8_192], "{}", rig.name());
                assert!(std::fs::read(rig.path(&name)).unwrap() == bytes, "{}", rig.name());
                cached
            };
            (0..COUNT).filter(|at| each(*at)).count()
        };
        let (for_sync, alone) = (kept(true), kept(false));
        if !rig.device.core().may_write_uncached() {
            afflux_scratch::skipped!("no uncached writes with {}", rig.name());
            continue;
        }
        // The host now and then retains a page that another task uses just when the page would be dropped.
        assert!(for_sync < COUNT / 2 && alone == COUNT, "{for_sync} and {alone} of {COUNT}, {}", rig.name());
    }
}

#[test]
fn a_read_only_file_system_says_so() {
    let Some(place) = Scratch::mounted("tmpfs", 1 << 20, "") else { return };
    std::fs::write(place.path().join("file"), "text").unwrap();
    let remounted = std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(place.path()).status();
    assert!(remounted.unwrap().success());
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, place);
    let backing = backing(File::open(rig.path("file")).unwrap());
    assert_eq!(&rig.read(&backing, 0, 4096)[..5], b"text\0");
    assert_eq!(rig.run(&backing, Operation::Write { offset: 0, len: 4 }, b"more").0, Err(DeviceError::ReadOnly));
}

#[test]
fn a_full_disk_says_so_and_keeps_what_it_took() {
    for kind in ["tmpfs", "ext4", "xfs"] {
        let bytes = if kind == "xfs" { 512 << 20 } else { 16 << 20 };
        let Some(place) = Scratch::mounted(kind, bytes, "") else { continue };
        let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, place);
        println!("{kind}: {}", rig.name());
        let (_, backing) = rig.file("full");
        let chunk = 1 << 20;
        let mut at = 0;
        let result = loop {
            let (result, _) =
                rig.run(&backing, Operation::Write { offset: at, len: chunk }, &pattern(at, chunk as usize));
            if result.is_err() {
                break result;
            }
            at += u64::from(chunk);
            assert!(at <= bytes, "more than the disk has");
        };
        assert_eq!(result, Err(DeviceError::NoSpace), "{kind}");
        assert_eq!(rig.run(&backing, Operation::Reserve { offset: at, len: bytes }, &[]).0, Err(DeviceError::NoSpace));
        for done in (0..at).step_by(chunk as usize) {
            assert!(rig.read(&backing, done, chunk) == pattern(done, chunk as usize), "{kind}");
        }
        // The hint follows in the background; the loop waits by operations and not by time.
        let mut tries = 0;
        while rig.device.free_bytes_hint() > 2 << 20 {
            let _ = rig.run(&backing, Operation::Reserve { offset: at, len: bytes }, &[]);
            tries += 1;
            assert!(tries < 1_000_000, "{kind}: still {} free", rig.device.free_bytes_hint());
        }
        rig.ok(&backing, Operation::SetSize { size: 0 }, &[]);
        rig.write(&backing, 0, &[1; 4096]);
    }
}

#[test]
fn what_other_programs_take_is_known_to_a_device_that_nobody_writes() {
    let Some(place) = Scratch::mounted("tmpfs", 16 << 20, "") else { return };
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, place);
    assert!(rig.device.free_bytes_hint() > 8 << 20);
    std::fs::write(rig.path("of-others"), vec![1; 12 << 20]).unwrap();
    afflux_scratch::eventually("the figure follows", || rig.device.free_bytes_hint() < 8 << 20);
}

#[test]
fn a_stopped_platform_loses_requests_and_hangs_nobody() {
    for choice in [IoChoice::Auto, IoChoice::Syscalls] {
        let mut rig = Rig::new(choice, Caching::Auto, From::Elsewhere, Scratch::new());
        let (_, backing) = rig.file("stopped");
        rig.write(&backing, 0, &[1; 4096]);
        let other = Reactors::start(1, choice).unwrap();
        rig._reactors = other;
        let (result, _) = rig.run(&backing, Operation::Sync, &[]);
        let expected = if rig.platform.is_on_ring() { Err(DeviceError::Lost) } else { Ok(()) };
        assert_eq!(result, expected);
    }
}

#[test]
fn stopping_waits_for_what_is_in_flight() {
    let mut rig = Rig::new(IoChoice::Auto, Caching::Auto, From::Elsewhere, Scratch::new());
    let (_, backing) = rig.file("stopping");
    let slots: Vec<_> = (0..64)
        .map(|at| rig.submit(&backing, Operation::Write { offset: at << 16, len: 65_536 }, &pattern(at, 65_536)))
        .collect();
    rig._reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    for slot in slots {
        assert!(matches!(rig.outcome(&slot).0, Ok(()) | Err(DeviceError::Lost)));
    }
}

#[test]
fn a_sync_that_somebody_wanted_whole_says_so_only_once_it_was() {
    for rig in Rig::all() {
        let (_, backing) = rig.file("whole");
        let file = backing.get::<HostFile>().unwrap();
        rig.write(&backing, 0, &[1; 4096]);
        rig.ok(&backing, Operation::Sync, &[]);
        let wanted = file.request_metadata_sync();
        assert!(!file.is_metadata_synced(wanted), "{}: by a sync before it was wanted", rig.name());
        rig.ok(&backing, Operation::Sync, &[]);
        assert!(file.is_metadata_synced(wanted), "{}", rig.name());
        // No request for times and mode remains.
        assert_eq!(file.pending_metadata_sync(), None);
        let (first, second) = (file.request_metadata_sync(), file.request_metadata_sync());
        file.note_metadata_synced(first);
        assert!(file.is_metadata_synced(first) && !file.is_metadata_synced(second));
    }
    let rig = Rig::new(IoChoice::Auto, Caching::Auto, From::BlockOn, Scratch::new());
    let gone = backing(File::open("/dev/null").unwrap());
    let file = gone.get::<HostFile>().unwrap();
    let wanted = file.request_metadata_sync();
    let (result, _) = rig.run(&gone, Operation::Sync, &[]);
    assert!(result.is_err() && !file.is_metadata_synced(wanted), "one that failed: {result:?}");
}

/// What the kernel may say for good to a thread that enters its ring.
const REFUSALS: [Errno; 10] = [
    Errno::PERM,
    Errno::NOSYS,
    Errno::IO,
    Errno::BADF,
    Errno::INVAL,
    Errno::OPNOTSUPP,
    Errno::NOMEM,
    Errno::AGAIN,
    Errno::BUSY,
    Errno::INTR,
];

/// Writes and reads many offsets at once, then makes all durable.
fn write_and_read(rig: &Rig, backing: &Backing, seed: u64) {
    let places = 0..16_u64;
    let bytes = |at: u64| pattern(seed + at, 8192);
    let run = |operation: &dyn Fn(u64) -> Operation, bytes: &dyn Fn(u64) -> Vec<u8>| -> Vec<Outcome> {
        let made: Vec<_> = places.clone().map(|at| rig.request(backing, operation(at), &bytes(at))).collect();
        let (requests, slots): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let device = Arc::clone(&rig.device);
        let submit = move || requests.into_iter().for_each(|request| device.submit(request));
        match rig.from {
            From::Reactor => rig.platform.spawn("submit", async move { submit() }),
            _ => rig.platform.block_on(async { submit() }),
        }
        slots.iter().map(|slot| rig.outcome(slot)).collect()
    };
    let written = run(&|at| Operation::Write { offset: at * 8192, len: 8192 }, &bytes);
    assert!(written.iter().all(|(result, _)| *result == Ok(())), "{written:?}");
    rig.ok(backing, Operation::Sync, &[]);
    let read = run(&|at| Operation::Read { offset: at * 8192, len: 8192 }, &|_| Vec::new());
    for (at, (result, found)) in read.into_iter().enumerate() {
        assert_eq!(result, Ok(()));
        assert!(found == bytes(at as u64), "place {at}");
    }
}

// rule: A kernel that refuses io_uring after the start ends no process: the thread goes on with system calls.
// kept in: `product/linux-device/src/reactor/ring.rs`, `product/linux-device/src/reactor/poller.rs`
#[test]
fn a_thread_that_may_not_enter_its_ring_goes_on_with_system_calls() {
    for errno in REFUSALS {
        for from in [From::BlockOn, From::Reactor] {
            let rig = Rig::new(IoChoice::Auto, Caching::Auto, from, Scratch::new());
            if !rig.platform.is_on_ring() {
                afflux_scratch::skipped!("no io_uring here; worker threads go on by themselves");
                return;
            }
            let (_, backing) = rig.file("refused");
            let refuse =
                move || crate::tests::refused_calls::try_refuse(libc::SYS_io_uring_enter, errno.raw_os_error());
            let work = || {
                write_and_read(&rig, &backing, 1);
                let is_refused = match from {
                    From::Reactor => (0..2).all(|number| {
                        let (tell, told) = mpsc::channel();
                        rig.platform.reactor(number).run(move |_| tell.send(refuse()).unwrap());
                        told.recv().unwrap()
                    }),
                    _ => refuse(),
                };
                if !is_refused {
                    return false;
                }
                for round in 2..5 {
                    write_and_read(&rig, &backing, round);
                }
                true
            };
            // The filter ends with the thread.
            if !std::thread::scope(|scope| scope.spawn(work).join()).unwrap() {
                afflux_scratch::skipped!("this kernel takes no filter of calls");
                return;
            }
        }
    }
}
