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

use crate::contenders::{KernelWay, Stage, announce, turns};
use crate::experiment::{Experiment, Findings, KeptRows, LabError, Request, Watch};
use crate::hardware::MemoryDisk;
use crate::host;
use crate::machine::measured_row;
use crate::options::Named;
use load::Ran;
use plan::{Class, FileMedium, Load, Plan, Way};

/// The experiment.
pub(crate) static CLASSES: Experiment = Experiment {
    name: "classes",
    about: "Four loads of writers: the engine beside buffered, RWF_DONTCACHE and O_DIRECT of this kernel",
    labels: findings::LABELS,
    thread: "Thread: the series in which RWF_DONTCACHE has the flusher write, Jeff Layton, linux-fsdevel, version 6 of May 2026",
    words: include_str!("words.md"),
    options: plan::OPTIONS,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut KeptRows<'_>) -> Result<Findings, LabError> {
    let mut plan = Plan::read(request)?;
    let mut left_out = Vec::new();
    let places = places(&mut plan, &mut left_out)?;
    let mut ways = Vec::new();
    for place in &plan.places {
        let (has, has_not) = ways_of(&plan, places.directory(*place));
        left_out.extend(has_not.into_iter().map(|what| format!("{}: {what}", place.name())));
        ways.push((*place, has));
    }
    announce(watch, &left_out, plan.expected_s(), plan.repeats);
    let host_load = host::load();
    let races: Vec<_> = ways.iter().flat_map(|ways| plan.loads.iter().map(move |load| (ways, *load))).collect();
    let turns = turns(plan.repeats, &races, |((_, ways), load), _| load.classes(ways));
    for (at, (repeat, ((place, _), load), classes)) in turns.iter().enumerate() {
        let what = format!("{}, {}, {}", place.name(), load.name(), named(&plan, classes));
        let what = format!("{what}, {repeat} of {}", plan.repeats);
        watch.step(&what, at as f64 / turns.len() as f64);
        let ran = load::run(&plan, *load, classes, places.directory(*place), &places.stage);
        let ran = ran.map_err(|why| LabError::Failed(format!("{what}: {why}")))?;
        watch.row(&row(&plan, *place, *load, classes, *repeat, &ran));
    }
    drop(places);
    Ok(findings::findings(&plan, std::mem::take(&mut watch.rows), host_load))
}

/// The directories of the runs. Fields are dropped in this order: the mount is inside the directory.
struct Places {
    memory: Option<MemoryDisk>,
    stage: Stage,
}

impl Places {
    fn directory(&self, place: FileMedium) -> &Path {
        match (&self.memory, place) {
            (Some(disk), FileMedium::Memory) => disk.path(),
            _ => self.stage.path(),
        }
    }
}

/// Sets up the media of the plan. Removes an unavailable medium from the plan, and reports the reason.
fn places(plan: &mut Plan, left_out: &mut Vec<String>) -> Result<Places, LabError> {
    let stage = Stage::new(&plan.directory, "classes").map_err(LabError::Failed)?;
    let mut places = Places { memory: None, stage };
    if plan.places.contains(&FileMedium::Memory) {
        match MemoryDisk::new(places.stage.path(), plan.memory_disk_bytes()) {
            Ok(disk) => places.memory = Some(disk),
            Err(error) => {
                left_out.push(format!(
                    "{} was left out: it needs root and a loop device: {error}.",
                    FileMedium::Memory.name()
                ));
                plan.places.retain(|place| *place != FileMedium::Memory);
            }
        }
    }
    if plan.places.is_empty() {
        return Err(LabError::Failed(format!("nothing can be run here. {}", left_out.join(" "))));
    }
    Ok(places)
}

/// The methods that a directory's file system supports, and the reasons against the others.
fn ways_of(plan: &Plan, directory: &Path) -> (Vec<Way>, Vec<String>) {
    let (mut has, mut has_not) = (Vec::new(), Vec::new());
    for way in [KernelWay::Buffered, KernelWay::DontCache, KernelWay::Direct] {
        match way.missing(directory) {
            None => has.push(Way::Kernel(way)),
            Some(why) => has_not.push(format!("{} was left out: {why}.", plan.way_name(Way::Kernel(way)))),
        }
    }
    has.extend((0..plan.engines.len()).map(Way::Ours));
    (has, has_not)
}

/// The label of a run's classes.
fn named(plan: &Plan, classes: &[Class]) -> String {
    classes.iter().map(|class| plan.way_name(class.way)).collect::<Vec<_>>().join(" + ")
}

fn row(plan: &Plan, place: FileMedium, load: Load, classes: &[Class], repeat: u64, ran: &Ran) -> Row {
    let params = Fields::new()
        .with("place", place.name())
        .with("load", load.name())
        .with("repeat", repeat)
        .with("size_bytes", plan.bytes)
        .with("block_bytes", plan.block_bytes)
        .with("memory_bytes", plan.memory_bytes)
        .with("kernel", plan.release.as_str());
    measured_row("classes", &named(plan, classes), params, ran.metrics(), Fields::new())
}

#[cfg(test)]
mod tests;
