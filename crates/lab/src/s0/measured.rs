//! What one decision costs on this machine, and what reading words of a hot line does, alone and beside two
//! threads that keep the counters moving.
//!
//! The engine runs on real threads over a device that completes writes at once, so that its counters change
//! as fast as they can: two threads dirty pages of a file each and have them written. A third takes the
//! engine's snapshot, and has a law decide from it, as a writer does whose allowance is used up. The engine
//! reads each shared counter once a snapshot, whatever the law asks of the snapshot then.
//!
//! The kernels of S0 read shared words where the law asks. So beside that: words of one cache line, which two
//! threads add to, are read in the groups in which each form reads the dirty counters, with some arithmetic
//! between groups, in which others may take the line away. What the arithmetic alone costs is taken off.
//!
//! Owns: the measurement, its rows and findings. Does not own: the laws, the snapshot.
//! Invariants: threads end before this returns; a figure is the median of short rounds, with its quartiles: a
//! round in which the thread lost its CPU is one of thousands.

use std::any::Any;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use engine::settings::Settings;
use engine::throttle::{AnyLaw, Driver, Policies, Throttle};
use engine::{Backing, Device, Engine, File, Flush, FlushDriver, Limits, Request};
use frames::Frames;
use linux_policies::policy;
use platform_linux::{IoChoice, LinuxPlatform, Reactors};
use report::{Align, Cell as Text, Fields, Row, Source, Table};

use crate::experiment::{Findings, LabError, Watch};
use crate::machine::rounded;

const ROUNDS: usize = 4001;
/// In a round, so that most rounds see no change of task.
const TURNS: u32 = 50;
const FILE_PAGES: u64 = 256;
const PAGE_BYTES: u64 = 4096;
/// Steps of dependent arithmetic between groups of reads: some 50 ns, as a law's divisions.
const STEPS: u32 = 40;

/// In which groups the dirty counters are read on a call that is let through, by form.
const GROUPS: [(&str, &[usize]); 4] = [
    ("before: 4 + 3 + 2", &[4, 3, 2]),
    ("July to September: 4", &[4]),
    ("2.6.36, below half-way: 3", &[3]),
    ("6.1, below half-way: 2", &[2]),
];

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

/// Writes nothing; keeps what takes snapshots.
#[derive(Default)]
struct Snapshots(OnceLock<Arc<dyn Flush>>);

impl FlushDriver for Snapshots {
    fn start(&self, flush: Arc<dyn Flush>) {
        let _ = self.0.set(flush);
    }

    fn kick(&self, _: Arc<dyn Flush>) {}
}

/// Lower quartile, median and upper quartile of nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Quartiles([f64; 3]);

impl Quartiles {
    /// Of one turn.
    fn of(mut turn: impl FnMut()) -> Self {
        let mut rounds: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let began = Instant::now();
                (0..TURNS).for_each(|_| turn());
                began.elapsed().as_nanos() as f64 / f64::from(TURNS)
            })
            .collect();
        rounds.sort_by(f64::total_cmp);
        Self([1, 2, 3].map(|quarter| rounds[ROUNDS * quarter / 4]))
    }

    /// Without what `alone` costs in the median.
    fn less(self, alone: Self) -> Self {
        Self(self.0.map(|ns| (ns - alone.0[1]).max(0.0)))
    }
}

/// A snapshot of the engine's shared counters.
fn snapshot_ns(flush: &dyn Flush) -> Quartiles {
    Quartiles::of(|| {
        black_box(flush.view());
    })
}

/// A snapshot, and the law's decision from it.
fn decision_ns(flush: &dyn Flush, law: &dyn AnyLaw) -> Quartiles {
    let (mut task, mut device, mut shared) = (law.new_task(), law.new_device(), law.new_shared());
    let mut pace = law.start(flush.view().memory_pages, 2);
    Quartiles::of(|| {
        let view = flush.view();
        let memory: [&mut dyn Any; 3] = [&mut *task, &mut *device, &mut *shared];
        let [task, device, shared] = memory;
        black_box(law.decide(&view, task, device, shared, &mut pace));
    })
}

/// One cache line of counters, as the kernel's lie together.
#[derive(Default)]
#[repr(align(64))]
struct HotLine([AtomicU32; 16]);

impl HotLine {
    /// Adds to all of it, again and again.
    fn hammer(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.0.iter().for_each(|word| {
                word.fetch_add(1, Ordering::Relaxed);
            });
        }
    }

    /// Reads the groups, with arithmetic after each; with `reads` off the arithmetic only.
    fn read(&self, groups: &[usize], reads: bool) -> u32 {
        let mut sum = 1;
        for group in groups {
            for word in self.0.iter().take(if reads { *group } else { 0 }) {
                sum += u64::from(word.load(Ordering::Relaxed));
            }
            for step in 0..STEPS {
                sum = black_box(sum).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(step);
            }
        }
        sum as u32
    }

    fn read_ns(&self, groups: &[usize]) -> Quartiles {
        let of = |reads| {
            Quartiles::of(|| {
                black_box(self.read(black_box(groups), reads));
            })
        };
        of(true).less(of(false))
    }
}

/// Dirties the file and has it written, again and again.
fn hammer(platform: &LinuxPlatform, engine: &Arc<Engine<LinuxPlatform>>, file: &File, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        for page in 0..FILE_PAGES {
            // An error here would be one of the device, which has none.
            let _ = platform.block_on(engine.write(file, page * PAGE_BYTES, &[7; PAGE_BYTES as usize]));
        }
        let _ = platform.block_on(engine.sync(file, 0..u64::MAX));
    }
}

