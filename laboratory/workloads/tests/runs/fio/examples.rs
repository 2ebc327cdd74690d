//! fio's own examples (Debian's package `fio-examples`): the list of those that run unchanged, and the reasons for the
//! others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_engine::Nanos;
use afflux_simulator::catalogue::{self, DeviceChoice as Named};
use afflux_workloads::fio::{Included, Likeness, Surroundings, parse_as};
use afflux_workloads::simulation::{Contents, DeviceChoice, Simulation};
use afflux_workloads::{Job, Workload};

use super::real::{self, RealJob};
use super::{compare_whole, lines_of};

/// The package's directory.
const DIRECTORY: &str = "/usr/share/doc/fio/examples";

/// Variables that the examples expect from their callers, with usual values.
const VARIABLES: [(&str, &str); 5] =
    [("FIO_DIR", "/data"), ("FIO_RW", "randread"), ("FIO_IODEPTH", "4"), ("FIO_BS", "8k"), ("GPU_DEV_IDS", "0")];

/// Jobs that name a file which has to exist before, and its path.
const DEVICES: [&str; 4] = ["/tmp/testfile", "/pmem0/fio-test", "/dev/nvme0n1", "/tmp/test"];

struct Host;

impl Surroundings for Host {
    fn include(&mut self, path: &str, _: &str) -> Result<Included, String> {
        Err(format!("{path}: no example includes another"))
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        VARIABLES.iter().find(|variable| variable.0 == name).map(|variable| variable.1.to_owned())
    }
}

/// The examples, in order; `None` if they are not installed.
fn examples() -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(DIRECTORY).ok()?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    paths.sort();
    (!paths.is_empty()).then_some(paths)
}

fn is_installed() -> Option<Vec<PathBuf>> {
    let examples = examples();
    if examples.is_none() {
        afflux_scratch::skipped!("fio's examples are not installed (Debian package fio-examples)");
    }
    examples
}

fn read(path: &Path, likeness: Likeness) -> Result<Vec<Job>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file = parse_as(&path.display().to_string(), &text, &mut Host, likeness);
    file.map(|file| file.jobs).map_err(|wrong| wrong.to_string())
}

fn device(directory: Option<&str>, text: &str) -> DeviceChoice {
    let model = Named::parse(text).and_then(|choice| choice.model(None)).unwrap_or_else(|error| panic!("{error}"));
    DeviceChoice {
        directory: directory.map(str::to_owned),
        model: text.to_owned(),
        make: Arc::new(move |world, number| Ok(catalogue::make(world, number, &model))),
    }
}

/// The jobs on NVMe drives, stopped after a moment of virtual time.
fn machine(jobs: Vec<Job>) -> Simulation {
    let mut simulation = Simulation::new(1, device(None, "nvme-ssd,capacity_bytes=300 GB"));
    simulation.devices.extend(DEVICES.iter().map(|path| device(Some(path), "nvme-ssd,capacity_bytes=8 TB")));
    simulation.contents = Contents::Unchecked;
    simulation.memory_bytes = 256 << 20;
    simulation.until_ns = Some(5 * Nanos::MILLISECOND);
    simulation.workloads = jobs.into_iter().map(Workload::Job).collect();
    simulation
}

#[test]
fn three_in_five_of_fios_examples_run_as_they_are() {
    let Some(examples) = is_installed() else { return };
    let mut refused = BTreeMap::new();
    for path in &examples {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        match read(path, Likeness::Same) {
            Err(wrong) => drop(refused.insert(name, wrong)),
            Ok(jobs) => {
                let simulation = machine(jobs);
                if let Err(wrong) = simulation.check() {
                    refused.insert(name, wrong.to_string());
                    continue;
                }
                let outcome = simulation.run(&mut |_| ()).unwrap_or_else(|error| panic!("{name}: {error}"));
                let errors: Vec<_> = outcome.jobs.iter().flat_map(|job| &job.errors).collect();
                assert!(errors.is_empty(), "{name}: {errors:?}");
                // Operations during a job's warm-up are not counted in its own figures.
                let counted = outcome.jobs.iter().any(|job| job.read.ops + job.write.ops > 0);
                let moved = outcome.devices.iter().any(|device| device.requests.0 + device.requests.1 > 0);
                let burns = name == "cpuio.fio";
                assert!(burns || counted || moved, "{name} did nothing");
            }
        }
    }
    let run = examples.len() - refused.len();
    let told: Vec<String> = refused.iter().map(|(name, wrong)| format!("{name}: {wrong}")).collect();
    assert!(run * 5 >= examples.len() * 3, "{run} of {} run; refused:\n{}", examples.len(), told.join("\n"));
    // No refusal is about an unknown option: fio knows all of them.
    for (name, wrong) in &refused {
        assert!(!wrong.contains("fio knows no such"), "{name}: {wrong}");
    }
}

#[test]
fn more_of_them_run_nearly_as_they_are() {
    let Some(examples) = is_installed() else { return };
    let near = |likeness| examples.iter().filter(|path| read(path, likeness).is_ok()).count();
    let (same, nearly) = (near(Likeness::Same), near(Likeness::Near));
    assert!(nearly >= same + 8, "{same} as they are, {nearly} nearly");
}

/// Examples that both can run here, with the replacements in each: `laboratory/workloads/tests/examples.txt`.
const BOTH: &str = include_str!("../../examples.txt");

/// The name of each, and its text after the replacements.
fn runnable(directory: &Path) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in BOTH.lines().filter(|line| !line.starts_with(';') && !line.trim().is_empty()) {
        let Some((from, to)) = line.split_once(" => ") else {
            let text = std::fs::read_to_string(directory.join(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
            all.push((line.to_owned(), text));
            continue;
        };
        let (name, text) = all.last_mut().expect("an example before what is replaced in it");
        let from = from.trim_start();
        assert!(text.contains(from), "{name} has no '{from}' any more");
        *text = text.replace(from, &to.replace("\\n", "\n"));
    }
    all
}

/// Calls, bytes and syncs of fio's own examples, by fio and in the simulator.
#[test]
fn fios_examples_do_what_fio_does() {
    if !real::is_installed() || is_installed().is_none() {
        return;
    }
    let examples = runnable(Path::new(DIRECTORY));
    assert!(examples.len() >= 10, "{} examples", examples.len());
    for (name, text) in &examples {
        let scratch = real::scratch("example");
        std::fs::write(scratch.path().join(name), text).expect("writes");
        let real: Vec<RealJob> = real::run(scratch.path(), name);
        let jobs = parse_as(name, text, &mut Host, Likeness::Same).unwrap_or_else(|wrong| panic!("{wrong}")).jobs;
        let mut simulation = Simulation::new(1, device(None, "nvme-ssd,capacity_bytes=300 GB"));
        (simulation.memory_bytes, simulation.contents) = (256 << 20, Contents::Unchecked);
        simulation.workloads = jobs.iter().cloned().map(Workload::Job).collect();
        let ours = simulation.run(&mut |_| ()).unwrap_or_else(|error| panic!("{name}: {error}")).jobs;
        assert_eq!(real.len(), ours.len(), "{name}: {real:?}, and simulated {ours:?}");
        for ((job, real), ours) in lines_of(&jobs).zip(&real).zip(&ours) {
            compare_whole(name, job, real, ours);
        }
    }
}
