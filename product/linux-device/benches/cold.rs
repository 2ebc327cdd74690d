//! Reads of a real disk that are in no cache, through the engine and, by turns, past it: io_uring and O_DIRECT by hand.
//!
//! Prints for each load the rates of both sides and their ratio, by rounds. There are three kinds of load. One file is
//! read in sequence: by the engine in calls of 128 KiB, by hand at the best of several block sizes with 8 in flight.
//! Eight files are read in sequence at a time. Pages of 4 KiB are read at random with 1, 32 and 64 in flight. The
//! sequential reads by hand go round and round a buffer as large as the engine's cache. With a buffer of a few MiB,
//! which fits the processors' caches, a disk that is itself memory would seem faster than with a cache's worth of
//! memory. `--hand-mib N` sets another buffer size. One thread does all of a side's work. Options: the directory;
//! `--mib N` of the file; `--rounds N`; `--seconds N` of a side's turn; a part of a load's name; knobs of the engine.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Engine, Platform};
use afflux_figures::{median, ratios};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, LinuxPlatform, Reactors};
use afflux_scratch::Scratch;
use io_uring::{IoUring, opcode, types};

const PAGE: u64 = 4096;
const STREAMS: usize = 8;
const CACHE_BYTES: u64 = 256 << 20;

struct Options {
    directory: PathBuf,
    mib: u64,
    rounds: u32,
    seconds: f64,
    hand_bytes: u64,
    only: String,
    knobs: Vec<String>,
}

impl Options {
    fn read() -> Self {
        let (directory, only, knobs) = (std::env::temp_dir(), String::new(), Vec::new());
        let mut options = Self { directory, mib: 2048, rounds: 5, seconds: 2.0, hand_bytes: CACHE_BYTES, only, knobs };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || words.next().unwrap().parse::<f64>().unwrap();
            match word.as_str() {
                "--mib" => options.mib = number() as u64,
                "--hand-mib" => options.hand_bytes = (number() as u64) << 20,
                "--rounds" => options.rounds = number() as u32,
                "--seconds" => options.seconds = number(),
                // Cargo says so.
                "--bench" => {}
                _ if word.contains('=') => options.knobs.push(word),
                _ if Path::new(&word).is_dir() => options.directory = word.into(),
                _ => options.only = word,
            }
        }
        options
    }
}

/// Offsets at random, the same for both sides.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// Which bytes a load reads.
#[derive(Clone, Copy)]
enum Load {
    /// Some files, read from their start and again and again, this many at a time.
    Sequence { files: usize },
    /// Random pages, this many in flight.
    Random { depth: usize },
}

fn make_file(path: &Path, mib: u64) {
    let mut file = File::create(path).unwrap();
    let block: Vec<u8> = (0..1 << 20).map(|at| (at * 7 % 251) as u8).collect();
    (0..mib).for_each(|_| file.write_all(&block).unwrap());
    file.sync_all().unwrap();
}

fn direct(path: &Path) -> File {
    OpenOptions::new().read(true).custom_flags(0o40000).open(path).unwrap()
}

/// Reads by hand for `seconds`; returns bytes a second.
fn by_hand(files: &[File], bytes: u64, load: Load, block: u64, memory_bytes: u64, seconds: f64) -> f64 {
    let depth = match load {
        Load::Sequence { files } => files.max(8),
        Load::Random { depth } => depth,
    };
    let mut ring = IoUring::new(256).unwrap();
    let slots = depth * (memory_bytes / block / depth as u64).max(1) as usize;
    let layout = std::alloc::Layout::from_size_align((block as usize) * slots, 2 << 20).unwrap();
    // SAFETY: the size is not zero.
    let memory = unsafe { std::alloc::alloc(layout) };
    // SAFETY: as above; touching every page now maps it in, as the engine's pages are.
    unsafe { memory.write_bytes(1, layout.size()) };
    let mut random = Random(9);
    let mut next = vec![0_u64; files.len()];
    let mut turn = 0;
    let mut push = |ring: &mut IoUring, slot: usize| {
        let (file, offset) = match load {
            Load::Random { .. } => (0, random.below(bytes / PAGE) * PAGE),
            Load::Sequence { files } => {
                turn += 1;
                let file = turn % files;
                let offset = next[file];
                next[file] = if offset + 2 * block > bytes { 0 } else { offset + block };
                (file, offset)
            }
        };
        // SAFETY: each slot has memory of its own, which lives until all reads have completed. A read completes before
        // the slot `depth` places further is used.
        let into = unsafe { memory.add(slot * block as usize) };
        let entry = opcode::Read::new(types::Fd(files[file].as_raw_fd()), into, block as u32).offset(offset).build();
        // SAFETY: as above; the files outlive this call.
        unsafe { ring.submission().push(&entry.user_data(slot as u64)).unwrap() };
    };
    (0..depth).for_each(|slot| push(&mut ring, slot));
    let (started, mut done, mut in_flight) = (Instant::now(), 0_u64, depth);
    let mut ended = Vec::with_capacity(depth);
    while in_flight > 0 {
        ring.submit_and_wait(1).unwrap();
        ended.extend(ring.completion().map(|completion| (completion.user_data() as usize, completion.result())));
        let goes_on = started.elapsed().as_secs_f64() < seconds;
        for (slot, result) in ended.drain(..) {
            assert_eq!(result as u64, block);
            done += 1;
            if goes_on { push(&mut ring, (slot + depth) % slots) } else { in_flight -= 1 }
        }
    }
    let rate = (done * block) as f64 / started.elapsed().as_secs_f64();
    // SAFETY: nothing is in flight any more.
    unsafe { std::alloc::dealloc(memory, layout) };
    rate
}

