//! A run in a sentence: when its data was accepted and on disk, the slowest call and the cause of its wait. Two runs
//! also get a verdict.
//!
//! Owns: the choice of figures, and the words.
//! Does not own: the figures (the simulator), their units (`report`).
//! Invariants: a run that was cut or that lost data says so first; the sentence claims nothing that a run has not done.
//! The median stands beside every longest wait.

#[cfg(test)]
mod tests;

use std::time::Duration;

use afflux_workloads::simulation::{
    JobOutcome, OWN_POLICY, OperationOutcome, Outcome as Figures, SlowestCall, WaitCause,
};

use super::ended_run::Run;
use super::ending::ending;
use afflux_report::units;

/// Two figures closer together than this, in percent, are the same.
const SAME_PERCENT: f64 = 5.0;

/// Most jobs whose end is mentioned.
const ENDS_MAX: usize = 4;

/// The answer of one run, or a line for each policy, below the verdict if there are two.
pub(super) fn answer(runs: &[Run]) -> String {
    if let [run] = runs {
        return capital(&of_run(run));
    }
    let lines = runs.iter().map(|run| format!("{}: {}", run.policy, of_run(run)));
    verdict(runs).into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// `afflux against linux-6.1: worst fsync of desktop 8.7 times shorter, median 6 times longer; all on disk 1.2 times
/// later.` Our own policy is compared with the other, else the second with the first. None for a run that was cut or
/// lost data.
fn verdict(runs: &[Run]) -> Option<String> {
    let [one, two] = runs else { return None };
    let (ours, other) = if one.policy == OWN_POLICY { (one, two) } else { (two, one) };
    let whole = |run: &Run| run.figures.loss.is_none() && run.figures.unwritten.is_empty() && !run.figures.cut;
    if !whole(ours) || !whole(other) {
        return None;
    }
    let waits = CALLS.into_iter().find_map(|(word, call)| {
        let pairs = ours.figures.by_job().iter().zip(other.figures.by_job());
        let both = pairs.filter(|(one, other)| call(one).ops > 0 && call(other).ops > 0);
        let (job, theirs) = both.max_by_key(|(_, other)| call(other).latency.max_ns)?;
        let (own, its) = (call(job), call(theirs));
        let worst = compared(own.latency.max_ns, its.latency.max_ns, ["shorter", "longer"]);
        let median = median_ns(own).zip(median_ns(its)).filter(|_| own.ops > 1 && its.ops > 1);
        let median = median.map(|(own, its)| format!(", median {}", compared(own, its, ["shorter", "longer"])));
        let word = word.split_once(' ').map_or(word, |(_, word)| word);
        Some(format!("worst {word} of {} {worst}{}", job.name, median.unwrap_or_default()))
    });
    let on_disk = compared(ours.figures.virtual_ns, other.figures.virtual_ns, ["earlier", "later"]);
    let parts: Vec<String> = waits.into_iter().chain([format!("all on disk {on_disk}")]).collect();
    Some(format!("{} against {}: {}.", ours.policy, other.policy, parts.join("; ")))
}

/// `8.7 times shorter`, or that both are about the same.
fn compared(own: u64, other: u64, words: [&str; 2]) -> String {
    let ratio = own.max(1) as f64 / other.max(1) as f64;
    let (times, word) = if ratio < 1.0 { (1.0 / ratio, words[0]) } else { (ratio, words[1]) };
    if (times - 1.0) * 100.0 < SAME_PERCENT {
        return "about the same".to_owned();
    }
    let times = if times < 9.95 { format!("{times:.1}") } else { units::count(times.round() as u64) };
    format!("{} times {word}", times.trim_end_matches(".0"))
}

/// `2.15 GB accepted after 35 s, on disk after 47 s; backup ended after 20 s, desktop after 35 s; an fsync of desktop
/// waited 33.5 ms in the median and 5.20 s at worst, 4.70 s of that in the elevator, which let later requests go first`
fn of_run(run: &Run) -> String {
    let figures = &run.figures;
    let mut parts = vec![moved(figures)];
    parts.extend(ends(figures));
    let [written, read] = [written_bytes(figures), read_bytes(figures)];
    if written > 0 && read > 0 {
        parts.push(format!("{} read", units::data(read)));
    }
    parts.extend(longest(run));
    let failed: u64 = figures.by_job().iter().flat_map(|job| job.errors.iter().map(|(_, count)| count)).sum();
    if failed > 0 {
        parts.push(format!("{} call{} failed", units::count(failed), if failed == 1 { "" } else { "s" }));
    }
    let wrong = ending(figures);
    let wrong =
        wrong.lines().next().map_or_else(String::new, |line| format!(" {}.", line.trim().trim_end_matches('.')));
    format!("{}.{wrong}", parts.join("; "))
}

fn written_bytes(figures: &Figures) -> u64 {
    figures.by_job().iter().map(|job| job.write.bytes).sum()
}

fn read_bytes(figures: &Figures) -> u64 {
    figures.by_job().iter().map(|job| job.read.bytes).sum()
}

/// Bytes written, and when they were accepted and on disk; or bytes read, and the rate.
fn moved(figures: &Figures) -> String {
    let time = |ns| units::time(Duration::from_nanos(ns));
    let ended_ns = figures.by_job().iter().map(|job| job.elapsed_ns).max().unwrap_or(0);
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
                // Two times that read the same would hide how long it took.
                (both, _) if figures.settle_ns == 0 => format!("{written} accepted and on disk after {both}"),
                (both, _) => {
                    format!("{written} accepted after {both}, on disk {} later", units::latency(figures.settle_ns))
                }
            }
        }
        (written, _) => format!("{} accepted in {}", units::data(written), time(figures.virtual_ns)),
    }
}

