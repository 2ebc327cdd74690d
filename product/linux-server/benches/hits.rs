//! The hit path against the kernel's page cache, alternating in one run.
//!
//! Prints nanoseconds of thread CPU time for one 4 KiB operation: the median over rounds, the ratio
//! of each round's pair (median, smallest, largest), and the design's target. A directory among the arguments gets
//! the peer's file. `--quick` takes smaller sets and fewer rounds, `--large` the large set alone. `--arena` compares a
//! cache in a memory file on `/dev/shm` with one in the process's own memory. Both are in 2 MiB pages.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fs::{File as HostStdFile, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Engine, File};
use afflux_figures::{median, ratios};
use afflux_frames::{FILE_SLOTS, Frames, Layout};
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, LinuxPlatform, Reactors};
use afflux_linux_server::{ArenaContents, ArenaFile};
use rustix::time::{ClockId, clock_gettime};

const PAGE: usize = 4096;

struct Rig {
    engine: Arc<Engine<LinuxPlatform>>,
    file: File,
    peer: HostStdFile,
    pages: u64,
    map: *const u8,
}

// SAFETY: the mapping is only read, and lives until the process ends.
unsafe impl Sync for Rig {}

fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A small generator, the same sequence for both sides.
struct Offsets(u64);

impl Offsets {
    fn next(&mut self, pages: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % pages) * PAGE as u64
    }
}

impl Rig {
    fn new(platform: &LinuxPlatform, directory: &PathBuf, bytes: u64) -> Self {
        Self::over(platform, directory, bytes, Frames::new(frame_bytes(bytes)).unwrap())
    }

    fn over(platform: &LinuxPlatform, directory: &PathBuf, bytes: u64, frames: Frames) -> Self {
        let open = |name: &str| {
            let path = directory.join(name);
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            file
        };
        let (peer, own) = (open("afflux-bench-peer"), open("afflux-bench-own"));
        let device_directory: OwnedFd = HostStdFile::open(directory).unwrap().into();
        let device = HostDevice::new(platform, device_directory, Caching::Auto).unwrap();
        let mut settings = Settings::new();
        for knob in ["dirty_ratio=90", "dirty_background_ratio=100", "dirty_expire_centisecs=360000"] {
            settings.set_text(knob).unwrap();
        }
        let engine = Engine::new(Arc::new(platform.clone()), settings, frames);
        let id = engine.add_device("bench", device);
        let file = engine.open(id, Backing::new(Arc::new(HostFile::new(own.into()))), 0);
        let chunk = vec![7_u8; 1 << 20];
        for at in (0..bytes).step_by(chunk.len()) {
            peer.write_all_at(&chunk, at).unwrap();
            platform.block_on(engine.write(&file, at, &chunk)).unwrap();
        }
        // SAFETY: a fresh read-only mapping of a file that is not truncated while it lives.
        let map = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::SHARED | rustix::mm::MapFlags::POPULATE,
                &peer,
                0,
            )
            .unwrap()
        };
        Self { engine, file, peer, pages: bytes / PAGE as u64, map: map.cast() }
    }

    fn time(&self, count: u64, mut operation: impl FnMut(&Self, u64)) -> f64 {
        let mut offsets = Offsets(88_172_645_463_325_252);
        let began = cpu_ns();
        for _ in 0..count {
            operation(self, offsets.next(self.pages));
        }
        (cpu_ns() - began) as f64 / count as f64
    }
}

/// Memory for a cache that has to hold a set of so many bytes.
fn frame_bytes(set_bytes: u64) -> u64 {
    set_bytes + set_bytes / 4 + (64 << 20)
}

/// Copies of the same pages in memory of a file and in memory of the process's own, alternately.
fn race_arenas(platform: &LinuxPlatform, directory: &PathBuf, sets: &[(&str, u64)], turns: usize, count: u64) {
    println!("{:<44} {:>10} {:>11}   ratio", "4 KiB, random in the set, one thread", "file", "own memory");
    for (label, bytes) in sets {
        let path = PathBuf::from(format!("/dev/shm/afflux-bench-{}", std::process::id()));
        let layout = Layout::new(frame_bytes(*bytes), FILE_SLOTS).unwrap();
        let opened = ArenaFile::open(&path, layout, &mut |_| {}).unwrap();
        let (_file, ArenaContents::Fresh(memory)) = opened else { panic!("{} is in use", path.display()) };
        let [kept, own] = [Frames::over(memory, &[]), Frames::new(frame_bytes(*bytes)).unwrap()].map(|frames| {
            frames.arena().prefault(0..frames.total()).unwrap();
            frames.arena().collapse(0..frames.total()).unwrap();
            Rig::over(platform, directory, *bytes, frames)
        });
        let buffer = std::cell::RefCell::new(vec![0_u8; PAGE]);
        let read = |rig: &Rig, at: u64| {
            assert_eq!(rig.engine.try_read(&rig.file, at, &mut buffer.borrow_mut()[..]), Some(PAGE));
        };
        let write = |rig: &Rig, at: u64| assert_eq!(rig.engine.try_write(&rig.file, at, &buffer.borrow()), Some(()));
        let pairs = |operation: &dyn Fn(&Rig, u64)| -> Vec<(f64, f64)> {
            (0..=turns).map(|_| (kept.time(count, operation), own.time(count, operation))).skip(1).collect()
        };
        report(&format!("read, {label}, file against own memory"), &pairs(&read), 0.97);
        report(&format!("overwrite, {label}, file against own memory"), &pairs(&write), 0.97);
        [kept, own].iter().for_each(|rig| rig.engine.discard(&rig.file));
    }
}

