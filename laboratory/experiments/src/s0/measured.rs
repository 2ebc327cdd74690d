//! The cost on this machine of reading words of a hot line, alone and beside two threads that write to it.
//!
//! The kernels of S0 read shared words at the point where the law needs them. The measurement imitates this on one
//! cache line. Two threads add to the words of the line. It reads the words in the groups in which each form reads the
//! dirty counters. Between groups it does some arithmetic, during which another thread may take the line away. The cost
//! of the arithmetic alone is subtracted.
//!
//! Owns: the measurement, its rows and findings. Does not own: the laws.
//! Invariants: threads end before this returns. A figure is the median of short rounds, with its quartiles, since a
//! round in which the thread lost its CPU is one of thousands. With threads beside, a round counts only if they made
//! progress in it: with too few CPUs, or on a busy machine, they do not run all the time.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use afflux_report::{Align, Bar, Bars, Cell as Text, Fields, Quantity, Row, Source, Table};

use crate::experiment::{Findings, Watch};
use crate::machine::rounded;
use crate::prose::{paragraph, section};

const TEXT: &str = include_str!("measured.md");
const A_LINE: &str = section(TEXT, "a line that others write");
const NOT_SHOWN: &str = section(TEXT, "not shown");

const ROUNDS: usize = 2001;
/// Most rounds made for each round that counts.
const TRIES: usize = 40;
/// Turns in a round: few, so that most rounds see no change of task.
const TURNS: u32 = 50;
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
    /// The time of one turn, in rounds in which the threads beside made progress.
    fn of(beside: &NeighbourLoad, mut turn: impl FnMut()) -> Self {
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS * TRIES {
            let done = beside.done.load(Ordering::Relaxed);
            let began = Instant::now();
            (0..TURNS).for_each(|_| turn());
            let ns = began.elapsed().as_nanos() as f64 / f64::from(TURNS);
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

pub(super) fn measure(watch: &mut dyn Watch) -> Vec<Row> {
    [0, 2].into_iter().flat_map(|threads| lines(threads, watch)).collect()
}

fn row(variant: &str, params: Fields, ns: Quartiles) -> Row {
    let [lower, median, upper] = ns.ns.map(|ns| rounded(ns, 1));
    let metrics = Fields::new()
        .with("ns_median", median)
        .with("ns_lower", lower)
        .with("ns_upper", upper)
        .with("rounds", ns.rounds);
    Row {
        experiment: "s0".to_owned(),
        variant: variant.to_owned(),
        params,
        metrics,
        published: Fields::new(),
        source: Source::Measured,
    }
}

fn lines(threads: usize, watch: &mut dyn Watch) -> Vec<Row> {
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
    let rows: Vec<Row> = measured.into_iter().map(|(name, ns)| row(name, params(), ns)).collect();
    rows.iter().for_each(|row| watch.row(row));
    rows
}

fn number(row: &Row, name: &str) -> f64 {
    row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap_or_default()
}

fn of<'a>(rows: &'a [Row], what: &'a str, threads: u64) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| {
        let is = |name, value: serde_json::Value| row.params.get(name) == Some(&value);
        is("what", what.into()) && is("threads_beside", threads.into())
    })
}

fn table(rows: &[Row], title: &str, what: &str) -> Table {
    let right = Align::Right;
    let columns = [("", Align::Left), ("alone, ns", right), ("beside two threads, ns", right), ("rounds", right)];
    let mut table = Table::new(title, &columns);
    for alone in of(rows, what, 0) {
        let beside = of(rows, what, 2).find(|row| row.variant == alone.variant);
        let text = |row: &Row| {
            let [median, lower, upper] = ["ns_median", "ns_lower", "ns_upper"].map(|name| number(row, name));
            format!("{median:.0} ({lower:.0} to {upper:.0})")
        };
        table.row([
            Text::from(alone.variant.clone()),
            Text::from(text(alone)),
            Text::from(beside.map_or_else(String::new, text)),
            Text::from(beside.map_or_else(String::new, |row| number(row, "rounds").to_string())),
        ]);
    }
    table.note("Median, and within which half of the rounds lie; rounds: in which the threads beside got on.");
    table
}

/// The results and the conclusions.
pub(super) fn findings(rows: &[Row]) -> Findings {
    let line = table(rows, "Reading dirty counters that lie on one line, in the groups of each form", "hot line");
    let lines: Vec<String> =
        of(rows, "hot line", 2).map(|row| format!("{} ({:.0} ns)", row.variant, number(row, "ns_median"))).collect();
    let says = vec![
        format!(
            "What S0 saved a kernel is the reading of a line that others write: {}. {}",
            lines.join(", "),
            paragraph(A_LINE)
        ),
        paragraph(NOT_SHOWN),
    ];
    let figures = vec![bars(rows, "Reading the dirty counters of one call", "hot line").into()];
    Findings { answer: answer(rows), tables: vec![line], figures, says, ..Findings::default() }
}

/// The cost of reading beside other threads, before the patch and after it.
fn answer(rows: &[Row]) -> String {
    let beside = |at: usize| of(rows, "hot line", 2).nth(at).map(|row| number(row, "ns_median"));
    match (beside(0), beside(1)) {
        (Some(before), Some(after)) => format!(
            "Beside two threads that write to the same line, reading the dirty counters of one call costs {before:.0} ns in the \
             groups of before the patch and {after:.0} ns in those after it."
        ),
        _ => "Nothing was measured.".to_owned(),
    }
}

fn bars(rows: &[Row], title: &str, what: &str) -> Bars {
    let bar = |row: &Row| {
        let [median, lower, upper] = ["ns_median", "ns_lower", "ns_upper"].map(|name| number(row, name) * 1e-9);
        Bar::new(median).within(lower, upper)
    };
    let bars = Bars::new(title, "time", Quantity::Time, ["alone", "beside two threads"])
        .note("Medians, and within which half of the rounds lie.");
    of(rows, what, 0).fold(bars, |bars, alone| {
        let beside = of(rows, what, 2).find(|row| row.variant == alone.variant);
        bars.group(alone.variant.as_str(), vec![Some(bar(alone)), beside.map(bar)])
    })
}

#[cfg(test)]
mod tests;
