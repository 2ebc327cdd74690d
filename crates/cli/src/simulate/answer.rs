//! What a run comes to, in a sentence: when it was accepted, when on disk, who waited longest.
//!
//! Owns: which figures those are, and the words. Does not own: the figures (the simulator), their units (`report`).
//! Invariants: a run that was cut or that lost something says so first; what a run has not done is not said.

#[cfg(test)]
mod tests;

use std::time::Duration;

use workloads::simulation::{JobOutcome, OperationOutcome, Outcome as Figures};

use super::{Run, text};
use crate::units;

/// One run's, or each policy's on a line.
pub(super) fn answer(runs: &[Run]) -> String {
    match runs {
        [run] => capital(&of_run(&run.figures)),
        _ => runs.iter().map(|run| format!("{}: {}", run.policy, of_run(&run.figures))).collect::<Vec<_>>().join("\n"),
    }
}

/// `accepted after 65 s, on disk after 87 s; an fsync of desktop waited 5.20 s at worst.`
fn of_run(figures: &Figures) -> String {
    let mut parts = vec![moved(figures)];
    let [written, read] = [written_bytes(figures), read_bytes(figures)];
    if written > 0 && read > 0 {
        parts.push(format!("{} read", units::data(read)));
    }
    parts.extend(longest(figures));
    let failed: u64 = figures.jobs.iter().flat_map(|job| job.errors.iter().map(|(_, count)| count)).sum();
    if failed > 0 {
        parts.push(format!("{} call{} failed", units::count(failed), if failed == 1 { "" } else { "s" }));
    }
    let wrong = text::ending(figures);
    let wrong =
        wrong.lines().next().map_or_else(String::new, |line| format!(" {}.", line.trim().trim_end_matches('.')));
    format!("{}.{wrong}", parts.join("; "))
}

fn written_bytes(figures: &Figures) -> u64 {
    figures.jobs.iter().map(|job| job.write.bytes).sum()
}

fn read_bytes(figures: &Figures) -> u64 {
    figures.jobs.iter().map(|job| job.read.bytes).sum()
}

/// What was written and when it was where, or what was read and how fast.
fn moved(figures: &Figures) -> String {
    let time = |ns| units::time(Duration::from_nanos(ns));
    let ended_ns = figures.jobs.iter().map(|job| job.elapsed_ns).max().unwrap_or(0);
    let whole = figures.loss.is_none() && figures.unwritten.is_empty() && !figures.cut;
    match (written_bytes(figures), read_bytes(figures)) {
        (0, 0) => format!("nothing was read or written in {}", time(figures.virtual_ns)),
        (0, read) => format!(
            "{} read in {}, {}",
            units::data(read),
            time(ended_ns),
            units::rate(read, Duration::from_nanos(ended_ns))
        ),
        (written, _) if whole => {
            let (accepted_ns, written) = (figures.virtual_ns.saturating_sub(figures.settle_ns), units::data(written));
            match (time(accepted_ns), time(figures.virtual_ns)) {
                (accepted, on_disk) if accepted != on_disk => {
                    format!("{written} accepted after {accepted}, on disk after {on_disk}")
                }
                // Two times that read the same would not say how long it took.
                (both, _) if figures.settle_ns == 0 => format!("{written} accepted and on disk after {both}"),
                (both, _) => {
                    format!("{written} accepted after {both}, on disk {} later", units::latency(figures.settle_ns))
                }
            }
        }
        (written, _) => format!("{} accepted in {}", units::data(written), time(figures.virtual_ns)),
    }
}

/// Who waited longest for a sync; where nobody syncs, for a write or a read.
fn longest(figures: &Figures) -> Option<String> {
    type Call = (&'static str, fn(&JobOutcome) -> &OperationOutcome);
    const CALLS: [Call; 4] = [
        ("an fsync", |job| &job.sync),
        ("the fsync at the end", |job| &job.closing_sync),
        ("a write", |job| &job.write),
        ("a read", |job| &job.read),
    ];
    let of = |(word, call): Call| {
        let jobs = figures.jobs.iter().filter(|job| call(job).ops > 0);
        let slowest = jobs.max_by_key(|job| call(job).latency.max_ns)?;
        let ns = call(slowest).latency.max_ns;
        Some(format!("{word} of {} waited {} at worst", slowest.name, units::latency(ns)))
    };
    CALLS.into_iter().find_map(of)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
