//! The cost on this machine of reading words of a hot line, alone and beside two threads that write to it.
//!
//! The kernels of S0 read shared words at the point where the law needs them. The measurement imitates this on one
//! cache line. Two threads add to the words of the line. It reads the words in the groups in which each form reads the
//! dirty counters. Between groups it does some arithmetic, during which another thread may take the line away. The cost
//! of the arithmetic alone is subtracted.
//!
//! Owns: the measurement, its rows. Does not own: the laws.
//! Invariants: threads end before this returns. A figure is the median of short rounds, with its quartiles, since a
//! round in which the thread lost its CPU is one of thousands. With threads beside, a round counts only if they made
//! progress in it: with too few CPUs, or on a busy machine, they do not run all the time.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use afflux_report::{Fields, Row};

use crate::experiment::Watch;
use crate::machine::{measured_row, rounded};

const ROUNDS: usize = 2001;
/// Most rounds made for each round that counts.
const TRIES: usize = 40;
/// Calls in a round: few, so that most rounds see no change of task.
const CALLS: u32 = 50;
/// Steps of dependent arithmetic between groups of reads: some 50 ns, as a law's divisions.
const STEPS: u32 = 40;

/// For each form, the groups in which a call that is let through reads the dirty counters.
const GROUPS: [(&str, &[usize]); 4] = [
    ("before: 4 + 3 + 2", &[4, 3, 2]),
    ("July to September: 4", &[4]),
    ("2.6.36, below half-way: 3", &[3]),
    ("6.1, below half-way: 2", &[2]),
];

/// The threads beside: their stop flag and their progress.
#[derive(Default)]
#[repr(align(128))]
struct NeighbourLoad {
    threads: usize,
    stop: AtomicBool,
    done: AtomicU64,
}

impl NeighbourLoad {
    fn new(threads: usize) -> Self {
        Self { threads, ..Self::default() }
    }

    fn goes_on(&self) -> bool {
        self.done.fetch_add(1, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Lower quartile, median and upper quartile in nanoseconds, and the number of rounds.
#[derive(Clone, Copy, Debug)]
struct Quartiles {
    ns: [f64; 3],
    rounds: usize,
}

impl Quartiles {
    /// The time of one call, in rounds in which the threads beside made progress.
    fn of(beside: &NeighbourLoad, mut call: impl FnMut()) -> Self {
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS * TRIES {
            let done = beside.done.load(Ordering::Relaxed);
            let began = Instant::now();
            (0..CALLS).for_each(|_| call());
            let ns = began.elapsed().as_nanos() as f64 / f64::from(CALLS);
            if beside.threads == 0 || beside.done.load(Ordering::Relaxed) > done {
                rounds.push(ns);
            }
            if rounds.len() == ROUNDS {
                break;
            }
        }
        rounds.sort_by(f64::total_cmp);
        let at = |quarter| rounds.get(rounds.len() * quarter / 4).copied().unwrap_or_default();
        Self { ns: [1, 2, 3].map(at), rounds: rounds.len() }
    }

    /// Subtracts the median of `alone`.
    fn less(self, alone: Self) -> Self {
        Self { ns: self.ns.map(|ns| (ns - alone.ns[1]).max(0.0)), rounds: self.rounds.min(alone.rounds) }
    }
}

/// One cache line of counters, together as in the kernel.
#[derive(Default)]
#[repr(align(64))]
struct HotLine([AtomicU32; 16]);

impl HotLine {
    /// Adds to all words, again and again.
    fn hammer(&self, beside: &NeighbourLoad) {
        while beside.goes_on() {
            self.0.iter().for_each(|word| {
                word.fetch_add(1, Ordering::Relaxed);
            });
        }
    }

    /// Reads the groups, with arithmetic after each; without `reads`, does only the arithmetic.
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

    fn read_ns(&self, groups: &[usize], beside: &NeighbourLoad) -> Quartiles {
        let of = |reads| {
            Quartiles::of(beside, || {
                black_box(self.read(black_box(groups), reads));
            })
        };
        of(true).less(of(false))
    }
}

pub(super) fn measure(watch: &mut dyn Watch) {
    for threads in [0, 2] {
        lines(threads, watch);
    }
}

fn row(variant: &str, params: Fields, ns: Quartiles) -> Row {
    let [lower, median, upper] = ns.ns.map(|ns| rounded(ns, 1));
    let metrics = Fields::new()
        .with("ns_median", median)
        .with("ns_lower", lower)
        .with("ns_upper", upper)
        .with("rounds", ns.rounds);
    measured_row("s0", variant, params, metrics, Fields::new())
}

fn lines(threads: usize, watch: &mut dyn Watch) {
    watch.step(&format!("words of a hot line beside {threads} threads"), 0.9);
    let (line, beside) = (HotLine::default(), NeighbourLoad::new(threads));
    let measured = std::thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(|| line.hammer(&beside));
        });
        let measured = GROUPS.map(|(name, groups)| (name, line.read_ns(groups, &beside)));
        beside.stop.store(true, Ordering::Relaxed);
        measured
    });
    let params = || Fields::new().with("what", "hot line").with("threads_beside", threads);
    measured.into_iter().for_each(|(name, ns)| watch.row(&row(name, params(), ns)));
}

#[cfg(test)]
mod tests;
