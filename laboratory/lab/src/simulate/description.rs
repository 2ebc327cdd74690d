//! From the command line to a described run.
//!
//! Owns: reading job files and the files they include, sizes and times on the command line, the positions of errors.
//! Does not own: the syntax of job, device, cost and fault files (the simulator) and of built-in workloads
//! (`built_in`).
//! Invariants: nothing runs before all input has been read; every error names the file or the flag, the value and the
//! allowed values.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use afflux_engine::eviction::EvictionKind;
use afflux_engine::settings::did_you_mean;
use afflux_frontend::trace::Trace;
use afflux_simulator::{CostTable, FaultScript};
use afflux_workloads::fio::{self, Included, Likeness, Surroundings};
use afflux_workloads::simulation::{Callers, Contents, OWN_POLICY, Simulation, SimulationError};
use afflux_workloads::{Job, Replay, Workload};

use super::input_file::text_of;
use super::{built_in, disks, memory};
use crate::args;
use crate::trace_file;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{output, units};

/// Most names in a directory that are compared with a missing file's name.
const FILES_BESIDE_MAX: usize = 1000;

/// The inputs of a run, as the user named them.
pub(super) struct NamedInputs<'a> {
    /// Job files and built-in workloads.
    pub(super) jobs: &'a [String],
    /// The size of fio jobs that name none.
    pub(super) size: Option<&'a str>,
    pub(super) traces: &'a [PathBuf],
}

pub(super) struct Described {
    /// The job files, as the user named them.
    pub(super) jobs: String,
    /// One for each policy, in the order asked for.
    pub(super) simulations: Vec<Simulation>,
    pub(super) warnings: Vec<String>,
    /// The job files and the files that they include, each once: names and texts.
    pub(super) files: Vec<(String, String)>,
    /// A sentence about each replayed trace.
    pub(super) replayed: Vec<String>,
}

pub(super) fn read(work: &NamedInputs<'_>, args: &args::MachineArguments) -> Outcome<Described> {
    let mut devices = disks::devices(&args.devices)?.into_iter();
    let first = devices.next().ok_or_else(disks::none_named)?;
    let mut simulation = Simulation::new(args.seed, first);
    simulation.devices.extend(devices);
    simulation.cpus = args.cpus;
    simulation.until_ns = args.until_ns;
    simulation.knobs.clone_from(&args.knobs);
    let readahead = args.readahead.as_deref().map(afflux_linux_policies::readahead).transpose();
    simulation.readahead = readahead.map_err(|why| Failure::wrong_use(format!("--readahead: {why}")))?;
    simulation.eviction = args.eviction.as_deref().map(eviction).transpose()?;
    simulation.callers = Callers::AsMeasured;
    simulation.keep_trace = args.trace.is_some();
    if let Some(path) = &args.faults {
        let name = path.display().to_string();
        simulation.faults =
            FaultScript::parse(&name, &text_of(path)?).map_err(|error| Failure::wrong_use(error.to_string()))?;
    }
    if let Some(text) = &args.costs {
        simulation.costs = costs(text)?;
    }
    let mut warnings = Vec::new();
    let likeness = if args.approximate { Likeness::Near } else { Likeness::Same };
    let (mut built_in, mut jobs) = (Vec::new(), Vec::new());
    let mut host = Host { size: work.size.map(str::to_owned), ..Host::default() };
    let mut replayed = Vec::new();
    for name in work.jobs {
        match built_in::parse(name) {
            Some(workload) => built_in.push(workload?),
            None => add_jobs(name, likeness, &mut host, &mut jobs, &mut warnings)?,
        }
    }
    for path in work.traces {
        let stem = path.file_stem().map_or_else(|| "trace".into(), |stem| stem.to_string_lossy().into_owned());
        let trace = Arc::new(trace_file::read(path)?);
        if trace.lost > 0 {
            warnings.push(format!("{}: {} calls were lost while it was recorded", path.display(), trace.lost));
        }
        replayed.push(in_words(&path.display().to_string(), &trace));
        // The replayed run has not written the bytes that it reads.
        simulation.contents = Contents::Unchecked;
        built_in.push(Workload::Replay(Replay { name: stem, directory: String::new(), trace }));
    }
    simulation.workloads = built_in;
    simulation.workloads.extend(jobs.into_iter().map(Workload::Job));
    simulation.memory_bytes = memory::bytes(&args.memory, &simulation, memory::own_bytes_max())?;
    let simulations = policies(&args.policies, simulation)?;
    for one in &simulations {
        let without_effect = |knob| format!("{} has no {knob}: it changes nothing there", one.policy);
        warnings.extend(one.ignored_knobs().into_iter().map(without_effect));
    }
    let traces = work.traces.iter().map(|path| path.display().to_string());
    let jobs: Vec<String> = work.jobs.iter().cloned().chain(traces).collect();
    Ok(Described { jobs: jobs.join(", "), simulations, warnings, files: host.files, replayed })
}

