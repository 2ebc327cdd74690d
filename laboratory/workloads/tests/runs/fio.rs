//! Job files against real fio: the parser accepts every file that fio accepts, and the totals agree.
//!
//! fio is Debian's package `fio` (3.33 is the version whose rules are followed); without it these tests report that and
//! pass.

mod examples;
mod pairs;
mod real;
mod rejected;
mod trims;

use std::path::{Path, PathBuf};

use afflux_engine::Nanos;
use afflux_simulator::DiskOptions;
use afflux_workloads::Workload;
use afflux_workloads::fio::{Included, JobFile, Surroundings, parse};
use afflux_workloads::simulation::{DeviceChoice, JobOutcome, Simulation};

use real::RealJob;

/// The real files and a fixed variable.
struct Host {
    directory: PathBuf,
}

const VARIABLE: (&str, &str) = ("AFFLUX_TEST_KIB", "96");

impl Surroundings for Host {
    fn include(&mut self, path: &str, _: &str) -> Result<Included, String> {
        let text = std::fs::read_to_string(self.directory.join(path)).map_err(|error| error.to_string())?;
        Ok(Included { name: path.to_owned(), text })
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        (name == VARIABLE.0).then(|| VARIABLE.1.to_owned())
    }
}

fn jobs_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobs")
}

fn parsed(name: &str) -> JobFile {
    let mut host = Host { directory: jobs_directory() };
    let text = std::fs::read_to_string(host.directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    parse(name, &text, &mut host).unwrap_or_else(|complaint| panic!("{complaint}"))
}

/// The same jobs, simulated on a disk that is fast enough not to matter.
fn simulated(name: &str) -> Vec<JobOutcome> {
    simulate(parsed(name).jobs)
}

fn simulate(jobs: Vec<afflux_workloads::Job>) -> Vec<JobOutcome> {
    let disk = DiskOptions { latency_ns: 1_000, bytes_per_second: 10_000_000_000, ..DiskOptions::default() };
    let mut simulation = Simulation::new(1, DeviceChoice::plain(disk));
    simulation.memory_bytes = 64 << 20;
    simulation.workloads = jobs.into_iter().map(Workload::Job).collect();
    simulation.run(&mut |_| ()).unwrap_or_else(|error| panic!("{error}")).jobs
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(jobs_directory()).expect("the jobs are there");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".fio"))
        .collect();
    names.sort();
    names
}

/// Checks that both did the same, as far as there was time: a real host may be late, and do less.
fn compare(file: &str, job: &afflux_workloads::Job, real: &RealJob, ours: &JobOutcome) {
    if job.runtime_ns == 0 {
        return compare_whole(file, job, real, ours);
    }
    let (real_bytes, our_bytes) = (real.bytes[0] + real.bytes[1], ours.read.bytes + ours.write.bytes);
    assert!(real_bytes <= our_bytes + 4096, "{file}: {}: {real:?}, and simulated {ours:?}", job.name);
}

/// Checks that both did the same, to the end. Random parts are compared only by their sums: the total of a mix, the
/// bytes of blocks of any size.
fn compare_whole(file: &str, job: &afflux_workloads::Job, real: &RealJob, ours: &JobOutcome) {
    let what = format!("{file}: {}: {real:?}, and simulated {ours:?}", job.name);
    assert_eq!((real.name.as_str(), real.error), (ours.name.as_str(), 0), "{what}");
    let split = !job.more.split.iter().all(Vec::is_empty);
    let ranged = split || job.block_bytes.iter().any(|sizes| sizes.min != sizes.max);
    let mixed = job.pattern.reads && job.pattern.writes && (1..=99).contains(&job.mix_read_percent);
    if mixed {
        let (real_bytes, our_bytes) = (real.bytes[0] + real.bytes[1], ours.read.bytes + ours.write.bytes);
        // The last block of a clone may be any of the sizes drawn.
        let last =
            if ranged { job.clones * job.block_bytes.iter().map(|sizes| sizes.max).max().unwrap_or(0) } else { 0 };
        assert!(real_bytes.abs_diff(our_bytes) <= last, "{what}");
        let calls = real.calls[0] + real.calls[1];
        if !ranged {
            assert_eq!(calls, ours.read.ops + ours.write.ops, "{what}");
        }
        // Seven standard deviations of the difference of two such counts; random sizes make it larger.
        let near = 7 * (if ranged { calls } else { calls / 2 }).isqrt();
        assert!(real.calls[0].abs_diff(ours.read.ops) <= near, "{what}");
    } else {
        assert_eq!(real.bytes, [ours.read.bytes, ours.write.bytes, ours.trim.bytes], "{what}");
        if !ranged {
            assert_eq!(real.calls, [ours.read.ops, ours.write.ops, ours.trim.ops], "{what}");
        }
        assert_eq!(real.syncs, ours.sync.ops, "{what}");
    }
}

/// The job of each line of a report: clones without grouping have lines of their own, grouped jobs share one.
fn lines_of(jobs: &[afflux_workloads::Job]) -> impl Iterator<Item = &afflux_workloads::Job> {
    let mut group = false;
    jobs.iter().flat_map(move |job| {
        let joins = group && job.group_reporting && !job.stonewall && !job.more.new_group;
        group = job.group_reporting;
        let lines = if joins { 0 } else { 1 };
        std::iter::repeat_n(job, if job.group_reporting { lines } else { job.clones as usize })
    })
}

#[test]
fn what_fio_does_is_what_is_simulated() {
    if !real::is_installed() {
        return;
    }
    for file in names() {
        let real = real::run(&jobs_directory(), &file);
        let ours = simulated(&file);
        let jobs = parsed(&file).jobs;
        assert_eq!(real.len(), ours.len(), "{file}: {real:?}, and simulated {ours:?}");
        for ((job, real), ours) in lines_of(&jobs).zip(&real).zip(&ours) {
            compare(&file, job, real, ours);
        }
    }
}

#[test]
fn fio_is_not_faster_than_rates_and_pauses_allow_here() {
    if !real::is_installed() {
        return;
    }
    let real = real::run(&jobs_directory(), "timed.fio");
    let ours = simulated("timed.fio");
    for (real, ours) in real.iter().zip(&ours) {
        // The host may be late, and fio's figure includes the pause after the last block, so it is never less.
        let ours_ms = ours.elapsed_ns / Nanos::MILLISECOND;
        assert!(real.runtime_ms + 2 >= ours_ms, "{}: {} ms, and simulated {ours_ms} ms", ours.name, real.runtime_ms);
    }
}

#[test]
fn all_jobs_of_the_set_are_accepted() {
    assert!(names().len() > 10);
    for file in names() {
        assert!(!parsed(&file).jobs.is_empty(), "{file}");
        if real::is_installed() {
            real::accepts(&jobs_directory(), &file).unwrap_or_else(|told| panic!("fio rejects {file}: {told}"));
        }
    }
}
