//! Records the durations of a job's operations while it runs.
//!
//! Owns: histograms, sums, first and last instants.
//! Does not own: the definition of an operation.
//! Invariants: percentiles are within a thousandth of the truth; the smallest, the largest and the mean are
//! exact.

use std::sync::{Arc, Mutex};

use hdrhistogram::Histogram;

use crate::job::Logs;
use crate::locking::lock;
use crate::offsets::DIRECTIONS;
use crate::outcome::{CallWaits, JobOutcome, LatencyOutcome, LoggedCall, OperationOutcome, SlowestCall};
use crate::sequence::{Block, Direction};

/// The percentiles in reports.
const PERCENTILES: [f64; 9] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// The longest time that is distinguished from longer ones: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Operations of one kind.
#[derive(Default)]
pub(crate) struct Operations {
    /// Created at the first operation, since it is large.
    histogram: Option<Histogram<u64>>,
    bytes: u64,
    ops: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    first_ns: u64,
    last_ns: u64,
    slowest: Option<SlowestCall>,
}

impl Operations {
    /// Records an operation of `bytes` with its start and end. True if none has taken longer.
    #[inline]
    pub(crate) fn record(&mut self, began_ns: u64, ended_ns: u64, bytes: u64) -> bool {
        let took_ns = ended_ns - began_ns;
        let is_slowest = self.ops == 0 || took_ns > self.max_ns;
        if self.ops == 0 {
            (self.first_ns, self.min_ns) = (began_ns, took_ns);
            self.histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(took_ns);
        }
        self.bytes += bytes;
        self.ops += 1;
        self.sum_ns += u128::from(took_ns);
        self.min_ns = self.min_ns.min(took_ns);
        self.max_ns = self.max_ns.max(took_ns);
        self.first_ns = self.first_ns.min(began_ns);
        self.last_ns = self.last_ns.max(ended_ns);
        is_slowest
    }

    /// Records the causes of the slowest operation's wait.
    pub(crate) fn explain(&mut self, began_ns: u64, ended_ns: u64, waits: CallWaits) {
        self.slowest = Some(SlowestCall { at_ns: began_ns, took_ns: ended_ns - began_ns, waits });
    }

