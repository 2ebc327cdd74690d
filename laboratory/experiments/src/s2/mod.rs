//! Experiment s2: a page allocator whose fast path searches nothing, and its drain.
//!
//! Owns: the options, the order of the parts.
//! Does not own: the list of allocators (`variants`), the number of repetitions (`statistics`).
//! Invariants: every variant runs the same loops over the same memory, compiled from one source. A gain is against the
//! single list, and there is none if the intervals overlap. Afflux hands out single frames, so it takes part where a
//! loop requests nothing larger.
//!
//! The parts: `drains` (exact counts), `lines` (cache lines of two CPUs), `loops` (CPU time, by S2's statistics),
//! `instructions` (callgrind), `published` (S2's figures), `findings` (tables and charts).

mod drains;
mod findings;
mod instructions;
mod lines;
mod loops;
mod published;
#[cfg(test)]
mod tests;
mod variants;

use afflux_report::{Fields, Row};
use clap::{Args, ValueEnum};

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::machine::measured_row;
use crate::options::{List, list, named, number};
use crate::statistics::{Repetition, compare};
use drains::Contents;
use loops::{Load, LoopKind, Memory};
use variants::{Measured, VARIANTS, variants_of};

/// The options of a run.
#[derive(Args)]
struct RunOptions {
    /// Drain lists of these contents, and nothing else [the published ones, and the loops]
    #[arg(long, value_name = "U/R/M,...", value_parser = list(Contents::read))]
    contents: Option<List<Contents>>,
    /// How many frames a drain takes
    #[arg(long, value_name = "N,...", default_value = "31", value_parser = list(frames))]
    drain: List<u32>,
    /// page_test, brk_test, netperf, hackbench, kernbench, all or none
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = list(LoopKind::named))]
    loops: List<Vec<LoopKind>>,
    /// Threads, 1 or 2
    #[arg(long, value_name = "LIST", default_value = "1,2", value_parser = list(threads))]
    threads: List<usize>,
    /// Count them with callgrind where valgrind is installed; auto: not with --quick
    #[arg(long, value_name = "auto|on|off", default_value = "auto", value_parser = named::<Counting>)]
    instructions: Counting,
    /// Run a loop N times and say nothing: callgrind looks at this
    #[arg(long, value_name = "LOOP:VARIANT:N", value_parser = instructions::read_load)]
    count: Option<(Load, usize)>,
}

fn frames(text: &str) -> Result<u32, String> {
    number(1..=drains::FRAMES_MAX as u64)(text).map(|frames| frames as u32)
}

fn threads(text: &str) -> Result<usize, String> {
    number(1..=2)(text).map(|threads| threads as usize)
}

/// When instructions are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Counting {
    Auto,
    On,
    Off,
}

/// The experiment.
pub(crate) static S2: Experiment = Experiment {
    name: "s2",
    about: "A page allocator whose fast path searches nothing, and its drain",
    labels: findings::LABELS,
    thread: "Thread: '[RFC PATCH 0/3] Reduce searching in the page allocator fast-path', Mel Gorman, linux-mm, 18 August 2009",
    words: include_str!("words.md"),
    options: RunOptions::augment_args,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let asked: RunOptions = request.read()?;
    if let Some((load, variant)) = asked.count {
        (VARIANTS[variant].run)(&load, &Memory::new()).map_err(LabError::Failed)?;
        return Ok(Findings::default());
    }
    let works = if asked.contents.is_some() && !request.gives("loops") { Vec::new() } else { asked.loops.concat() };
    let before = findings::machine();
    drains::run(asked.contents.as_deref(), &asked.drain, watch);
    if asked.contents.is_none() {
        lines::run(watch);
    }
    let counts = asked.instructions == Counting::On || asked.instructions == Counting::Auto && !request.quick;
    let mut counter =
        if counts && !works.is_empty() { instructions::Counter::found() } else { instructions::Counter::off() };
    let memory = Memory::new();
    let repetition = if request.quick { Repetition::QUICK } else { Repetition::PUBLISHED };
    let all = works.len() * asked.threads.len();
    let mut measured = 0;
    for work in &works {
        for threads in &asked.threads {
            let done = f64::from(measured) / all as f64;
            watch.step(&format!("{}, {threads} at once", work.name()), done);
            let load = Load { work: *work, threads: *threads, operations: work.operations(request.quick), timed: true };
            let one = measure(load, repetition, &memory, &mut counter)?;
            (0..one.estimates.len()).for_each(|variant| watch.row(&row(&one, variant)));
            measured += 1;
        }
    }
    Ok(findings::findings(&watch.rows, before, counter.said()))
}

fn measure(
    load: Load,
    repetition: Repetition,
    memory: &Memory,
    counter: &mut instructions::Counter,
) -> Result<Measured, LabError> {
    let mut failure = None;
    let variants = variants_of(load.work);
    let compared = compare(variants.len(), repetition, |variant| {
        (variants[variant].run)(&load, memory).unwrap_or_else(|why| {
            failure = Some(format!("{} with {}: {why}", load.work.name(), variants[variant].name));
            0.0
        })
    });
    if let Some(why) = failure {
        return Err(LabError::Failed(why));
    }
    let instructions = if load.threads == 1 {
        variants.iter().map(|variant| counter.per_operation(load.work, variant.name)).collect()
    } else {
        vec![None; variants.len()]
    };
    let estimates = compared.variants.iter().map(|samples| samples.estimate()).collect();
    Ok(Measured { work: load.work, threads: load.threads, estimates, instructions })
}

fn row(measured: &Measured, variant: usize) -> Row {
    let estimate = &measured.estimates[variant];
    let name = VARIANTS[variant].name;
    let mut params = Fields::new().with("loop", measured.work.loop_name());
    if let LoopKind::Netperf { kib } = measured.work {
        params.push("buffer_bytes", kib * 1024);
    }
    let mut metrics = Fields::new()
        .with("cpu_ns", estimate.mean)
        .with("cpu_ns_99_half_width", estimate.half_width)
        .with("samples", estimate.samples)
        .with("within_1_percent", estimate.is_within(0.01));
    if let Some(instructions) = measured.instructions[variant] {
        metrics.push("instructions", instructions);
    }
    if variant > 0 {
        metrics.push("gain_percent", measured.gain_percent(variant));
        metrics.push("significant", measured.gain_percent(variant).is_some());
    }
    measured_row("s2", name, params.with("threads", measured.threads), metrics, published::fields(measured.work, name))
}
