//! The load of this machine by other programs, and a sentence about it for measured results.
//!
//! Owns: reading the load, and the sentence. Does not own: the measurement.
//! Invariants: the load is read before a measurement, so that the measurement itself does not count.

use std::fs;

/// The recent load by other programs, if it is more than a tenth of a CPU; and the number of CPUs.
pub(crate) fn load() -> Option<(f64, usize)> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (load > 0.1).then_some((load, cpus))
}

/// A sentence for measurements on a busy machine.
pub(crate) fn busy(load: Option<(f64, usize)>) -> Option<String> {
    load.map(|(load, cpus)| {
        format!(
            "When this began the machine had other work: {load:.1} tasks on {cpus} CPUs in the minute before. Rates \
             without a throttle, and the longest calls, are worse for it."
        )
    })
}

#[cfg(test)]
mod tests;
