//! Figures printed in seed S0: the table of write speeds, and one typical run under perf stat.
//!
//! Owns: the figures. Does not own: our figures.
//! Invariants: as printed (800 MB: the printed difference is 14.275, the columns' is 14.125).

/// One size of the table: MiB, then mean and standard deviation in MiB/s of 2.6.31-rc3 and patched.
pub(super) type Line = (u64, [f64; 2], [f64; 2]);

pub(super) static SPEEDS: [Line; 6] = [
    (400, [374.75, 8.15], [382.575, 8.24]),
    (500, [363.625, 10.91], [378.375, 10.86]),
    (600, [308.875, 10.86], [374.25, 7.91]),
    (700, [188.0, 4.75], [209.0, 7.23]),
    (800, [140.375, 2.56], [154.5, 2.98]),
    (900, [124.875, 0.99], [125.5, 9.62]),
];

/// The percentage by which the patch was faster at this size.
pub(super) fn gain(line: &Line) -> f64 {
    (line.2[0] / line.1[0] - 1.0) * 100.0
}

/// Ten runs of each, without the fastest and the slowest.
const RUNS: f64 = 8.0;

/// How many standard errors the published difference at this size is.
pub(super) fn standard_errors(size_mib: u64) -> Option<f64> {
    let (_, [base, base_sd], [patched, patched_sd]) = SPEEDS.iter().find(|line| line.0 == size_mib)?;
    Some((patched - base) / ((base_sd.powi(2) + patched_sd.powi(2)) / RUNS).sqrt())
}

/// A line of perf stat: label, 2.6.31-rc4, patched, and its relation to the simulation.
pub(super) const PERF: [(&str, f64, f64, &str); 10] = [
    ("task-clock ms", 2387.447419, 2116.794967, "not modelled: a page costs the same in all variants"),
    ("CPUs used", 0.480, 0.648, "follows from the two times"),
    ("context switches", 498.0, 383.0, "not modelled; how often our writer waits is in the second table of changes"),
    ("CPU migrations", 1.0, 1.0, "nothing"),
    ("page faults", 155_070.0, 155_048.0, "606 MiB of pages: the run was that of 600 MB"),
    ("cycles", 4_703_977_113.0, 4_792_565_245.0, "not modelled; they rise while the time falls: less waiting"),
    ("instructions", 971_788_179.0, 967_653_864.0, "not modelled"),
    ("cache references", 509_718_907.0, 473_096_290.0, "36.6 million fewer; of shared counters 5 fewer a call"),
    ("cache misses", 8_928_883.0, 8_723_087.0, "not modelled"),
    ("seconds elapsed", 4.971956711, 3.269128919, "start and end included; ours is the storing alone"),
];
