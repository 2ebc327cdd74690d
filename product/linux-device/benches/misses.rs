//! The cost of a read miss on a device that completes at once, with one thread and with many.
//!
//! Each thread reads 4 KiB pages in scattered order from its own files, and each file is eight times as large as the
//! cache. The benchmark measures wall clock and processor time a miss with one thread, with two, and with 64. Two
//! threads also run on two devices, in the same file, and with an engine each. The last case shares nothing, and shows
//! the gain from a second thread on this machine. All cases go by turns; the best round and the spread of each are
//! printed.
//!
//! Options: `--quick`; `--rounds N`; `--ms N` of a round; `--mib N` of the cache; a case's name. `--count CASE N` runs
//! N misses on one thread, for callgrind. `--lines CASE N` runs N misses of one reader and then of the other, on one
//! thread. It stores to a printed address before, between and after them, for a tracer of memory (`valgrind
//! --tool=lackey --trace-mem=yes`).
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, Engine, File, Limits, Request};
use afflux_figures::{MedianAndRange, median_and_range};
use afflux_frames::Frames;
use afflux_linux_device::{IoChoice, LinuxPlatform, Reactors};
use rustix::time::{ClockId, clock_gettime};

const PAGE: u64 = 4096;

/// Answers everything at once.
struct AtOnce(Limits);

impl Device for AtOnce {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn submit(&self, request: Request) {
        request.complete(Ok(()));
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

/// The object that the threads of a case share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shared {
    File,
    Device,
    Engine,
    Nothing,
}

struct Case {
    name: &'static str,
    threads: usize,
    shared: Shared,
}

const CASES: [Case; 6] = [
    Case { name: "one", threads: 1, shared: Shared::Device },
    Case { name: "two", threads: 2, shared: Shared::Device },
    Case { name: "sixty-four", threads: 64, shared: Shared::Device },
    Case { name: "two-devices", threads: 2, shared: Shared::Engine },
    Case { name: "two-in-one-file", threads: 2, shared: Shared::File },
    Case { name: "two-engines", threads: 2, shared: Shared::Nothing },
];

/// One thread's reader: its engine, its file, and the next page.
struct Reader {
    engine: Arc<Engine<LinuxPlatform>>,
    file: File,
    pages: u64,
    next: u64,
}

impl Reader {
    async fn read(&mut self, into: &mut [u8]) {
        // An odd factor: every page once before any comes again.
        let page = self.next.wrapping_mul(40_503) % self.pages;
        self.next += 1;
        assert_eq!(self.engine.read(&self.file, page * PAGE, into).await, Ok(into.len()));
    }
}

/// A case with its engines; their caches are full.
struct Rig {
    case: &'static Case,
    platform: LinuxPlatform,
    readers: Vec<Reader>,
}

/// One round: nanoseconds a miss on the wall clock, over all threads, and of processor time, the engine's included.
#[derive(Clone, Copy)]
struct Round {
    wall_ns: f64,
    processor_ns: f64,
}

impl Rig {
    fn new(platform: &LinuxPlatform, case: &'static Case, cache_bytes: u64) -> Self {
        let engines = if case.shared == Shared::Nothing { case.threads } else { 1 };
        let engines: Vec<_> = (0..engines).map(|_| engine(platform, cache_bytes / engines as u64)).collect();
        let pages = (8 * cache_bytes / PAGE).next_power_of_two();
        let (mut devices, mut files) = (Vec::new(), Vec::new());
        let mut readers = Vec::new();
        for thread in 0..case.threads {
            let engine = &engines[thread % engines.len()];
            if devices.is_empty() || matches!(case.shared, Shared::Engine | Shared::Nothing) {
                let limits = Limits { block_bytes: 4096, request_bytes_max: 1 << 20, depth: 64, ..Limits::default() };
                devices.push(engine.add_device("at once", Arc::new(AtOnce(limits))));
            }
            if files.is_empty() || case.shared != Shared::File {
                files.push(engine.open(*devices.last().unwrap(), Backing::new(Arc::new(())), pages * PAGE));
            }
            let next = thread as u64 * pages / case.threads as u64;
            readers.push(Reader { engine: Arc::clone(engine), file: files.last().unwrap().clone(), pages, next });
        }
        let mut rig = Self { case, platform: platform.clone(), readers };
        let each = 2 * cache_bytes / PAGE / case.threads as u64;
        for reader in &mut rig.readers {
            misses(platform, reader, |done| done < each);
        }
        rig
    }