/// Reads through the engine for `seconds`; returns bytes a second.
fn through_engine(
    platform: &LinuxPlatform,
    engine: &Arc<Engine<LinuxPlatform>>,
    files: &[afflux_engine::File],
    bytes: u64,
    load: Load,
    seconds: f64,
) -> f64 {
    let (readers, block) = match load {
        Load::Sequence { files } => (files, 128 << 10),
        Load::Random { depth } => (depth, PAGE),
    };
    let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (ended, all_ended) = mpsc::channel();
    let started = Instant::now();
    for reader in 0..readers {
        let (engine, done, stop, ended) = (Arc::clone(engine), Arc::clone(&done), Arc::clone(&stop), ended.clone());
        let file = files[reader % files.len()].clone();
        platform.spawn("reader", async move {
            let (mut random, mut offset) = (Random(77 + reader as u64), 0);
            let mut into = vec![0_u8; block as usize];
            while !stop.load(Ordering::Relaxed) {
                match load {
                    Load::Random { .. } => offset = random.below(bytes / PAGE) * PAGE,
                    Load::Sequence { .. } => offset = if offset + 2 * block > bytes { 0 } else { offset + block },
                }
                assert_eq!(engine.read(&file, offset, &mut into).await, Ok(block as usize));
                done.fetch_add(1, Ordering::Relaxed);
            }
            ended.send(()).unwrap();
        });
    }
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let rate = (done.load(Ordering::Relaxed) * block) as f64 / started.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    (0..readers).for_each(|_| all_ended.recv().unwrap());
    rate
}

fn main() {
    let options = Options::read();
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let mut settings = Settings::new();
    for knob in &options.knobs {
        settings.set_text(knob).unwrap();
    }
    let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(CACHE_BYTES).unwrap());
    let directory = File::open(&options.directory).unwrap();
    let device = HostDevice::new(&platform, directory.into(), Caching::Auto).unwrap();
    println!("{}: {}", options.directory.display(), device.describe());
    let id = engine.add_device("disk", device);
    let bytes = options.mib << 20;
    let files = Scratch::new(&options.directory, "cold").unwrap();
    let paths: Vec<PathBuf> = (0..STREAMS).map(|number| files.path().join(number.to_string())).collect();
    let of = |path: &PathBuf, number: usize| {
        make_file(path, if number == 0 { options.mib } else { options.mib / STREAMS as u64 });
    };
    paths.iter().enumerate().for_each(|(number, path)| of(path, number));
    let hands: Vec<File> = paths.iter().map(|path| direct(path)).collect();
    let open = |path: &PathBuf, bytes: u64| {
        let host = OpenOptions::new().read(true).write(true).open(path).unwrap();
        engine.open(id, Backing::new(Arc::new(HostFile::new(host.into()))), bytes)
    };
    let small = bytes / STREAMS as u64;
    let large = [open(&paths[0], bytes)];
    let several: Vec<afflux_engine::File> = paths.iter().map(|path| open(path, small)).collect();
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    for (name, load) in [
        ("random, 1 in flight", Load::Random { depth: 1 }),
        ("random, 32 in flight", Load::Random { depth: 32 }),
        ("random, 64 in flight", Load::Random { depth: 64 }),
        ("sequence", Load::Sequence { files: 1 }),
        ("eight sequences", Load::Sequence { files: STREAMS }),
    ] {
        if !name.contains(&options.only) {
            continue;
        }
        let single = matches!(load, Load::Random { .. } | Load::Sequence { files: 1 });
        let (files, size) = if single { (&large[..], bytes) } else { (&several[..], small) };
        let mut rounds = Vec::new();
        for _ in 0..options.rounds {
            let by_engine = through_engine(&platform, &engine, files, size, load, options.seconds);
            let blocks: &[u64] =
                if matches!(load, Load::Random { .. }) { &[PAGE] } else { &[128 << 10, 256 << 10, 1 << 20] };
            let each = options.seconds / blocks.len() as f64;
            let memory = if blocks == [PAGE] { 0 } else { options.hand_bytes };
            let rates = blocks.iter().map(|block| by_hand(&hands, size, load, *block, memory, each));
            let best = rates.fold(0.0, f64::max);
            rounds.push((by_engine, best));
        }
        let unit = |rate: f64| match load {
            Load::Random { .. } => format!("{:.1} k/s", rate / PAGE as f64 / 1e3),
            Load::Sequence { .. } => format!("{:.0} MB/s", rate / 1e6),
        };
        let [ratio, least, most] = ratios(rounds.iter().copied()).unwrap();
        println!(
            "{name}: {} by the engine, {} by hand, ratio {ratio:.3} ({least:.3} to {most:.3})",
            unit(median(rounds.iter().map(|(ours, _)| *ours)).unwrap()),
            unit(median(rounds.iter().map(|(_, hand)| *hand)).unwrap()),
        );
    }
}
