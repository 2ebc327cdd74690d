//! One engine, used by many threads at once, over real files.
//!
//! Every byte identifies its offset: its high half is a hash of it. A thread knows the bytes that it owns exactly.
//! Shared bytes are checked one by one, since a reader may see any mix of old and new. Nothing here depends on timing:
//! each thread does a fixed number of steps.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_engine::counters::Counter;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, DeviceId, Engine, File, Platform};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, LinuxPlatform, Reactors};
use afflux_scratch::Scratch;

const THREADS: u64 = 6;
const CACHE_BYTES: u64 = 4 << 20;
/// Bytes of a cell: pages, sectors and cells never begin together, so neighbours share them.
const CELL_BYTES: u64 = 1_000;
/// Cells of the file that is divided among the threads, one after the other: a third more than fits in the cache.
const CELLS: u64 = 5_592 / THREADS * THREADS;
/// The cells of each thread that it uses again and again.
const HOT_CELLS: u64 = 24;
/// The file that all threads write and cut.
const SHARED_BYTES: u64 = 96 << 10;
/// The most of each thread's own file.
const OWN_BYTES: usize = 64 << 10;

/// Steps of each thread: enough for tens of thousands of evictions, few enough for every test run.
/// More in `AFFLUX_STRESS_STEPS` for a soak.
fn steps() -> u64 {
    std::env::var("AFFLUX_STRESS_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(4_000)
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % below
    }
}

/// The byte at an offset of a file, with this mark (1 to 15) in it.
fn byte_at(file: u64, offset: u64, mark: u8) -> u8 {
    let place = (file << 48 ^ offset).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (place >> 60) as u8 * 16 + mark
}

fn filled(file: u64, offset: u64, len: usize, mark: u8) -> Vec<u8> {
    (0..len as u64).map(|at| byte_at(file, offset + at, mark)).collect()
}

/// Checks that each byte is zero or was written at this offset.
fn check_places(file: u64, offset: u64, bytes: &[u8], what: &str) {
    for (at, byte) in bytes.iter().enumerate() {
        let offset = offset + at as u64;
        let right = *byte == 0 || *byte == byte_at(file, offset, byte % 16);
        assert!(right, "{what}: byte {byte:#04x} at {offset} of file {file}");
    }
}

/// How files are driven.
#[derive(Clone, Copy)]
struct World {
    choice: IoChoice,
    caching: Caching,
}

/// Past the host's page cache; only a last part of a page is written through it. The two paths must not be mixed in one
/// file, or the host reports an error.
const DIRECT: World = World { choice: IoChoice::Auto, caching: Caching::Auto };
/// Through the host's page cache, which takes any size.
const BUFFERED: World = World { choice: IoChoice::Syscalls, caching: Caching::Buffered };

struct Rig {
    platform: LinuxPlatform,
    engine: Arc<Engine<LinuxPlatform>>,
    devices: Vec<DeviceId>,
    places: Vec<Scratch>,
}

impl Rig {
    fn new(reactors: &Reactors, devices: usize, world: World) -> Self {
        let platform = reactors.platform();
        let mut settings = Settings::new();
        // Constantly busy flushers, and guards that often fill their part.
        for knob in ["dirty_background_ratio=5", "readahead_bytes_max=65536", "writeback_slice_bytes=65536"] {
            settings.set_text(knob).unwrap();
        }
        let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(CACHE_BYTES).unwrap());
        let place = |_| Scratch::new(&std::env::temp_dir(), "threads").unwrap();
        let places: Vec<Scratch> = (0..devices).map(place).collect();
        let devices = places.iter().map(|place| {
            let directory: OwnedFd = std::fs::File::open(place.path()).unwrap().into();
            engine.add_device("threads", HostDevice::new(&platform, directory, world.caching).unwrap())
        });
        Self { devices: devices.collect(), platform, engine, places }
    }

    fn path(&self, name: u64) -> PathBuf {
        self.places[name as usize % self.places.len()].path().join(name.to_string())
    }

    fn open(&self, name: u64) -> File {
        let host = OpenOptions::new().read(true).write(true).create_new(true).open(self.path(name)).unwrap();
        let device = self.devices[name as usize % self.devices.len()];
        self.engine.open(device, Backing::new(Arc::new(HostFile::new(host.into()))), 0)
    }
}

/// The names of the files that all threads use; the threads' own files have later names.
const DIVIDED: u64 = 0;
const SHARED: u64 = 1;

/// One thread and its knowledge.
struct Worker<'a> {
    rig: &'a Rig,
    number: u64,
    numbers: Numbers,
    divided: File,
    /// The mark of each own cell; 0 until it is written.
    marks: Vec<u8>,
    shared: File,
    own: File,
    own_bytes: Vec<u8>,
}

