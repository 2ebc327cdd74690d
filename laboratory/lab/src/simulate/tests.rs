//! A made-up run, for tests of the reports.

use std::time::Duration;

use afflux_simulator::OffsetSample;
use afflux_workloads::simulation::{
    CallWaits, DeviceOutcome, DeviceSample, EngineOutcome, JobOutcome, LatencyOutcome, OWN_POLICY, OperationOutcome,
    Outcome, SlowestCall,
};

use super::ended_run::Run;

const SECOND: u64 = 1_000_000_000;

fn operation(bytes: u64, ops: u64, elapsed_ns: u64, ns: u64) -> OperationOutcome {
    let percentiles_ns = vec![(50.0, ns), (90.0, ns * 2), (99.0, ns * 5), (99.9, ns * 20), (99.99, ns * 100)];
    let latency = LatencyOutcome { min_ns: ns / 2, mean_ns: ns * 3 / 2, max_ns: ns * 120, percentiles_ns };
    OperationOutcome { bytes, ops, elapsed_ns, latency, slowest: None }
}

/// A run on a disk of 25 MB/s: a job writes and syncs, a group of readers fails once, and a job is idle.
pub(super) fn run() -> Run {
    let waits = CallWaits { pause_ns: 0, elevator_ns: 900_000_000, queue_ns: 300_000_000, disk_ns: 40_000_000 };
    let slowest = Some(SlowestCall { at_ns: 9 * SECOND, took_ns: 1_440_000_000, waits });
    let backup = JobOutcome {
        name: "backup".to_owned(),
        device: "disk".to_owned(),
        clones: 1,
        elapsed_ns: 40 * SECOND,
        ended_ns: 40 * SECOND,
        write: operation(1_000_000_000, 15_259, 40 * SECOND, 41_000),
        sync: OperationOutcome { slowest, ..operation(0, 12, 40 * SECOND, 12_000_000) },
        ..JobOutcome::default()
    };
    let desktop = JobOutcome {
        name: "<desktop>".to_owned(),
        device: "disk".to_owned(),
        clones: 4,
        elapsed_ns: 20 * SECOND,
        read: operation(4_096_000, 1_000, 20 * SECOND, 8_000_000),
        errors: vec![("read: Input/output error (EIO)".to_owned(), 1)],
        ..JobOutcome::default()
    };
    let idle = JobOutcome { name: "idle".to_owned(), clones: 1, ..JobOutcome::default() };
    let engine = EngineOutcome {
        cache_bytes: 1 << 30,
        counters: vec![("nr_dirtied", 244_140), ("nr_written", 244_140), ("pgpgout", 1_030_000_000)],
        pauses: vec![("dirty limit".to_owned(), 1_204, 46 * SECOND)],
        cpu_busy_ns: 3 * SECOND,
        cpus: 8,
        callers: "121 ns a call".to_owned(),
    };
    Run {
        jobs: "backup.fio".to_owned(),
        policy: OWN_POLICY.to_owned(),
        figures: Outcome {
            seed: 7,
            trace_hash: 0x00ab_cdef_0123_4567,
            virtual_ns: 44 * SECOND,
            jobs: vec![backup, desktop, idle],
            engine,
            devices: vec![device()],
            at_risk_bytes_max: 104_857_600,
            settle_ns: 4 * SECOND,
            ..Outcome::default()
        },
        real: Duration::from_millis(120),
        shifted: Vec::new(),
    }
}

/// The same under two policies, the second twice as slow.
pub(super) fn two() -> [Run; 2] {
    let mut slow = run();
    slow.policy = "linux-6.1".to_owned();
    slow.figures.jobs[0].write = operation(1_000_000_000, 15_259, 80 * SECOND, 82_000);
    slow.figures.virtual_ns = 88 * SECOND;
    slow.figures.at_risk_bytes_max *= 2;
    [run(), slow]
}

fn device() -> DeviceOutcome {
    let sample = |at: u64| DeviceSample {
        at_ns: at * SECOND / 2,
        dirty_bytes: ((at * 8) << 20).min(100 << 20),
        writeback_bytes: if at > 2 { 4 << 20 } else { 0 },
        dirty_limit_bytes: 100 << 20,
        queue_depth: (at % 16) as u32,
        moved_bytes: (if at < 40 { 102_400 } else { 0 }, if at > 2 { 12_500_000 } else { 0 }),
        accepted_bytes: if at < 80 { 12_500_000 } else { 0 },
        busy_per_mille: 1000,
        ..DeviceSample::default()
    };
    let offset = |at: u64| OffsetSample {
        at_ns: at * 44 * SECOND / 3_000,
        offset: if at.is_multiple_of(10) { (at * 7_919) % 900 * 1_000_000 } else { at * 333_333 },
        write: !at.is_multiple_of(10),
    };
    DeviceOutcome {
        name: "disk".to_owned(),
        model: "usb2-disk".to_owned(),
        busy_ns: 43 * SECOND,
        requests: (1_000, 2_000),
        bytes: (4_096_000, 1_000_000_000),
        seeks: 1_204,
        file_switches: 2,
        samples: (0..=88).map(sample).collect(),
        offsets: (0..3_000).map(offset).collect(),
        ..DeviceOutcome::default()
    }
}
