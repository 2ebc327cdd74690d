//! The four loads by which the kernel's RWF_DONTCACHE was judged in 2026: one writer, four, 32 files, and two classes
//! of writers that compete. They run through the engine, and for comparison through each method of this kernel.
//!
//! Published: the posts' figures before and after the change by which the writer no longer flushes its own pages. They
//! are from another machine and have a table of their own. Nothing is chosen to match, and nothing is predicted.
//!
//! Owns: the order of runs, the rows.
//! Does not own: the options (`plan`), a run (`load`), tables and charts (`findings`), the published figures
//! (`published`).
//! Invariants: in each repeat all contenders run one after the other on every medium; every run writes new files, and
//! its time includes their sync.

mod findings;
mod load;
mod plan;
mod published;

use std::path::Path;

use afflux_report::{Fields, Row};
use clap::Args;

use crate::contenders::{KernelMethod, Stage, announce, ordered_runs};
use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::hardware::MemoryDisk;
use crate::host;
use crate::machine::measured_row;
use crate::options::Named;
use load::Ran;
use plan::{Class, FileMedium, Load, Method, Plan};

/// The experiment.
pub(crate) static CLASSES: Experiment = Experiment {
    name: "classes",
    about: "Four loads of writers: the engine beside buffered, RWF_DONTCACHE and O_DIRECT of this kernel",
    labels: findings::LABELS,
    thread: "Thread: the series in which RWF_DONTCACHE has the flusher write, Jeff Layton, linux-fsdevel, version 6 of May 2026",
    words: include_str!("words.md"),
    options: Plan::augment_args,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let mut plan = Plan::read(request)?;
    let mut left_out = Vec::new();
    let media = media(&mut plan, &mut left_out)?;
    let mut methods = Vec::new();
    for medium in &plan.media {
        let (has, has_not) = methods_of(&plan, media.directory(*medium));
        left_out.extend(has_not.into_iter().map(|what| format!("{}: {what}", medium.name())));
        methods.push((*medium, has));
    }
    announce(watch, &left_out, plan.expected_s(), plan.run.repeats);
    let host_load = host::load();
    let races: Vec<_> =
        methods.iter().flat_map(|methods| plan.loads.iter().map(move |load| (methods, *load))).collect();
    let ordered_runs = ordered_runs(plan.run.repeats, &races, |((_, methods), load), _| load.classes(methods));
    for (at, (repeat, ((medium, _), load), classes)) in ordered_runs.iter().enumerate() {
        let what = format!("{}, {}, {}", medium.name(), load.name(), named(&plan, classes));
        let what = format!("{what}, {repeat} of {}", plan.run.repeats);
        watch.step(&what, at as f64 / ordered_runs.len() as f64);
        let ran = load::run(&plan, *load, classes, media.directory(*medium), &media.stage);
        let ran = ran.map_err(|why| LabError::Failed(format!("{what}: {why}")))?;
        watch.row(&row(&plan, *medium, *load, classes, *repeat, &ran));
    }
    drop(media);
    Ok(findings::findings(&plan, std::mem::take(&mut watch.rows), host_load))
}

/// The directories of the runs. Fields are dropped in this order: the mount is inside the directory.
struct Media {
    memory: Option<MemoryDisk>,
    stage: Stage,
}

impl Media {
    fn directory(&self, medium: FileMedium) -> &Path {
        match (&self.memory, medium) {
            (Some(disk), FileMedium::Memory) => disk.path(),
            _ => self.stage.path(),
        }
    }
}

/// Sets up the media of the plan. Removes an unavailable medium from the plan, and reports the reason.
fn media(plan: &mut Plan, left_out: &mut Vec<String>) -> Result<Media, LabError> {
    let stage = Stage::new(&plan.directory, "classes").map_err(LabError::Failed)?;
    let mut media = Media { memory: None, stage };
    if plan.media.contains(&FileMedium::Memory) {
        match MemoryDisk::new(media.stage.path(), plan.memory_disk_bytes()) {
            Ok(disk) => media.memory = Some(disk),
            Err(error) => {
                left_out.push(format!(
                    "{} was left out: it needs root and a loop device: {error}.",
                    FileMedium::Memory.name()
                ));
                plan.media.retain(|medium| *medium != FileMedium::Memory);
            }
        }
    }
    if plan.media.is_empty() {
        return Err(LabError::Failed(format!("nothing can be run here. {}", left_out.join(" "))));
    }
    Ok(media)
}

/// The methods that a directory's file system supports, and the reasons against the others.
fn methods_of(plan: &Plan, directory: &Path) -> (Vec<Method>, Vec<String>) {
    let (mut has, mut has_not) = (Vec::new(), Vec::new());
    for method in [KernelMethod::Buffered, KernelMethod::DontCache, KernelMethod::Direct] {
        match method.missing(directory) {
            None => has.push(Method::Kernel(method)),
            Some(why) => has_not.push(format!("{} was left out: {why}.", plan.method_name(Method::Kernel(method)))),
        }
    }
    has.extend((0..plan.engines.len()).map(Method::Ours));
    (has, has_not)
}

/// The label of a run's classes.
fn named(plan: &Plan, classes: &[Class]) -> String {
    classes.iter().map(|class| plan.method_name(class.method)).collect::<Vec<_>>().join(" + ")
}

fn row(plan: &Plan, medium: FileMedium, load: Load, classes: &[Class], repeat: u64, ran: &Ran) -> Row {
    let params = Fields::new()
        .with("place", medium.name())
        .with("load", load.name())
        .with("repeat", repeat)
        .with("size_bytes", plan.bytes)
        .with("block_bytes", plan.block_bytes)
        .with("memory_bytes", plan.engine.memory_bytes)
        .with("kernel", plan.release.as_str());
    measured_row("classes", &named(plan, classes), params, ran.metrics(), Fields::new())
}

#[cfg(test)]
mod tests;
