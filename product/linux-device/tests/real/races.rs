//! The engine between real threads: races that a simulation on one thread cannot show.

use std::collections::HashMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, DeviceId, Engine, File, Limits, Nanos, Operation, Platform, Request};
use afflux_frames::Frames;
use afflux_linux_device::{IoChoice, LinuxPlatform, Reactors};

const PAGE: u64 = 4096;
const SECTOR: u64 = 512;

type Bytes = Arc<Mutex<HashMap<u64, Vec<u8>>>>;

/// A disk in memory: answers on a thread of its own, or every third time inside `submit`.
struct MemoryDisk {
    limits: Limits,
    files: Bytes,
    submitted: AtomicU64,
    queue: Mutex<mpsc::Sender<Request>>,
}

impl MemoryDisk {
    fn start() -> Arc<Self> {
        let limits = Limits {
            block_bytes: 512,
            request_bytes_max: 8 * PAGE as u32,
            depth: 8,
            volatile_cache: true,
            ..Limits::default()
        };
        let (queue, requests) = mpsc::channel();
        let files = Bytes::default();
        let answering = Arc::clone(&files);
        thread::spawn(move || {
            let all = || requests.into_iter().for_each(|request| answer(&answering, request));
            if let Err(panic) = catch_unwind(AssertUnwindSafe(all)) {
                // The engine's next request ends the process, and the text that the harness has captured ends with it.
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                let _ = io::stderr().write_all(format!("the disk's thread panicked: {text}\n").as_bytes());
            }
        });
        Arc::new(Self { limits, files, submitted: AtomicU64::new(0), queue: Mutex::new(queue) })
    }
}

fn answer(files: &Bytes, mut request: Request) {
    let number = *request.backing().get::<u64>().unwrap();
    let mut files_now = files.lock().unwrap();
    let bytes = files_now.entry(number).or_default();
    match request.operation() {
        Operation::Read { offset, len } => {
            let start = bytes.len().min(offset as usize);
            let mut read = bytes[start..bytes.len().min(offset as usize + len as usize)].to_vec();
            read.resize(len as usize, 0);
            request.copy_in(0, &read);
        }
        Operation::Write { offset, len } => {
            let end = (offset + u64::from(len)) as usize;
            bytes.resize(bytes.len().max(end), 0);
            request.copy_out(0..len as usize, &mut bytes[offset as usize..end]);
        }
        Operation::SetSize { size } => bytes.resize(size as usize, 0),
        Operation::Punch { offset, len } => bytes[offset as usize..(offset + len) as usize].fill(0),
        Operation::Sync | Operation::Reserve { .. } => {}
    }
    drop(files_now);
    request.complete(Ok(()));
}

impl Device for MemoryDisk {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        if self.submitted.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            answer(&self.files, request);
        } else {
            self.queue.lock().unwrap().send(request).unwrap();
        }
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

struct RaceFixture {
    platform: LinuxPlatform,
    engine: Arc<Engine<LinuxPlatform>>,
    disk: Arc<MemoryDisk>,
    device: DeviceId,
    _reactors: Reactors,
}

impl RaceFixture {
    fn new(frames: u64, knobs: &[&str]) -> Self {
        let reactors = Reactors::start(2, IoChoice::Syscalls).unwrap();
        let platform = reactors.platform();
        let mut settings = Settings::new();
        for knob in knobs {
            settings.set_text(knob).unwrap();
        }
        let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(frames * PAGE).unwrap());
        let disk = MemoryDisk::start();
        let device = engine.add_device("memory", Arc::clone(&disk) as Arc<dyn Device>);
        Self { platform, engine, disk, device, _reactors: reactors }
    }

    fn file(&self, number: u64) -> File {
        self.engine.open(self.device, Backing::new(Arc::new(number)), 0)
    }
}

/// A small repeatable stream of numbers.
fn next(random: &mut u64, below: u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) % below
}

#[test]
fn what_a_guard_shows_stays_while_the_file_is_cut() {
    let lab = RaceFixture::new(256, &[]);
    let file = lab.file(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20_000_u64 {
                let bytes = [round as u8 | 1; PAGE as usize];
                lab.platform.block_on(lab.engine.write(&file, 0, &bytes)).unwrap();
                lab.platform.block_on(lab.engine.set_size(&file, 600)).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let Some(pages) = lab.engine.try_read_pinned(&file, 0, PAGE as usize) else { continue };
                let shown = || pages.slices().flatten().map(|byte| u64::from(*byte)).sum::<u64>();
                let first = shown();
                for _ in 0..3 {
                    assert_eq!(std::hint::black_box(shown()), first, "bytes under a guard changed");
                }
            }
        });
    });
}

