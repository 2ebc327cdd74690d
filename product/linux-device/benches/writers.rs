//! Two writers on two devices, against one alone: state shared by devices must not slow the writers down.
//!
//! Each writer dirties pages of its own file on its own device, which completes writes at once. The pages are written
//! back between rounds, outside of the measured time. The benchmark prints nanoseconds of wall clock a page: the median
//! over rounds, and the ratio of two threads to one in each round. The throttles are equal parts, the flush budget, and
//! a law that admits every writer and is asked every few pages. The case `copy` uses no engine: it copies pages to each
//! thread's own memory, and so shows what two threads cost each other on this machine.
//!
//! Options: `--quick`; `--list` names the cases. `--count CASE N` runs N rounds of one case on one thread, for
//! callgrind. `--lines CASE` writes a few pages of one file and then of the other, on one thread. It stores to a
//! printed address before, between and after them, for a tracer of memory (`valgrind --tool=lackey --trace-mem=yes`).
//! Two threads would share each line that both parts touch and one of them changes.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use afflux_budget::Budget;
use afflux_engine::policy::{
    Admission, AnyPolicy, ChargeBounds, Completed, DevicePolicy, EqualParts, LentMemory, LimitPages, Needs, Pace, View,
};
use afflux_engine::settings::BackgroundBase;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, Engine, File, Limits, Policies, Request};
use afflux_figures::median;
use afflux_frames::Frames;
use afflux_linux_device::{IoChoice, LinuxPlatform, Reactors};

const PAGE: usize = 4096;
/// Pages of a round: fewer than the guard above a law lets a device take, so that no writer waits.
const PAGES: usize = 16_384;
/// Pages of a round with `--lines`.
const PAGES_TRACED: usize = 256;

/// Where a traced part begins or ends.
static MARK: AtomicU64 = AtomicU64::new(0);

/// Completes everything at once.
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

/// Admits every writer, and is asked again after this many pages.
struct Every(u64);

impl DevicePolicy for Every {
    type Payer = ();
    type Device = ();
    type Shared = u64;

    fn name(&self) -> &'static str {
        "every"
    }

    fn pause_ns_max(&self) -> u64 {
        0
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace { payer_pages: self.0, ..Pace::UNASKED }
    }

    fn needs(&self) -> Needs {
        Needs {
            admits: true,
            shared_counters: true,
            memory_guard: true,
            background_base: BackgroundBase::OfMemory,
            ..Needs::NONE
        }
    }

    fn charge_bounds(&self, _: &View, (): &mut ()) -> ChargeBounds {
        ChargeBounds::UNLIMITED
    }

    fn admit(&self, _: &View, memory: LentMemory<'_, Self>) -> Admission {
        *memory.shared += memory.pace.unpaid_pages;
        memory.pace.unpaid_pages = 0;
        Admission::Enter
    }

    fn completed(&self, _: &View, ends: &[Completed], _: &mut (), shared: &mut u64) {
        *shared += ends.iter().map(|done| done.pages).sum::<u64>();
    }

    fn is_over_background(&self, _: &View, _: &mut (), _: &mut u64) -> bool {
        false
    }

    fn slice_bytes(&self, _: &View, _: &mut (), _: &mut u64) -> u64 {
        4 << 20
    }

    fn limits(&self, _: &View, _: &mut (), _: &mut u64) -> LimitPages {
        LimitPages::default()
    }
}

/// The law that throttles the writers.
#[derive(Clone, Copy)]
enum Law {
    EqualParts,
    /// The flush budget. It learns nothing from writes that take no time, and so decides at every page.
    Budget,
    /// [`Every`] with this many pages.
    Every(u64),
}

struct Case {
    name: &'static str,
    law: Law,
    call_pages: usize,
}

const CASES: &[Case] = &[
    Case { name: "parts-4k", law: Law::EqualParts, call_pages: 1 },
    Case { name: "parts-64k", law: Law::EqualParts, call_pages: 16 },
    Case { name: "afflux-4k", law: Law::Budget, call_pages: 1 },
    Case { name: "law-4k-never", law: Law::Every(1 << 40), call_pages: 1 },
    Case { name: "law-64k-never", law: Law::Every(1 << 40), call_pages: 16 },
    Case { name: "law-4k-every-64", law: Law::Every(64), call_pages: 1 },
    Case { name: "law-4k-every-8", law: Law::Every(8), call_pages: 1 },
];

struct Rig {
    platform: LinuxPlatform,
    engine: Arc<Engine<LinuxPlatform>>,
    files: [File; 2],
    pages: usize,
    call_pages: usize,
}

