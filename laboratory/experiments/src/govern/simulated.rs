//! The same races in virtual time, under the decisions of `linux-6.1`.
//!
//! Owns: a machine with one disk behind a byte rate, its writer, a governor that samples the disk's figures.
//! Does not own: the decisions (crate `govern`).
//! Invariants: samples are as far apart as the command's. The same options give the same run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::{File, Nanos, Platform};
use afflux_govern::{BlockCounters, LimitChoice, LimitTarget, MachineLimits as KernelMachine, Speed, choose};
use afflux_linux_policies::KernelKnob;
use afflux_report::Fields;
use afflux_simulator::{CostTable, DiskFigures, Setup};

use super::plan::{BLOCK_BYTES, GovernRace, Plan, Subject};
use crate::contenders::latencies::Latencies;
use crate::contenders::ran::{Look, Ran};
use crate::experiment::LabError;
use crate::machine::{ExperimentMachine, MachineOptions, Queue, lock, model};

const SEED: u64 = 1;
const CPUS: usize = 2;
const LOOK_EVERY_NS: u64 = 100 * Nanos::MILLISECOND;
/// In looks: the time between two samples of the disk's figures, and between two decisions.
const SAMPLE_EVERY: u64 = 5;
const DECIDE_EVERY: u64 = 10;
/// The requests of a disk's queue, each of 128 KiB.
const QUEUE: Queue = Queue { nr_requests: 64, request_kib: 128, batch: 1, at_submission: false, is_sorted: true };
/// A writer that the disk can keep up with writes this many fifths of the disk's rate.
const PACED_FIFTHS: u64 = 2;

/// The progress of the writer.
#[derive(Default)]
struct Writer {
    stop: AtomicBool,
    ended: AtomicBool,
    accepted_bytes: AtomicU64,
    settled: AtomicBool,
    calls: Mutex<Latencies>,
}

pub(super) fn run(plan: &Plan, race: GovernRace, subject: Subject) -> Result<Ran, LabError> {
    let machine = machine(plan)?;
    let device = machine.devices[0];
    let (file, _) = machine.file(0);
    let hold = |bytes: Option<u64>| -> Result<(), LabError> {
        for (knob, value) in
            [(KernelKnob::MaxBytes, bytes.unwrap_or(0)), (KernelKnob::StrictLimit, u64::from(bytes.is_some()))]
        {
            let set = machine.engine.set_device_knob(device, knob, value);
            set.map_err(LabError::failed)?;
        }
        Ok(())
    };
    let mut limit_bytes = machine.engine.status().dirty_limit_bytes;
    if subject == Subject::ByHand {
        limit_bytes = plan.right_bytes(plan.race.rate_bytes_per_s);
        hold(Some(limit_bytes))?;
    }
    let mut governor = (subject == Subject::Governed).then(|| Governor { speed: Speed::new(None), in_force: None });
    let rate = (race == GovernRace::Paced).then(|| plan.race.rate_bytes_per_s / 5 * PACED_FIFTHS);
    let writer = spawn(&machine, &file, rate);
    let seconds = if race == GovernRace::Slower { plan.race.seconds / 2 + plan.follow_s } else { plan.race.seconds };
    let (settled_ns, slower_ns) = (plan.race.seconds * Nanos::SECOND / 4, plan.race.seconds / 2 * Nanos::SECOND);
    let right_bytes = plan.right_bytes(plan.slow_bytes_per_s) * 4 / 3;
    let (mut looks, mut settled_bytes, mut followed_s) = (Vec::new(), 0, None);
    for round in 0.. {
        let now_ns = machine.now_ns();
        if now_ns >= seconds * Nanos::SECOND {
            break;
        }
        if now_ns >= settled_ns && !writer.settled.swap(true, Ordering::Relaxed) {
            settled_bytes = writer.accepted_bytes.load(Ordering::Relaxed);
        }
        if race == GovernRace::Slower && round == slower_ns / LOOK_EVERY_NS {
            machine.disks[0].disk.slow_down(plan.race.rate_bytes_per_s / plan.slow_bytes_per_s.max(1));
        }
        if let Some(governor) = &mut governor
            && let Some(limit) = governor.round(plan, &machine, round)
        {
            hold(limit)?;
            limit_bytes = limit.unwrap_or(machine.engine.status().dirty_limit_bytes);
        }
        let is_slower = race == GovernRace::Slower && now_ns >= slower_ns;
        if is_slower && followed_s.is_none() && limit_bytes <= right_bytes / 10 * 13 {
            followed_s = Some((now_ns - slower_ns) as f64 / 1e9);
        }
        let dirty_bytes = machine.engine.status().dirty_bytes;
        looks.push(Look { at_s: now_ns as f64 / 1e9, dirty_bytes, limit_bytes, ..Look::default() });
        machine.sleep(LOOK_EVERY_NS)?;
    }
    let wrote_s = machine.now_ns() as f64 / 1e9;
    writer.stop.store(true, Ordering::Relaxed);
    while !writer.ended.load(Ordering::Relaxed) {
        machine.sleep(Nanos::MILLISECOND)?;
    }
    let (accepted, began) = (writer.accepted_bytes.load(Ordering::Relaxed), machine.now_ns());
    let synced = machine.run(machine.engine.sync(&file, 0..u64::MAX))?;
    synced.map_err(LabError::failed)?;
    let sync_s = (machine.now_ns() - began) as f64 / 1e9;
    let calls = lock(&writer.calls);
    let settled_s = (wrote_s - settled_ns as f64 / 1e9).max(1e-9);
    let mut metrics = Fields::new()
        .with("sync_s", sync_s)
        .with("end_to_end_mb_per_s", accepted as f64 / 1e6 / (machine.now_ns() as f64 / 1e9))
        .with("accepted_mb_per_s", (accepted - settled_bytes) as f64 / 1e6 / settled_s)
        .with("write_p99_ms", calls.per_mille_ms(990))
        .with("write_p999_ms", calls.per_mille_ms(999))
        .with("write_max_ms", calls.max_ms());
    if let Some(followed_s) = followed_s.filter(|_| governor.is_some()) {
        metrics.push("followed_s", followed_s);
    }
    Ok(Ran { metrics, looks, delays: None })
}