pub(super) fn measure(variants: &[&'static str], watch: &mut dyn Watch) -> Result<Vec<Row>, LabError> {
    let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
    let reactors = Reactors::start(1, IoChoice::Syscalls).map_err(|error| failed(&error))?;
    let platform = reactors.platform();
    let snapshots = Arc::new(Snapshots::default());
    let driver = Driver::Own(Arc::clone(&snapshots) as Arc<dyn FlushDriver>);
    let policies = Policies { throttle: Throttle::EqualParts, driver };
    let frames = Frames::new(64 << 20).map_err(|error| failed(&error))?;
    let engine = Engine::with_policies(Arc::new(platform.clone()), Settings::new(), frames, policies);
    let limits = Limits { block_bytes: 4096, request_bytes_max: 1 << 20, depth: 64, volatile_cache: false };
    let device = engine.add_device("at once", Arc::new(AtOnce(limits)));
    let flush =
        snapshots.0.get().ok_or_else(|| LabError::Failed("the engine has not started its driver".to_owned()))?;
    let files = [0; 2].map(|_| engine.open(device, Backing::new(Arc::new(())), 0));
    let mut rows = Vec::new();
    for threads in [0, 2] {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for file in files.iter().take(threads) {
                scope.spawn(|| hammer(&platform, &engine, file, &stop));
            }
            let measured = decisions(variants, threads, &**flush, watch);
            stop.store(true, Ordering::Relaxed);
            measured.map(|measured| rows.extend(measured))
        })?;
        rows.extend(lines(threads, watch));
    }
    files.iter().for_each(|file| engine.discard(file));
    Ok(rows)
}

fn row(variant: &str, params: Fields, ns: Quartiles) -> Row {
    let [lower, median, upper] = ns.0.map(|ns| rounded(ns, 1));
    let metrics = Fields::new().with("ns_median", median).with("ns_lower", lower).with("ns_upper", upper);
    Row {
        experiment: "s0".to_owned(),
        variant: variant.to_owned(),
        params,
        metrics,
        published: Fields::new(),
        source: Source::Measured,
    }
}

fn decisions(
    variants: &[&'static str],
    threads: usize,
    flush: &dyn Flush,
    watch: &mut dyn Watch,
) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    let params = || Fields::new().with("what", "decision").with("threads_beside", threads);
    rows.push(row("snapshot only", params(), snapshot_ns(flush)));
    for variant in variants {
        watch.step(&format!("{variant}: a decision beside {threads} threads"), 0.5);
        let policy = policy(variant).map_err(|error| LabError::Failed(error.to_string()))?;
        let Throttle::Law(law) = policy.policies.throttle else { continue };
        rows.push(row(variant, params(), decision_ns(flush, &*law)));
    }
    rows.iter().for_each(|row| watch.row(row));
    Ok(rows)
}

fn lines(threads: usize, watch: &mut dyn Watch) -> Vec<Row> {
    watch.step(&format!("words of a hot line beside {threads} threads"), 0.9);
    let (line, stop) = (HotLine::default(), AtomicBool::new(false));
    let measured = std::thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(|| line.hammer(&stop));
        });
        let measured = GROUPS.map(|(name, groups)| (name, line.read_ns(groups)));
        stop.store(true, Ordering::Relaxed);
        measured
    });
    let params = || Fields::new().with("what", "hot line").with("threads_beside", threads);
    let rows: Vec<Row> = measured.into_iter().map(|(name, ns)| row(name, params(), ns)).collect();
    rows.iter().for_each(|row| watch.row(row));
    rows
}

fn table(rows: &[Row], title: &str, what: &str) -> Table {
    let right = Align::Right;
    let columns = [("", Align::Left), ("alone, ns", right), ("beside two threads, ns", right)];
    let mut table = Table::new(title, &columns);
    let number = |row: &Row, name| row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap_or_default();
    let is_of = |row: &&Row, threads: u64| {
        row.params.get("what").is_some_and(|own| own == what)
            && row.params.get("threads_beside").is_some_and(|own| *own == threads)
    };
    for alone in rows.iter().filter(|row| is_of(row, 0)) {
        let beside = rows.iter().find(|row| is_of(row, 2) && row.variant == alone.variant);
        let text = |row: &Row| {
            let [median, lower, upper] = ["ns_median", "ns_lower", "ns_upper"].map(|name| number(row, name));
            Text::from(format!("{median:.0} ({lower:.0} to {upper:.0})"))
        };
        table.row([Text::from(alone.variant.clone()), text(alone), beside.map_or_else(|| Text::from(""), text)]);
    }
    table.note("Median, and within which half of the rounds lie.");
    table
}

/// What was measured, and what it shows.
pub(super) fn findings(rows: &[Row]) -> Findings {
    let engine = table(rows, "A snapshot of this engine's counters and a decision", "decision");
    let line = table(rows, "Reading dirty counters that lie on one line, in the groups of each form", "hot line");
    let says = [
        "The first table is what a decision costs on this engine: it reads each shared counter once a snapshot, so \
         that the laws differ in arithmetic only, and the reads that S0 saves are saved to all of them. The device's \
         counters are not in this snapshot.",
        "The second is what S0 saved a kernel: each group of reads that finds the line taken by another CPU pays for \
         getting it back, and within a group the words after the first cost next to nothing. So three groups cost \
         about three times one, whatever the number of words.",
        "It does not show a machine of 2009, nor counters folded from per-CPU parts, which change less often than \
         these. With fewer than three CPUs, or others at work, the threads beside do not always run; compare the \
         quartiles.",
    ];
    Findings { tables: vec![engine, line], figures: Vec::new(), says: says.into_iter().map(str::to_owned).collect() }
}

#[cfg(test)]
mod tests;