impl Rig {
    fn new(platform: &LinuxPlatform, case: &Case, pages: usize) -> Self {
        let policy: Arc<dyn AnyPolicy> = match case.law {
            Law::EqualParts => Arc::new(EqualParts),
            Law::Budget => Arc::new(Budget),
            Law::Every(pages) => Arc::new(Every(pages)),
        };
        let mut settings = Settings::with([&afflux_budget::KNOBS]);
        for knob in ["dirty_ratio=90", "dirty_background_ratio=89", "dirty_expire_centisecs=360000", "budget_ms=60000"]
        {
            settings.set_text(knob).unwrap();
        }
        let frames = Frames::new((8 * pages * PAGE) as u64).unwrap();
        let policies = Policies { policy, ..Policies::default() };
        let engine = Engine::with_policies(Arc::new(platform.clone()), settings, frames, policies);
        let limits = Limits {
            block_bytes: 4096,
            request_bytes_max: 1 << 20,
            depth: 64,
            volatile_cache: false,
            ..Limits::default()
        };
        let files = [0; 2].map(|_| {
            let device = engine.add_device("at once", Arc::new(AtOnce(limits.clone())));
            engine.open(device, Backing::new(Arc::new(())), 0)
        });
        let rig = Self { platform: platform.clone(), engine, files, pages, call_pages: case.call_pages };
        rig.files.iter().for_each(|file| {
            rig.write(file);
        });
        rig.clean();
        rig
    }

    fn clean(&self) {
        for file in &self.files {
            self.platform.block_on(self.engine.sync(file, 0..u64::MAX)).unwrap();
        }
    }

    /// Dirties all pages of the file; returns nanoseconds a page.
    fn write(&self, file: &File) -> f64 {
        let piece = vec![7; self.call_pages * PAGE];
        let began = Instant::now();
        self.platform.block_on(async {
            for at in (0..self.pages * PAGE).step_by(piece.len()) {
                self.engine.write(file, at as u64, &piece).await.unwrap();
            }
        });
        began.elapsed().as_nanos() as f64 / self.pages as f64
    }

    /// Writes both files at once; returns the mean of the two.
    fn write_both(&self) -> f64 {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let [one, other] = [&self.files[0], &self.files[1]].map(|file| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    self.write(file)
                })
            });
            f64::midpoint(one.join().unwrap(), other.join().unwrap())
        })
    }

    fn end(self) {
        self.files.iter().for_each(|file| self.engine.discard(file));
    }
}

/// Copies a page at a time to the thread's own memory; returns nanoseconds a page.
fn copy(to: &mut [u8]) -> f64 {
    let piece = vec![7; PAGE];
    let began = Instant::now();
    for page in to.chunks_exact_mut(PAGE) {
        std::hint::black_box(page).copy_from_slice(std::hint::black_box(&piece));
    }
    began.elapsed().as_nanos() as f64 / PAGES as f64
}

/// Copies on both threads at once; returns the mean of the two.
fn copy_both(to: &mut [Vec<u8>; 2]) -> f64 {
    let barrier = Barrier::new(2);
    let [one, other] = to;
    let start = |to: &mut Vec<u8>| {
        barrier.wait();
        copy(to)
    };
    std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(|| start(one)), scope.spawn(|| start(other)));
        f64::midpoint(one.join().unwrap(), other.join().unwrap())
    })
}

fn show(name: &str, measured: &[(f64, f64)]) {
    let one = median(measured.iter().map(|(one, _)| *one)).unwrap();
    let two = median(measured.iter().map(|(_, two)| *two)).unwrap();
    let ratio = median(measured.iter().map(|(one, two)| two / one)).unwrap();
    println!("{name:<18} {one:>14.1} {two:>14.1} {ratio:>8.3}");
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let platform = reactors.platform();
    if words.iter().any(|word| word == "--list") {
        CASES.iter().for_each(|case| println!("{}", case.name));
        return;
    }
    if let Some(at) = words.iter().position(|word| word == "--count") {
        let case = CASES.iter().find(|case| case.name == words[at + 1]).unwrap();
        let rig = Rig::new(&platform, case, PAGES);
        for _ in 0..words[at + 2].parse::<u32>().unwrap() {
            rig.write(&rig.files[0]);
            rig.clean();
        }
        rig.end();
        return;
    }
    if let Some(at) = words.iter().position(|word| word == "--lines") {
        let case = CASES.iter().find(|case| case.name == words[at + 1]).unwrap();
        let rig = Rig::new(&platform, case, PAGES_TRACED);
        println!("{:x}", MARK.as_ptr().addr());
        for file in &rig.files {
            MARK.store(1, Ordering::SeqCst);
            rig.write(file);
        }
        MARK.store(2, Ordering::SeqCst);
        rig.clean();
        rig.end();
        return;
    }
    let rounds = if words.iter().any(|word| word == "--quick") { 5 } else { 41 };
    println!("{:<18} {:>14} {:>14} {:>8}", "case", "one, ns/page", "two, ns/page", "ratio");
    let mut memory = [0; 2].map(|_| vec![1; PAGES * PAGE]);
    let measured: Vec<(f64, f64)> = (0..rounds).map(|_| (copy(&mut memory[0]), copy_both(&mut memory))).collect();
    show("copy", &measured);
    for case in CASES {
        let rig = Rig::new(&platform, case, PAGES);
        let measured: Vec<(f64, f64)> = (0..rounds)
            .map(|_| {
                let one = rig.write(&rig.files[0]);
                rig.clean();
                let two = rig.write_both();
                rig.clean();
                (one, two)
            })
            .collect();
        show(case.name, &measured);
        rig.end();
    }
}
