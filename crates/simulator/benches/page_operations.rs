//! How many page operations a second the simulator carries out, and how much faster than time it is.
//!
//! `cargo bench -p afflux-simulator --bench page_operations [-- NAME]`

#![allow(clippy::print_stdout, reason = "a measurement for a terminal")]

use simulator::DiskOptions;
use simulator::simulation::{DeviceChoice, Simulation};
use simulator::workload::Workload;
use simulator::workload::fio::{Surroundings, parse};

struct Nothing;

impl Surroundings for Nothing {
    fn include(&mut self, _: &str, _: &str) -> Result<(String, String), String> {
        Err("there is none".to_owned())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        None
    }
}

/// Name, job file, bytes of cache, bytes a second of the disk.
const RUNS: &[(&str, &str, u64, u64)] = &[
    (
        "cached, half reads and half overwrites",
        "[global]\nsize=16m\nfilename=file\n[fill]\nrw=write\nbs=64k\n\
         [x]\nstonewall\nrw=randrw\nruntime=1\ntime_based\n",
        512 << 20,
        10_000_000_000,
    ),
    ("random writes", "[x]\nrw=randwrite\nsize=64m\n", 64 << 20, 1_000_000_000),
    ("a stream to 25 MB/s", "[x]\nrw=write\nbs=64k\nsize=256m\nend_fsync=1\n", 64 << 20, 25_000_000),
];

/// CPU time of this process so far: the machine may have other things to do.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("this is Linux");
    let ns = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    ns.expect("its first number is CPU time") / 1e9
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, text, memory_bytes, bytes_per_second) in RUNS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            continue;
        }
        let disk = DiskOptions { bytes_per_second: *bytes_per_second, ..DiskOptions::default() };
        let mut simulation = Simulation::new(1, DeviceChoice::plain(disk));
        simulation.memory_bytes = *memory_bytes;
        let file = parse("bench", text, &mut Nothing).unwrap_or_else(|complaint| panic!("{complaint}"));
        simulation.workloads = file.jobs.into_iter().map(Workload::Job).collect();
        let began = cpu_seconds();
        let outcome = simulation.run(&mut |_| ()).unwrap_or_else(|error| panic!("{error}"));
        let seconds = cpu_seconds() - began;
        let pages: u64 = outcome.jobs.iter().map(|job| (job.read.bytes + job.write.bytes) / 4096).sum();
        println!(
            "{name}: {pages} pages in {seconds:.2} s of CPU, {:.0} k/s; {:.1} virtual seconds, {:.0} times as fast",
            pages as f64 / seconds / 1000.0,
            outcome.virtual_ns as f64 / 1e9,
            outcome.virtual_ns as f64 / 1e9 / seconds
        );
    }
}
