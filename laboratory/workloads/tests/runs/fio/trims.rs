//! Trims: blocks given back to a disk, alone and before each write.

use std::process::Command;
use std::sync::Arc;

use afflux_simulator::DiskOptions;
use afflux_simulator::catalogue::{self, DeviceChoice as Named};
use afflux_workloads::Workload;
use afflux_workloads::fio::{Alone, parse};
use afflux_workloads::simulation::{Contents, DeviceChoice, JobOutcome, Simulation};

use super::compare_whole;
use super::real;

/// The disk of the jobs; a loop device stands in for it where fio really runs.
const DISK: &str = "/dev/trimmed";

const JOBS: &str = "\
[global]
filename=/dev/trimmed
size=4m
bs=64k
[trim]
rw=trim
[random]
stonewall
rw=randtrim
ioengine=libaio
iodepth=4
bs=,,16k
[write]
stonewall
rw=trimwrite
fsync=4
[random-write]
stonewall
rw=randtrimwrite
number_ios=10
";

fn simulated(jobs: &str) -> Result<Vec<JobOutcome>, String> {
    let model = Named::parse("nvme-ssd").and_then(|choice| choice.model(None)).map_err(|error| error.to_string())?;
    let mut simulation = Simulation::new(1, DeviceChoice::plain(DiskOptions::default()));
    simulation.devices.push(DeviceChoice {
        directory: Some(DISK.to_owned()),
        model: "nvme-ssd".to_owned(),
        make: Arc::new(move |world, number| Ok(catalogue::make(world, number, &model))),
    });
    (simulation.memory_bytes, simulation.contents) = (64 << 20, Contents::Exact);
    let parsed = parse("trims.fio", jobs, &mut Alone("there is none")).map_err(|wrong| wrong.to_string())?;
    simulation.workloads = parsed.jobs.into_iter().map(Workload::Job).collect();
    simulation.run(&mut |_| ()).map(|outcome| outcome.jobs).map_err(|error| error.to_string())
}

#[test]
fn a_trim_is_a_call_of_its_own_and_comes_before_each_write() {
    let jobs = simulated(JOBS).unwrap_or_else(|error| panic!("{error}"));
    let moved: Vec<_> = jobs.iter().map(|job| [job.trim.bytes, job.trim.ops, job.write.bytes, job.write.ops]).collect();
    assert_eq!(
        moved,
        [[4 << 20, 64, 0, 0], [4 << 20, 256, 0, 0], [4 << 20, 64, 4 << 20, 64], [10 << 16, 10, 10 << 16, 10]]
    );
    // As in fio, which never syncs between a trim and its write.
    assert!(jobs.iter().all(|job| job.sync.ops == 0 && job.errors.is_empty()), "{jobs:?}");
}

#[test]
fn what_is_trimmed_is_gone_from_the_cache_too() {
    let jobs = format!("{JOBS}[read]\nstonewall\nrw=read\ninvalidate=0\n");
    let jobs = simulated(&jobs).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((jobs[4].read.bytes, jobs[4].errors.len()), (4 << 20, 0));
}

#[test]
fn a_file_is_not_trimmed() {
    let told = simulated("[x]\nrw=trim\nsize=1m\nfilename=/srv/file\n").expect_err("a file");
    assert!(told.contains("trims '/srv/file', which is a file; if it is a disk, say which: --device"), "{told}");
}

/// A loop device, detached on drop.
struct Loop(String);

impl Loop {
    fn over(image: &std::path::Path) -> Option<Self> {
        let file = std::fs::File::create(image).expect("an image");
        file.set_len(16 << 20).expect("its size");
        let made = Command::new("losetup").args(["-f", "--show"]).arg(image).output().ok();
        let made = made.filter(|made| made.status.success());
        if made.is_none() {
            afflux_scratch::skipped!("no loop device (that takes root)");
        }
        Some(Self(String::from_utf8_lossy(&made?.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn trims_are_what_fio_makes_of_them() {
    if !real::is_installed() {
        return;
    }
    let scratch = real::scratch("trims");
    let Some(disk) = Loop::over(&scratch.path().join("image")) else { return };
    std::fs::create_dir(scratch.path().join("jobs")).expect("a directory");
    std::fs::write(scratch.path().join("jobs/trims.fio"), JOBS.replace(DISK, &disk.0)).expect("writes");
    let real = real::run(&scratch.path().join("jobs"), "trims.fio");
    let ours = simulated(JOBS).unwrap_or_else(|error| panic!("{error}"));
    let jobs = parse("trims.fio", JOBS, &mut Alone("there is none")).unwrap_or_else(|wrong| panic!("{wrong}")).jobs;
    assert_eq!((real.len(), ours.len()), (jobs.len(), jobs.len()));
    for ((job, real), ours) in jobs.iter().zip(&real).zip(&ours) {
        compare_whole("trims.fio", job, real, ours);
    }
}
