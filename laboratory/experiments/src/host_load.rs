//! How busy this machine is with others, said of what is measured on it.
//!
//! Owns: asking, the sentence.
//! Does not own: what is measured.
//! Invariants: what is measured itself is not counted: it is asked before.

use std::fs;

/// How busy the machine was with others lately, if that is more than a tenth of a CPU; and its CPUs.
pub(crate) fn load() -> Option<(f64, usize)> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (load > 0.1).then_some((load, cpus))
}

/// What is said where others were at work.
pub(crate) fn busy(load: Option<(f64, usize)>) -> Option<String> {
    load.map(|(load, cpus)| {
        format!(
            "When this began the machine had other work: {load:.1} tasks on {cpus} CPUs in the minute before. Rates of \
             what is not throttled, and the longest calls, are worse for it."
        )
    })
}

#[cfg(test)]
mod tests;