fn report(name: &str, pairs: &[(f64, f64)], goal: f64) {
    let own = median(pairs.iter().map(|pair| pair.0)).unwrap();
    let peer = median(pairs.iter().map(|pair| pair.1)).unwrap();
    let [ratio, least, most] = ratios(pairs.iter().map(|(own, peer)| (*peer, *own))).unwrap();
    println!("{name:<44} {own:>7.1} ns {peer:>8.1} ns   {ratio:>5.2}x ({least:.2} to {most:.2})   goal {goal}x",);
}

fn rounds(rig: &Rig, rounds: usize, count: u64, own: impl Fn(&Rig, u64), peer: impl Fn(&Rig, u64)) -> Vec<(f64, f64)> {
    rig.time(count, &own);
    rig.time(count, &peer);
    (0..rounds).map(|_| (rig.time(count, &own), rig.time(count, &peer))).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let directory = arguments.iter().find(|argument| !argument.starts_with("--"));
    let directory = directory.map_or_else(|| std::env::current_dir().unwrap(), PathBuf::from);
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let count = if quick { 20_000 } else { 400_000 };
    let turns = if quick { 3 } else { 9 };
    let large: u64 = if quick { 64 << 20 } else { 1 << 30 };
    let sets = [("hot, 1 MiB", 1 << 20), ("8 MiB", 8 << 20), ("large", large)];
    if arguments.iter().any(|argument| argument == "--arena") {
        return race_arenas(&platform, &directory, &sets, turns, count);
    }
    println!("{:<44} {:>10} {:>11}   ratio", "4 KiB, random in the set, one thread", "afflux", "kernel");
    let only_large = arguments.iter().any(|argument| argument == "--large");
    for (label, bytes) in sets.into_iter().skip(if only_large { 2 } else { 0 }) {
        let rig = Rig::new(&platform, &directory, bytes);
        // One buffer, as a reader has; zeroing a fresh one would be timed with the copy.
        let buffer = std::cell::RefCell::new(vec![0_u8; PAGE]);
        let read = |rig: &Rig, at: u64| {
            let mut buffer = buffer.borrow_mut();
            assert_eq!(rig.engine.try_read(&rig.file, at, &mut buffer[..]), Some(PAGE));
            std::hint::black_box(&buffer[..]);
        };
        let pread = |rig: &Rig, at: u64| {
            let mut buffer = buffer.borrow_mut();
            rig.peer.read_exact_at(&mut buffer, at).unwrap();
            std::hint::black_box(&buffer[..]);
        };
        let mapped = |rig: &Rig, at: u64| {
            let mut buffer = buffer.borrow_mut();
            // SAFETY: the offset is inside the populated mapping.
            unsafe { std::ptr::copy_nonoverlapping(rig.map.add(at as usize), buffer.as_mut_ptr(), PAGE) };
            std::hint::black_box(&buffer[..]);
        };
        let bytes_written = [9_u8; PAGE];
        let write = |rig: &Rig, at: u64| {
            assert_eq!(rig.engine.try_write(&rig.file, at, &bytes_written), Some(()));
        };
        let pwrite = |rig: &Rig, at: u64| rig.peer.write_all_at(&bytes_written, at).unwrap();
        let read_goal = if bytes == large { 2.0 } else { 6.0 };
        report(&format!("read, {label}, against pread"), &rounds(&rig, turns, count, read, pread), read_goal);
        report(&format!("read, {label}, against a copy from mmap"), &rounds(&rig, turns, count, read, mapped), 0.9);
        report(&format!("overwrite, {label}, against pwrite"), &rounds(&rig, turns, count, write, pwrite), 15.0);
        rig.engine.discard(&rig.file);
    }
}
