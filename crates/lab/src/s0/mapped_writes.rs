//! A program stores into a mapping of 400 to 900 MB on a machine of 3 GB.
//!
//! Every page is dirtied once, in order, one at a time; nothing is paid for a call. The runs follow each
//! other on one machine that has written other files to the same disk before, as in the published test. What
//! is timed is the storing, not the writing out after it: otherwise every size would give the disk's rate. Fitted, as in the first model: 10.4 µs to fault
//! in and fill a page (the published 400 MB row), a disk of 54 MiB/s, and 2,850 MiB of the 3 GB for the page
//! cache, which makes the limit 570 MiB.
//!
//! Owns: the runs of one variant at one size. Does not own: the machine, the laws.
//! Invariants: a run ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::counters::Counter;
use engine::{File, Nanos};
use linux_policies::policy;
use serde_json::Value;
use simulator::{CostOf, CostTable};

use super::reads::{Path, Tally, tallied};
use crate::experiment::LabError;
use crate::machine::{Machine, MachineOptions, PAGE_BYTES, Queue, Span, costs, queued_model};

pub(super) const CPUS: usize = 2;
const MEMORY_BYTES: u64 = 2850 << 20;
const DISK_RATE: u64 = 54 << 20;
const QUEUE: Queue = Queue { nr_requests: 128, request_kib: 512, batch: 32, at_submission: false };
const PAGE_NS: f64 = 10_400.0;
/// Of other files, before: the disk's share of the limit follows its completions over periods of 1 GiB, and
/// is whole after some of these.
const BEFORE_BYTES: u64 = 6 << 30;
const BEFORE_FILES: u64 = 6;
const SEED: u64 = 1;
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

/// How much of the machine there is.
#[derive(Clone, Copy)]
pub(super) struct Rig {
    /// Its memory is this part of the whole, and so is what was written before.
    pub(super) part: u64,
    /// Requests in the disk's queue.
    pub(super) nr_requests: u64,
}

impl Rig {
    /// As in the published runs.
    pub(super) const WHOLE: Self = Self { part: 1, nr_requests: 128 };
    /// A tenth, whose limit is 57 MiB, with a queue so short that writers write back themselves.
    pub(super) const SMALL: Self = Self { part: 10, nr_requests: 4 };
}

fn machine(variant: &str, rig: Rig) -> Result<(Machine, Arc<Tally>), LabError> {
    let queue = Queue { nr_requests: rig.nr_requests, ..QUEUE };
    let policy = policy(variant).map_err(|error| LabError::Failed(error.to_string()))?;
    let (policy, tally) = tallied(policy);
    let mut disk = queued_model("disk-82", queue)?;
    disk.zones = vec![(1000, DISK_RATE)];
    let machine = Machine::new(MachineOptions {
        seed: SEED,
        cpus: CPUS,
        costs: page_costs(),
        memory_bytes: MEMORY_BYTES / rig.part,
        policy,
        knobs: Vec::new(),
        queue,
        disks: vec![disk],
    })?;
    Ok((machine, tally))
}

/// Stores `bytes`; returns when the writer had done so and all is still in the cache.
fn store(machine: &Machine, file: &File, bytes: u64) -> Result<u64, LabError> {
    let writer = machine.stream(file, bytes, PAGE_BYTES);
    let mut looks = 0;
    while !writer.has_ended() {
        machine.sleep(100 * Nanos::MILLISECOND)?;
        looks += 1;
        if looks > LOOKS_MAX {
            return Err(LabError::Failed("a run is not over after ten minutes of virtual time".to_owned()));
        }
    }
    if writer.has_failed() { Err(LabError::Failed("a write failed".to_owned())) } else { Ok(writer.ended_ns()) }
}

/// Writes out and forgets the file.
fn forget(machine: &Machine, file: &File) -> Result<(), LabError> {
    machine.run(machine.engine.drain(machine.devices[0]))?;
    machine.engine.discard(file);
    Ok(())
}

/// Runs of a variant one after the other on one machine, with so much to store each.
pub(super) fn run_many(variant: &str, size_mib: u64, runs: u64, rig: Rig) -> Result<Vec<Ran>, LabError> {
    let Rig { part, .. } = rig;
    let (machine, tally) = machine(variant, rig)?;
    for _ in 0..BEFORE_FILES {
        let file = machine.file(0).0;
        store(&machine, &file, BEFORE_BYTES / BEFORE_FILES / part / PAGE_BYTES * PAGE_BYTES)?;
        forget(&machine, &file)?;
    }
    let mut all = Vec::new();
    for run in 0..runs {
        // Not at the same point of the kernel's timers each time.
        machine.sleep(Nanos::SECOND + run * 317 * Nanos::MILLISECOND)?;
        let (paths_before, from) = (tally.paths(), machine.tally());
        let file = machine.file(0).0;
        let ended_ns = store(&machine, &file, size_mib << 20)?;
        let (mut paths, to) = (tally.paths(), machine.tally());
        for (path, count) in paths_before {
            paths.entry(path).and_modify(|all| *all -= count);
        }
        paths.retain(|_, count| *count > 0);
        let span = Span::between(&from, &to);
        let reads = [Counter::BalanceGlobalReads, Counter::BalanceDirtyReads, Counter::BalanceDeviceReads];
        all.push(Ran {
            mib_per_s: size_mib as f64 / (ended_ns.saturating_sub(from.at_ns) as f64 / 1e9),
            calls: span.count(Counter::BalanceCalls),
            passes: span.count(Counter::BalancePasses),
            reads: reads.map(|counter| span.count(counter)),
            pauses: span.count(Counter::ThrottlePauses),
            pause_s: span.count(Counter::ThrottleNs) as f64 / 1e9,
            written_by_writer_pages: span.count(Counter::BalanceWrittenPages),
            paths,
            engine: span.engine(),
            trace_hash: machine.world.trace_hash(),
        });
        forget(&machine, &file)?;
    }
    Ok(all)
}