impl Worker<'_> {
    fn step(&mut self) {
        match self.numbers.next(100) {
            0..30 => self.write_cell(),
            30..55 => self.read_cell(),
            55..65 => self.guard(DIVIDED),
            65..75 => self.write_shared(),
            75..80 => self.read_shared(),
            80..85 => self.guard(SHARED),
            85..88 => self.cut_shared(),
            88..97 => self.change_own(),
            97..99 => self.sync_own(),
            _ => self.sync_divided(),
        }
    }

    /// Chooses an own cell; returns the cell's number among the own cells, and its offset.
    fn cell(&mut self) -> (usize, u64) {
        let hot = self.numbers.next(3) > 0;
        let cell = self.numbers.next(if hot { HOT_CELLS } else { CELLS / THREADS });
        (cell as usize, (cell * THREADS + self.number) * CELL_BYTES)
    }

    fn write_cell(&mut self) {
        let (cell, offset) = self.cell();
        let mark = 1 + self.marks[cell] % 15;
        let bytes = filled(DIVIDED, offset, CELL_BYTES as usize, mark);
        let (engine, platform) = (&self.rig.engine, &self.rig.platform);
        if engine.try_write(&self.divided, offset, &bytes).is_none() {
            platform.block_on(engine.write(&self.divided, offset, &bytes)).unwrap();
        }
        self.marks[cell] = mark;
        self.check_cell(cell, offset);
    }

    fn read_cell(&mut self) {
        let (cell, offset) = self.cell();
        self.check_cell(cell, offset);
    }

    /// No other thread writes it, so it has the bytes written last.
    fn check_cell(&self, cell: usize, offset: u64) {
        let mut bytes = vec![0xff; CELL_BYTES as usize];
        let read = self.rig.platform.block_on(self.rig.engine.read(&self.divided, offset, &mut bytes)).unwrap();
        check_cell(&bytes[..read], offset, self.marks[cell]);
    }

    /// The bytes of a guard do not change, whatever happens to the page.
    fn guard(&mut self, name: u64) {
        let file = if name == DIVIDED { self.divided.clone() } else { self.shared.clone() };
        let hot = HOT_CELLS * THREADS * CELL_BYTES;
        let offset = self.numbers.next(file.size().clamp(1, hot));
        let len = 1 + self.numbers.next(12_000) as usize;
        let shown = self.rig.platform.block_on(self.rig.engine.read_pinned(&file, offset, len)).unwrap();
        let Some(shown) = shown else { return };
        let copy = || shown.slices().flatten().copied().collect::<Vec<u8>>();
        let before = copy();
        check_places(name, offset, &before, "shown");
        match self.numbers.next(3) {
            0 => self.write_cell(),
            1 => self.change_own(),
            _ => std::thread::yield_now(),
        }
        assert!(before == copy(), "bytes {offset}..+{} of file {name} changed while they were shown", shown.len());
    }

    fn write_shared(&mut self) {
        let offset = self.numbers.next(SHARED_BYTES);
        let end = offset + 1 + self.numbers.next(6_000);
        let len = (end.min(SHARED_BYTES) - offset) as usize;
        let bytes = filled(SHARED, offset, len, 1 + self.number as u8);
        self.rig.platform.block_on(self.rig.engine.write(&self.shared, offset, &bytes)).unwrap();
    }

    fn read_shared(&mut self) {
        let offset = self.numbers.next(SHARED_BYTES);
        let mut bytes = vec![0xff; 8_000];
        let read = self.rig.platform.block_on(self.rig.engine.read(&self.shared, offset, &mut bytes)).unwrap();
        check_places(SHARED, offset, &bytes[..read], "read");
    }

    fn cut_shared(&mut self) {
        let (engine, platform) = (&self.rig.engine, &self.rig.platform);
        let size = self.numbers.next(SHARED_BYTES);
        if self.numbers.next(4) == 0 {
            let range = size..(size + self.numbers.next(16_000)).min(SHARED_BYTES);
            platform.block_on(engine.punch(&self.shared, range)).unwrap();
        } else {
            platform.block_on(engine.set_size(&self.shared, size)).unwrap();
        }
    }

    /// Writes, cuts, extends or reads the own file like the bytes in memory.
    fn change_own(&mut self) {
        let (engine, platform) = (&self.rig.engine, &self.rig.platform);
        let (name, at) = (2 + self.number, self.numbers.next(OWN_BYTES as u64) as usize);
        if self.numbers.next(4) == 0 {
            let size = at;
            platform.block_on(engine.set_size(&self.own, size as u64)).unwrap();
            self.own_bytes.resize(size, 0);
        } else {
            let end = at + 1 + self.numbers.next(5_000) as usize;
            let len = end.min(OWN_BYTES) - at;
            let bytes = filled(name, at as u64, len, 1 + self.numbers.next(15) as u8);
            platform.block_on(engine.write(&self.own, at as u64, &bytes)).unwrap();
            self.own_bytes.resize(self.own_bytes.len().max(at + len), 0);
            self.own_bytes[at..at + len].copy_from_slice(&bytes);
        }
        let mut bytes = vec![0xff; OWN_BYTES];
        let read = platform.block_on(engine.read(&self.own, 0, &mut bytes)).unwrap();
        assert!(bytes[..read] == self.own_bytes, "file {name}");
    }

    /// After a sync the host has the own file.
    fn sync_own(&mut self) {
        self.rig.platform.block_on(self.rig.engine.sync(&self.own, 0..u64::MAX)).unwrap();
        let name = 2 + self.number;
        assert!(std::fs::read(self.rig.path(name)).unwrap() == self.own_bytes, "file {name} on the host");
    }

    fn sync_divided(&mut self) {
        let (_, offset) = self.cell();
        let end = if self.numbers.next(2) == 0 { u64::MAX } else { offset + 100 * CELL_BYTES };
        self.rig.platform.block_on(self.rig.engine.sync(&self.divided, offset..end)).unwrap();
    }
}