    fn round(&mut self, time: Duration) -> Round {
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let barrier = Barrier::new(self.readers.len() + 1);
        let platform = &self.platform;
        let (wall, processor) = std::thread::scope(|scope| {
            for reader in &mut self.readers {
                let (stop, done, barrier) = (&stop, &done, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let count = misses(platform, reader, |_| !stop.load(Ordering::Relaxed));
                    done.fetch_add(count, Ordering::Relaxed);
                });
            }
            barrier.wait();
            let (began, processor) = (Instant::now(), processor_time());
            std::thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            (began.elapsed(), processor_time() - processor)
        });
        let a_miss = |time: Duration| time.as_nanos() as f64 / done.load(Ordering::Relaxed) as f64;
        Round { wall_ns: a_miss(wall), processor_ns: a_miss(processor) }
    }
}

fn engine(platform: &LinuxPlatform, cache_bytes: u64) -> Arc<Engine<LinuxPlatform>> {
    Engine::new(Arc::new(platform.clone()), Settings::new(), Frames::new(cache_bytes).unwrap())
}

/// Reads uncached pages while `goes_on(pages read so far)` holds. Returns the number of pages read.
fn misses(platform: &LinuxPlatform, reader: &mut Reader, goes_on: impl Fn(u64) -> bool) -> u64 {
    let (mut count, mut bytes) = (0, [0; PAGE as usize]);
    platform.block_on(async {
        while goes_on(count) {
            reader.read(&mut bytes).await;
            count += 1;
        }
    });
    count
}

/// The processor time that all threads of this process have used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

struct Options {
    rounds: usize,
    time: Duration,
    cache_bytes: u64,
    only: String,
    count: Option<u64>,
    lines: Option<u64>,
}

/// Where a traced part begins or ends.
static MARK: AtomicU64 = AtomicU64::new(0);

impl Options {
    fn read() -> Self {
        let time = Duration::from_millis(100);
        let mut options =
            Self { rounds: 9, time, cache_bytes: 64 << 20, only: String::new(), count: None, lines: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || words.next().unwrap().parse::<u64>().unwrap();
            match word.as_str() {
                "--quick" => (options.rounds, options.time) = (3, Duration::from_millis(20)),
                "--rounds" => options.rounds = number() as usize,
                "--ms" => options.time = Duration::from_millis(number()),
                "--mib" => options.cache_bytes = number() << 20,
                "--lines" => {
                    options.only = words.next().unwrap();
                    options.lines = Some(words.next().unwrap().parse().unwrap());
                }
                "--count" => {
                    options.only = words.next().unwrap();
                    options.count = Some(words.next().unwrap().parse().unwrap());
                }
                // Cargo says so.
                "--bench" => {}
                _ => options.only = word,
            }
        }
        options
    }
}

/// The median, the best and the worst of these rounds.
fn spread(rounds: &[Round], of: impl Fn(&Round) -> f64) -> MedianAndRange {
    median_and_range(rounds.iter().map(of)).unwrap()
}

fn main() {
    let options = Options::read();
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let platform = reactors.platform();
    let chosen = CASES.iter().filter(|case| options.only.is_empty() || options.only == case.name);
    let mut rigs: Vec<Rig> = chosen.map(|case| Rig::new(&platform, case, options.cache_bytes)).collect();
    if let Some(count) = options.count {
        misses(&platform, &mut rigs[0].readers[0], |done| done < count);
        return;
    }
    if let Some(count) = options.lines {
        println!("{:x}", MARK.as_ptr().addr());
        for reader in &mut rigs[0].readers {
            MARK.store(1, Ordering::SeqCst);
            misses(&platform, reader, |done| done < count);
        }
        MARK.store(2, Ordering::SeqCst);
        return;
    }
    let mut measured = vec![Vec::new(); rigs.len()];
    for _ in 0..options.rounds {
        for (rig, rounds) in rigs.iter_mut().zip(&mut measured) {
            rounds.push(rig.round(options.time));
        }
    }
    println!(
        "{:<18} {:>28} {:>27} {:>24}",
        "a miss, ns", "clock: best, median, worst", "processors: best, median", "faster: best, median"
    );
    let one = rigs.first().filter(|rig| rig.case.threads == 1).map(|_| spread(&measured[0], |round| round.wall_ns));
    for (rig, rounds) in rigs.iter().zip(&measured) {
        let [median, best, worst] = spread(rounds, |round| round.wall_ns);
        let [middle, least, _] = spread(rounds, |round| round.processor_ns);
        let faster = one.map_or_else(String::new, |one| format!("{:.2} {:>7.2}", one[1] / best, one[0] / median));
        println!(
            "{:<18} {best:>12.0} {median:>7.0} {worst:>7.0} {least:>19.0} {middle:>7.0} {faster:>24}",
            rig.case.name
        );
    }
}
