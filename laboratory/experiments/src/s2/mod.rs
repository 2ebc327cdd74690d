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

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::machine::measured_row;
use crate::options::{named, options, values};
use crate::statistics::{Repetition, compare};
use drains::Contents;
use instructions::COUNT_OPTION;
use loops::{Load, LoopKind, Memory};
use variants::{Measured, VARIANTS, variants_of};

options! {
    OPTIONS {
        /// Drain lists of these contents, and nothing else [the published ones, and the loops]
        CONTENTS: Contents = parsed("contents", "U/R/M,...", "", Contents::read);
        /// How many frames a drain takes
        DRAIN: u64 = number("drain", "N,...", "31", 1..=drains::FRAMES_MAX as u64);
        /// page_test, brk_test, netperf, hackbench, kernbench, all or none
        LOOPS: Vec<LoopKind> = parsed("loops", "LIST", "all", LoopKind::named);
        /// Threads, 1 or 2
        THREADS: u64 = number("threads", "LIST", "1,2", 1..=2);
        /// Count them with callgrind where valgrind is installed; auto: not with --quick
        INSTRUCTIONS: Counting = choice("instructions", "auto|on|off", "auto");
        /// Run a loop N times and say nothing: callgrind looks at this
        COUNT: (Load, usize) = parsed(COUNT_OPTION, "LOOP:VARIANT:N", "", instructions::read_load);
    }
}

named! {
    /// When instructions are counted.
    enum Counting {
        Auto = "auto",
        On = "on",
        Off = "off",
    }
}

/// The experiment.
pub(crate) static S2: Experiment = Experiment {
    name: "s2",
    about: "A page allocator whose fast path searches nothing, and its drain",
    labels: findings::LABELS,
    thread: "Thread: '[RFC PATCH 0/3] Reduce searching in the page allocator fast-path', Mel Gorman, linux-mm, 18 August 2009",
    words: include_str!("words.md"),
    options: OPTIONS,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let asked = RunOptions::read(request)?;
    if let Some((load, variant)) = COUNT.value_if_given(request)? {
        (VARIANTS[variant].run)(&load, &Memory::new()).map_err(LabError::Failed)?;
        return Ok(Findings::default());
    }
    let before = findings::machine();
    drains::run(asked.contents.as_deref(), &asked.drain, watch);
    if asked.contents.is_none() {
        lines::run(watch);
    }
    let counts = asked.counting == Counting::On || asked.counting == Counting::Auto && !request.quick;
    let mut counter =
        if counts && !asked.works.is_empty() { instructions::Counter::found() } else { instructions::Counter::off() };
    let memory = Memory::new();
    let repetition = if request.quick { Repetition::QUICK } else { Repetition::PUBLISHED };
    let all = asked.works.len() * asked.threads.len();
    let mut measured = 0;
    for work in &asked.works {
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

values! {
    /// The options of a run.
    struct RunOptions = read(request) {
        contents: Option<Vec<Contents>> = CONTENTS.list_if_given(request)?,
        drain: Vec<u32> = DRAIN.list(request)?.into_iter().map(|frames| frames as u32).collect(),
        works: Vec<LoopKind> =
            if contents.is_some() && !request.gives(&LOOPS.info) { Vec::new() } else { LOOPS.list(request)?.concat() },
        threads: Vec<usize> = THREADS.list(request)?.into_iter().map(|threads| threads as usize).collect(),
        counting: Counting = INSTRUCTIONS.value(request)?,
    }
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