fn machine(plan: &Plan) -> Result<ExperimentMachine, LabError> {
    ExperimentMachine::new(MachineOptions {
        seed: SEED,
        cpus: CPUS,
        costs: CostTable::new("none", Vec::new()),
        memory_bytes: plan.memory_bytes,
        setup: Setup::of("linux-6.1").map_err(LabError::failed)?,
        knobs: Vec::new(),
        disks: vec![model("throttled", &[("write_bytes_per_second", plan.race.rate_bytes_per_s.to_string())])?],
        queue: QUEUE,
        flushes: true,
    })
}

/// A task that writes timed blocks, at full speed or at a rate.
fn spawn(machine: &ExperimentMachine, file: &File, rate: Option<u64>) -> Arc<Writer> {
    let writer = Arc::new(Writer::default());
    let (engine, platform) = (Arc::clone(&machine.engine), Arc::clone(&machine.platform));
    let (own, file, start) = (Arc::clone(&writer), file.clone(), machine.platform.now());
    machine.world.spawn("writer", async move {
        let block = vec![0; BLOCK_BYTES as usize];
        let mut at = 0;
        while !own.stop.load(Ordering::Relaxed) {
            if let Some(rate) = rate {
                platform.sleep_until(start.after(at * Nanos::SECOND / rate)).await;
            }
            let began = platform.now();
            if engine.write(&file, at, &block).await.is_err() {
                break;
            }
            at += BLOCK_BYTES;
            own.accepted_bytes.store(at, Ordering::Relaxed);
            if own.settled.load(Ordering::Relaxed) {
                let took_ns = platform.now().since(began);
                lock(&own.calls).add(took_ns);
            }
            // A processor without costs would write for ever in no time.
            platform.sleep_until(platform.now().after(BLOCK_BYTES / 4)).await;
        }
        own.ended.store(true, Ordering::Relaxed);
    });
    writer
}

/// The governor of one disk.
struct Governor {
    speed: Speed,
    in_force: Option<(u32, u64)>,
}

impl Governor {
    /// The new limit, if it changes: `None` inside stands for no limit.
    fn round(&mut self, plan: &Plan, machine: &ExperimentMachine, round: u64) -> Option<Option<u64>> {
        if round.is_multiple_of(SAMPLE_EVERY) {
            self.speed.look(machine.now_ns() + 1, &counters(&machine.disks[0].disk.figures()));
        }
        if !round.is_multiple_of(DECIDE_EVERY) {
            return None;
        }
        let dirty_bytes = machine.engine.status().dirty_limit_bytes;
        let of = KernelMachine { dirty_bytes, background_bytes: dirty_bytes / 2 };
        let wanted = LimitTarget {
            budget_ns: plan.budget_ns(),
            budget_bytes: self.speed.bytes_in(plan.budget_ns()),
            bytes_per_second: self.speed.bytes_per_second().unwrap_or(0),
        };
        let before = self.in_force;
        self.in_force = match choose(&wanted, of, before.map(|(ppm, _)| ppm)) {
            LimitChoice::FastEnough => None,
            LimitChoice::Limit { bytes, ratio_ppm } => Some((ratio_ppm, bytes)),
        };
        (self.in_force != before).then(|| self.in_force.map(|(_, bytes)| bytes))
    }
}

/// The counters that the kernel would show in the disk's `stat`.
fn counters(figures: &DiskFigures) -> BlockCounters {
    let depth_ns = u64::try_from(figures.depth_ns).unwrap_or(u64::MAX);
    BlockCounters {
        reads: figures.requests.0,
        read_bytes: figures.bytes.0,
        writes: figures.requests.1,
        write_bytes: figures.bytes.1,
        write_ns: depth_ns,
        in_flight: figures.depth,
        busy_ns: figures.busy_ns,
        ..BlockCounters::default()
    }
}