fn check_cell(bytes: &[u8], offset: u64, mark: u8) {
    if mark == 0 {
        return assert!(bytes.iter().all(|byte| *byte == 0), "the cell at {offset} was never written");
    }
    assert!(bytes == filled(DIVIDED, offset, CELL_BYTES as usize, mark), "the cell at {offset}, mark {mark}");
}

/// Checks the bytes on the host's disk, past the engine.
fn check_host(path: &Path, workers: &[Vec<u8>]) {
    let bytes = std::fs::read(path).unwrap();
    for (number, marks) in workers.iter().enumerate() {
        for (cell, mark) in marks.iter().enumerate() {
            let offset = (cell as u64 * THREADS + number as u64) * CELL_BYTES;
            check_cell(&bytes[offset as usize..][..CELL_BYTES as usize], offset, *mark);
        }
    }
}

fn run(world: World, devices: usize) {
    let reactors = Reactors::start(2, world.choice).unwrap();
    let rig = Rig::new(&reactors, devices, world);
    let (divided, shared) = (rig.open(DIVIDED), rig.open(SHARED));
    let owns: Vec<File> = (0..THREADS).map(|number| rig.open(2 + number)).collect();
    let size = CELLS * CELL_BYTES;
    rig.platform.block_on(rig.engine.set_size(&divided, size)).unwrap();
    let worker = |number: u64| {
        let mut worker = Worker {
            rig: &rig,
            number,
            numbers: Numbers(0x1234_5678 + number * 7_919),
            divided: divided.clone(),
            marks: vec![0; (CELLS / THREADS) as usize],
            shared: shared.clone(),
            own: owns[number as usize].clone(),
            own_bytes: Vec::new(),
        };
        (0..steps()).for_each(|_| worker.step());
        (worker.marks, worker.own_bytes)
    };
    let (marks, own_bytes): (Vec<_>, Vec<_>) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || worker(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).unzip()
    });
    for device in &rig.devices {
        let failed = rig.platform.block_on(rig.engine.drain(*device));
        assert!(failed.is_empty(), "{:?}", failed[0].1);
    }
    check_host(&rig.path(DIVIDED), &marks);
    let host_shared = std::fs::read(rig.path(SHARED)).unwrap();
    check_places(SHARED, 0, &host_shared, "on the host");
    let mut cached_shared = vec![0xff; SHARED_BYTES as usize];
    let read = rig.platform.block_on(rig.engine.read(&shared, 0, &mut cached_shared)).unwrap();
    assert!(cached_shared[..read] == host_shared, "the host's file is the cache's");
    for (number, bytes) in own_bytes.iter().enumerate() {
        assert!(std::fs::read(rig.path(2 + number as u64)).unwrap() == *bytes, "own file of {number}");
    }
    check_accounts(&rig);
    for file in owns.into_iter().chain([divided, shared]) {
        rig.engine.discard(&file);
    }
    check_frames_come_back(&rig);
}

/// Every dirtied page was written or cut off, once.
fn check_accounts(rig: &Rig) {
    let status = rig.engine.status();
    assert_eq!((status.dirty_bytes, status.writeback_bytes, status.pinned_bytes), (0, 0, 0));
    let count = |counter| rig.platform.counters().get(counter);
    assert_eq!(count(Counter::PagesDirtied), count(Counter::PagesWritten) + count(Counter::PagesTruncated));
    assert_eq!((count(Counter::WriteErrors), count(Counter::ReadErrors)), (0, 0));
    for used in [Counter::PagesEvicted, Counter::PagesCopiedStable, Counter::WriteHitPages, Counter::PagesTruncated] {
        assert!(count(used) > 0, "{used:?} is what this test is for");
    }
}

/// Waits until readahead in flight has ended. Then no frame is held by anything, and no file remains: a file goes just
/// after its last frame.
fn check_frames_come_back(rig: &Rig) {
    let left = || {
        let status = rig.engine.status();
        (CACHE_BYTES - status.free_bytes, status.files)
    };
    for _ in 0..10_000 {
        if left() == (0, 0) {
            return;
        }
        let soon = rig.platform.now().after(1_000_000);
        rig.platform.block_on(rig.platform.sleep_until(soon));
    }
    panic!("{:?} bytes and files are left", left());
}

#[test]
fn threads_on_one_device_see_their_bytes() {
    run(DIRECT, 1);
}

#[test]
fn threads_on_two_devices_through_the_hosts_cache_see_their_bytes() {
    run(BUFFERED, 2);
}