    /// Adds the operations of another.
    fn add(&mut self, other: &Self) {
        if other.ops == 0 {
            return;
        }
        let is_first = self.ops == 0;
        match (&mut self.histogram, &other.histogram) {
            // Both have the same bounds, so that nothing is refused.
            (Some(own), Some(other)) => own.add(other).unwrap_or_default(),
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
        if is_first || other.max_ns > self.max_ns {
            self.slowest = other.slowest;
        }
        self.bytes += other.bytes;
        self.ops += other.ops;
        self.sum_ns += other.sum_ns;
        self.min_ns = if is_first { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.first_ns = if is_first { other.first_ns } else { self.first_ns.min(other.first_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    fn outcome(&self, percentiles: &[f64]) -> OperationOutcome {
        let at = |percentile: f64| {
            let value = self.histogram.as_ref().map_or(0, |histogram| histogram.value_at_percentile(percentile));
            (percentile, value.clamp(self.min_ns, self.max_ns))
        };
        let percentiles_ns = if self.ops == 0 { Vec::new() } else { percentiles.iter().copied().map(at).collect() };
        OperationOutcome {
            bytes: self.bytes,
            ops: self.ops,
            elapsed_ns: self.last_ns - self.first_ns,
            latency: LatencyOutcome {
                min_ns: self.min_ns,
                mean_ns: self.sum_ns.checked_div(u128::from(self.ops)).unwrap_or(0) as u64,
                max_ns: self.max_ns,
                percentiles_ns,
            },
            slowest: self.slowest,
        }
    }
}

/// One line of the report, during the run.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) name: String,
    pub(crate) device: String,
    pub(crate) clones: u64,
    /// Reads, writes and trims.
    pub(crate) moves: [Operations; DIRECTIONS],
    pub(crate) syncs: Operations,
    pub(crate) closing_syncs: Operations,
    errors: Vec<(String, u64)>,
    percentiles: Vec<f64>,
}

impl Recorder {
    /// A line for jobs of this name with files on this device.
    pub(crate) fn new(name: &str, device: String, percentiles: &[f64]) -> Self {
        let mut percentiles = if percentiles.is_empty() { PERCENTILES.to_vec() } else { percentiles.to_vec() };
        percentiles.sort_by(f64::total_cmp);
        Self { name: name.to_owned(), device, percentiles, ..Self::default() }
    }

    /// Records a failed operation.
    pub(crate) fn error(&mut self, what: String) {
        match self.errors.iter_mut().find(|error| error.0 == what) {
            Some(error) => error.1 += 1,
            None => self.errors.push((what, 1)),
        }
    }

    /// Adds the clones of another line.
    fn add(&mut self, other: &Self) {
        self.clones += other.clones;
        self.moves.iter_mut().zip(&other.moves).for_each(|(own, other)| own.add(other));
        self.syncs.add(&other.syncs);
        self.closing_syncs.add(&other.closing_syncs);
        for (what, count) in &other.errors {
            match self.errors.iter_mut().find(|error| error.0 == *what) {
                Some(error) => error.1 += count,
                None => self.errors.push((what.clone(), *count)),
            }
        }
    }

    pub(crate) fn outcome(&self) -> JobOutcome {
        let [reads, writes, trims] = &self.moves;
        let all = [reads, writes, trims, &self.syncs, &self.closing_syncs];
        let used = || all.iter().filter(|operations| operations.ops > 0);
        let first = used().map(|operations| operations.first_ns).min().unwrap_or(0);
        let last = used().map(|operations| operations.last_ns).max().unwrap_or(0);
        JobOutcome {
            name: self.name.clone(),
            device: self.device.clone(),
            clones: self.clones,
            elapsed_ns: last - first,
            ended_ns: last,
            read: reads.outcome(&self.percentiles),
            write: writes.outcome(&self.percentiles),
            trim: trims.outcome(&self.percentiles),
            sync: self.syncs.outcome(&self.percentiles),
            closing_sync: self.closing_syncs.outcome(&self.percentiles),
            errors: self.errors.clone(),
        }
    }
}

/// Neighbours of the same name and disk, which are clones of one job, as one line each. The first `apart` rows have no
/// clones. Empty if no row has.
pub(crate) fn grouped(rows: &[&Arc<Mutex<Recorder>>], apart: usize) -> Vec<JobOutcome> {
    let mut groups: Vec<Recorder> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let row = lock(row);
        let is_clone = |last: &&mut Recorder| at > apart && last.name == row.name && last.device == row.device;
        match groups.last_mut().filter(is_clone) {
            Some(last) => last.add(&row),
            None => {
                let mut group = Recorder::new(&row.name, row.device.clone(), &row.percentiles);
                group.add(&row);
                groups.push(group);
            }
        }
    }
    if groups.len() == rows.len() { Vec::new() } else { groups.iter().map(Recorder::outcome).collect() }
}

/// Most calls in a job's log, which take 64 million bytes.
const LOGGED_MAX: usize = 1 << 21;

/// A clone's calls, one by one.
pub(crate) struct CallLog {
    /// The clone's number among all, from 1.
    pub(crate) number: u64,
    pub(crate) logs: Logs,
    pub(crate) calls: Vec<LoggedCall>,
    /// Calls that did not fit.
    pub(crate) left_out: u64,
}

impl CallLog {
    pub(crate) fn new(number: u64, logs: &Logs) -> Self {
        Self { number, logs: logs.clone(), calls: Vec::new(), left_out: 0 }
    }

    pub(crate) fn add(&mut self, at_ns: u64, took_ns: u64, direction: Direction, block: Block) {
        if self.calls.len() == LOGGED_MAX {
            self.left_out += 1;
            return;
        }
        let direction = direction as u8;
        self.calls.push(LoggedCall { at_ns, took_ns, bytes: block.len, offset: block.offset, direction });
    }
}

#[cfg(test)]
mod tests;