/// When each job that wrote ended, if they did not end together.
fn ends(figures: &Figures) -> Option<String> {
    let time = |ns| units::time(Duration::from_nanos(ns));
    let writers = || figures.by_job().iter().filter(|job| job.write.bytes > 0);
    let differ = writers().any(|job| writers().any(|other| time(job.ended_ns) != time(other.ended_ns)));
    let parts = writers().take(ENDS_MAX).map(|job| format!("{} after {}", job.name, time(job.ended_ns)));
    let parts = parts.collect::<Vec<_>>().join(", ").replacen(" after ", " ended after ", 1);
    let more = writers().count().saturating_sub(ENDS_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    differ.then(|| format!("{parts}{more}"))
}

/// A kind of call: its words, and where its figures are.
type Call = (&'static str, fn(&JobOutcome) -> &OperationOutcome);

/// The kinds of calls, the most telling first.
const CALLS: [Call; 4] = [
    ("an fsync", |job| &job.sync),
    ("the fsync at the end", |job| &job.closing_sync),
    ("a write", |job| &job.write),
    ("a read", |job| &job.read),
];

/// The longest sync; if no job syncs, the longest write or read.
fn longest(run: &Run) -> Option<String> {
    let of = |(word, call): Call| {
        let jobs = run.figures.by_job().iter().enumerate().filter(|(_, job)| call(job).ops > 0);
        let (at, slowest) = jobs.max_by_key(|(_, job)| call(job).latency.max_ns)?;
        let operation = call(slowest);
        let worst = units::latency(operation.latency.max_ns);
        // A single call has no median.
        let median = if operation.ops > 1 { median_ns(operation) } else { None };
        let waited = match median {
            Some(median) => format!("{} in the median and {worst} at worst", units::latency(median)),
            None => worst,
        };
        let because = operation.slowest.as_ref().map_or_else(String::new, |slowest| because(slowest, word));
        let same: Vec<&OperationOutcome> =
            run.all().filter_map(|figures| figures.by_job().get(at)).map(call).filter(|other| other.ops > 0).collect();
        let ranges = if run.shifted.is_empty() { String::new() } else { ranges(&same) };
        Some(format!("{word} of {} waited {waited}{because}{ranges}", slowest.name))
    };
    CALLS.into_iter().find_map(of)
}

fn median_ns(operation: &OperationOutcome) -> Option<u64> {
    operation.latency.percentiles_ns.iter().find(|(percentile, _)| *percentile == 50.0).map(|(_, ns)| *ns)
}

/// The largest cause of the slowest call's wait.
fn because(slowest: &SlowestCall, word: &str) -> String {
    let (cause, ns) = slowest.cause();
    let what = match cause {
        WaitCause::Pause => "paused at the dirty limit",
        WaitCause::Elevator => "in the elevator, which let later requests go first",
        WaitCause::Queue => "in the disk's queue behind earlier requests",
        WaitCause::Disk => "for the disk's work on it",
        WaitCause::Backlog if word.contains("fsync") => "in the backlog: the cache wrote other data first",
        WaitCause::Backlog => "in the cache",
    };
    if ns == 0 { String::new() } else { format!(", {} of that {what}", units::latency(ns)) }
}

/// The ranges of the median and the worst over all runs.
fn ranges(operations: &[&OperationOutcome]) -> String {
    let range = |ns: &mut dyn Iterator<Item = u64>| {
        let all: Vec<u64> = ns.collect();
        let of = |ns: Option<&u64>| units::latency(ns.copied().unwrap_or(0));
        format!("{} to {}", of(all.iter().min()), of(all.iter().max()))
    };
    let worst = range(&mut operations.iter().map(|operation| operation.latency.max_ns));
    let median = range(&mut operations.iter().filter_map(|operation| median_ns(operation)));
    format!(" (over {} runs with shifted starts {median} in the median, {worst} at worst)", operations.len())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