#[test]
fn what_a_guard_shows_is_one_version_while_the_page_is_overwritten() {
    let lab = RaceFixture::new(256, &["dirty_background_ratio=100", "dirty_expire_centisecs=360000"]);
    let file = lab.file(0);
    lab.platform.block_on(lab.engine.write(&file, 0, &[1; PAGE as usize])).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..100_000_u64 {
                let bytes = [round as u8; PAGE as usize];
                if lab.engine.try_write(&file, 0, &bytes).is_none() {
                    lab.platform.block_on(lab.engine.write(&file, 0, &bytes)).unwrap();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let Some(pages) = lab.engine.try_read_pinned(&file, 0, PAGE as usize) else { continue };
                    let bytes = pages.as_slice().unwrap();
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "bytes under a guard changed");
                }
            });
        }
    });
}

const PHASES: u64 = 20;
const THREADS: u64 = 4;
const FILES: u64 = 3;
const FILE_SECTORS: u64 = 64 * 8;

/// Random steps on this thread's sectors; every page has some of them.
fn one_thread(lab: &RaceFixture, files: &[File], phase: u64, own: u64, known: &mut HashMap<(u64, u64), u8>) {
    let mut random = phase * THREADS + own;
    for step in 0..2000_u64 {
        let which = next(&mut random, FILES);
        let sector = next(&mut random, FILE_SECTORS / THREADS) * THREADS + own;
        let (file, at) = (&files[which as usize], sector * SECTOR);
        match next(&mut random, 100) {
            0 => lab.platform.block_on(lab.engine.sync(file, 0..u64::MAX)).unwrap(),
            1 => {
                let seen = file.change_count();
                lab.platform.block_on(lab.engine.try_invalidate(file, FILE_SECTORS * SECTOR, seen));
            }
            2..45 => {
                let bytes = [step as u8; SECTOR as usize];
                if lab.engine.try_write(file, at, &bytes).is_none() {
                    lab.platform.block_on(lab.engine.write(file, at, &bytes)).unwrap();
                }
                known.insert((which, sector), step as u8);
            }
            _ => {
                let Some(byte) = known.get(&(which, sector)) else { continue };
                let mut into = [0; SECTOR as usize];
                if lab.engine.try_read(file, at, &mut into) != Some(SECTOR as usize) {
                    lab.platform.block_on(lab.engine.read(file, at, &mut into)).unwrap();
                }
                assert!(into == [*byte; SECTOR as usize], "file {which}, sector {sector}, step {step}: {}", into[0]);
            }
        }
    }
}

#[test]
fn threads_find_what_they_wrote_and_nothing_leaks() {
    let knobs = ["dirty_expire_centisecs=1", "dirty_writeback_centisecs=1", "dirty_ratio=60"];
    let lab = RaceFixture::new(96, &knobs);
    let files: Vec<File> = (0..FILES).map(|number| lab.file(number)).collect();
    for file in &files {
        lab.platform.block_on(lab.engine.set_size(file, FILE_SECTORS * SECTOR)).unwrap();
    }
    let mut owned = vec![HashMap::new(); THREADS as usize];
    for phase in 0..PHASES {
        thread::scope(|scope| {
            for (own, known) in (0..).zip(&mut owned) {
                let (lab, files) = (&lab, &files);
                scope.spawn(move || one_thread(lab, files, phase, own, known));
            }
        });
        // Data without a sync is written back in time.
        let now = || lab.platform.now();
        let until = now().after(60 * Nanos::SECOND);
        while !files.iter().all(File::is_clean) {
            assert!(now() < until, "phase {phase}: dirty data is not written");
            lab.platform.block_on(lab.platform.sleep_until(now().after(Nanos::MILLISECOND)));
        }
    }
    assert_eq!(lab.platform.block_on(lab.engine.drain(lab.device)).len(), 0);
    let on_disk = lab.disk.files.lock().unwrap();
    for ((which, sector), byte) in owned.into_iter().flatten() {
        let start = (sector * SECTOR) as usize;
        assert_eq!(on_disk[&which][start..start + SECTOR as usize], [byte; SECTOR as usize], "{which} {sector}");
    }
    files.iter().for_each(|file| lab.engine.discard(file));
    let status = lab.engine.status();
    assert_eq!((status.dirty_bytes, status.pinned_bytes, status.devices[0].files_failed), (0, 0, 0));
    assert_eq!(status.free_bytes, status.cache_bytes, "every frame came back");
}
