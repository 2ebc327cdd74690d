//! A program stores into a mapping of 400 to 900 MB on a machine of 3 GB.
//!
//! Every page is dirtied once, in order, one at a time; nothing is paid for a call. Before it, the machine
//! has written other files to the same disk, as it had in the published runs. What was timed there was the
//! storing, not the writing out at the end; so it is here. Fitted, as in the first model: 10.4 µs to fault
//! in and fill a page (the published 400 MB row), a disk of 54 MiB/s, and 2,850 MiB of the 3 GB for the page
//! cache, which makes the limit 570 MiB.
//!
//! Owns: one run. Does not own: the machine, the laws.
//! Invariants: a run ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Nanos;
use engine::counters::Counter;
use linux_policies::policy;
use serde_json::Value;
use simulator::{CostOf, CostTable};

use super::reads::{Path, tallied};
use crate::experiment::LabError;
use crate::machine::{Machine, MachineOptions, PAGE_BYTES, Queue, Span, costs, queued_model};

const CPUS: usize = 2;
const MEMORY_BYTES: u64 = 2850 << 20;
const DISK_RATE: u64 = 54 << 20;
const QUEUE: Queue = Queue { nr_requests: 128, request_kib: 512, batch: 32, at_submission: false };
const PAGE_NS: f64 = 10_400.0;
/// Of other files, before.
const BEFORE_BYTES: u64 = 1500 << 20;
const BEFORE_FILES: u64 = 3;
/// In which they are dirtied; what is then left is drained.
const BEFORE_NS: u64 = 40 * Nanos::SECOND;
/// Virtual time after which a run is given up, in looks of 100 ms.
const LOOKS_MAX: u64 = 6000;

/// What a run gave.
pub(super) struct Ran {
    pub(super) mib_per_s: f64,
    pub(super) calls: u64,
    pub(super) passes: u64,
    /// Shared by all devices, of these dirty counters, the device's.
    pub(super) reads: [u64; 3],
    pub(super) pauses: u64,
    pub(super) pause_s: f64,
    pub(super) written_by_writer_pages: u64,
    pub(super) paths: BTreeMap<Path, u64>,
    pub(super) engine: Value,
    pub(super) trace_hash: u64,
}

fn page_costs() -> CostTable {
    let list = [
        (CostOf::Counter(Counter::PagesDirtied), PAGE_NS, "fitted to the published 374.75 MiB/s at 400 MB"),
        (CostOf::Counter(Counter::PageOut), 1.0, "S1: 1 to 2.5 ms of CPU for a megabyte submitted"),
        (CostOf::Step, 1000.0, "assumed"),
        (CostOf::Switch, 2000.0, "assumed"),
    ];
    costs("a desktop of 2009 with 3 GB", &list)
}

/// One run of a variant with so much to store.
pub(super) fn run_one(variant: &str, size_mib: u64, seed: u64) -> Result<Ran, LabError> {
    let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
    let (policy, tally) = tallied(policy(variant).map_err(|error| failed(&error))?);
    let mut disk = queued_model("disk-82", QUEUE)?;
    disk.zones = vec![(1000, DISK_RATE)];
    let machine = Machine::new(MachineOptions {
        seed,
        cpus: CPUS,
        costs: page_costs(),
        memory_bytes: MEMORY_BYTES,
        policy,
        knobs: Vec::new(),
        queue: QUEUE,
        disks: vec![disk],
    })?;
    let before: Vec<_> = (0..BEFORE_FILES)
        .map(|_| {
            let file = machine.file(0).0;
            machine.stream(&file, BEFORE_BYTES / BEFORE_FILES, 256 << 10);
            file
        })
        .collect();
    // Not at the same point of the kernel's timers each time.
    machine.sleep(BEFORE_NS + seed * 317 * Nanos::MILLISECOND)?;
    machine.run(machine.engine.drain(machine.devices[0]))?;
    if let Some(file) = before.iter().find(|file| !file.is_clean()) {
        return Err(LabError::Failed(format!("{variant}: {} bytes are not drained", file.dirty_bytes())));
    }
    drop(before);
    let paths_before = tally.paths();
    let from = machine.tally();
    let writer = machine.stream(&machine.file(0).0, size_mib << 20, PAGE_BYTES);
    let mut looks = 0;
    while !writer.has_ended() {
        machine.sleep(100 * Nanos::MILLISECOND)?;
        looks += 1;
        if looks > LOOKS_MAX {
            return Err(LabError::Failed(format!("{variant}: {size_mib} MiB are not stored after ten minutes")));
        }
    }
    let to = machine.tally();
    let span = Span::between(&from, &to);
    let seconds = writer.ended_ns().saturating_sub(from.at_ns) as f64 / 1e9;
    let reads = [Counter::BalanceGlobalReads, Counter::BalanceDirtyReads, Counter::BalanceDeviceReads];
    let mut paths = Arc::as_ref(&tally).paths();
    for (path, count) in paths_before {
        paths.entry(path).and_modify(|all| *all -= count);
    }
    paths.retain(|_, count| *count > 0);
    Ok(Ran {
        mib_per_s: size_mib as f64 / seconds,
        calls: span.count(Counter::BalanceCalls),
        passes: span.count(Counter::BalancePasses),
        reads: reads.map(|counter| span.count(counter)),
        pauses: span.count(Counter::ThrottlePauses),
        pause_s: span.count(Counter::ThrottleNs) as f64 / 1e9,
        written_by_writer_pages: span.count(Counter::BalanceWrittenPages),
        paths,
        engine: span.engine(),
        trace_hash: machine.world.trace_hash(),
    })
}