/// Describes a trace and its replay.
fn in_words(name: &str, trace: &Trace) -> String {
    let lasts = trace.calls.last().map_or(Duration::ZERO, |call| Duration::from_micros(call.at_us));
    let plural = |count: usize, what: &str| {
        format!("{} {what}{}", units::count(count as u64), if count == 1 { "" } else { "s" })
    };
    let (calls, files) = (plural(trace.calls.len(), "call"), plural(trace.files().len(), "file"));
    let lost =
        if trace.lost > 0 { format!(", and {} that were lost", units::count(trace.lost)) } else { String::new() };
    format!(
        "{name} has {calls} of {files} in {}{lost}. Each call begins at its recorded time, whether those before \
         it have ended or not: where writers are paused, a read may come before the write that it followed.",
        units::time(lasts)
    )
}

/// Reads a job file. As in fio, the jobs of a later file begin when those of the earlier files have ended.
fn add_jobs(
    name: &str,
    likeness: Likeness,
    host: &mut Host,
    jobs: &mut Vec<Job>,
    warnings: &mut Vec<String>,
) -> Outcome {
    let text = text_of(Path::new(name)).map_err(|failure| with_near(failure, name))?;
    host.keep(name, &text);
    let file = fio::parse_as(name, &text, host, likeness);
    let mut file = file.map_err(|error| Failure::wrong_use(error.to_string()))?;
    if let (false, Some(first)) = (jobs.is_empty(), file.jobs.first_mut()) {
        first.stonewall = true;
    }
    if file.jobs.is_empty() {
        let how = "a job is a section, such as [backup] with size=1g below it";
        return Err(Failure::wrong_use(format!("{name}: there is no job in it; {how}")));
    }
    warnings.extend(file.warnings.iter().map(ToString::to_string));
    jobs.append(&mut file.jobs);
    Ok(())
}

/// Adds similar names of files beside it, and of workloads, in case of a typing error.
fn with_near(failure: Failure, name: &str) -> Failure {
    let (path, workload) = (Path::new(name), name.split(':').next().unwrap_or(name));
    if path.exists() {
        return failure;
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = fs::read_dir(directory).into_iter().flatten().take(FILES_BESIDE_MAX);
    let files: Vec<String> =
        beside.filter_map(|entry| Some(path.with_file_name(entry.ok()?.file_name()).display().to_string())).collect();
    let of_files = did_you_mean(name, files.iter().map(String::as_str));
    let near = if of_files.is_empty() { did_you_mean(workload, built_in::NAMES.into_iter()) } else { of_files };
    match failure {
        Failure::Failed(text) => Failure::Failed(format!("{text}{}", output::shown(near))),
        Failure::WrongUse(text) => Failure::WrongUse(text),
    }
}

/// The same run under each policy. Knobs are checked here, so that an error can name the flag.
fn policies(names: &[String], simulation: Simulation) -> Outcome<Vec<Simulation>> {
    let own = [OWN_POLICY.to_owned()];
    let names = if names.is_empty() { &own[..] } else { names };
    let mut simulations: Vec<Simulation> = Vec::new();
    for name in names {
        if simulations.iter().any(|other| other.policy == *name) {
            return Err(Failure::wrong_use(format!("--policy: {name} is there twice")));
        }
        let one = Simulation { policy: name.clone(), ..simulation.clone() };
        match one.check_settings() {
            Ok(()) => simulations.push(one),
            Err(SimulationError::Knob(error)) if names.len() > 1 => {
                return Err(Failure::wrong_use(format!("--set, under {name}: {error}")));
            }
            Err(SimulationError::Knob(error)) => return Err(Failure::wrong_use(format!("--set: {error}"))),
            Err(error) => return Err(Failure::wrong_use(format!("--policy: {error}"))),
        }
    }
    Ok(simulations)
}

/// The host's files and environment, for job files that refer to them.
#[derive(Default)]
struct Host {
    /// The files read so far.
    files: Vec<(String, String)>,
    /// The size of jobs that name none.
    size: Option<String>,
}

impl Host {
    fn keep(&mut self, name: &str, text: &str) {
        if !self.files.iter().any(|(known, _)| known == name) {
            self.files.push((name.to_owned(), text.to_owned()));
        }
    }
}

impl Surroundings for Host {
    /// Looks where fio does: relative to the working directory, then beside the including file.
    fn include(&mut self, path: &str, including: &str) -> Result<Included, String> {
        let here = Path::new(path).to_owned();
        let beside = Path::new(including).with_file_name(path);
        let found = if here.exists() || !beside.exists() { here } else { beside };
        let text = text_of(&found).map_err(|failure| failure.to_string())?;
        let name = found.display().to_string();
        self.keep(&name, &text);
        Ok(Included { name, text })
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        env::var(name).ok()
    }

    fn size(&self) -> Option<&str> {
        self.size.as_deref()
    }
}

fn eviction(name: &str) -> Outcome<EvictionKind> {
    afflux_linux_policies::eviction(name).map_err(|why| Failure::wrong_use(format!("--eviction: {why}")))
}

/// A built-in table, or one from a file.
fn costs(text: &str) -> Outcome<CostTable> {
    if let Some(table) = CostTable::named(text) {
        return Ok(table);
    }
    let path = Path::new(text);
    if !path.exists() && !text.contains(['/', '.']) {
        let names: Vec<&str> = CostTable::names().collect();
        let known = names.join(", ");
        let near = did_you_mean(text, names.into_iter());
        return Err(Failure::wrong_use(format!(
            "--costs: there is no table '{text}'{near}; there are {known}; or a file"
        )));
    }
    CostTable::parse(text, &text_of(path)?).map_err(|error| Failure::wrong_use(format!("--costs: {error}")))
}
