//! The simulated side: the catalogue's throttled disk, the engine in virtual time.
//!
//! Owns: the machine that stands for the one at hand.
//! Does not own: the simulation.
//! Invariants: depends on the plan alone, so that the figures are the same everywhere.

use std::sync::Arc;

use afflux_simulator::EQUAL_PARTS_POLICY;
use afflux_simulator::catalogue::{self, Model};
use afflux_workloads::Workload;
use afflux_workloads::simulation::{DeviceChoice, DeviceOutcome, Simulation};

use super::compare::{Look, Side};
use super::plan::{Group, Rate, model};
use crate::delays::simulated_delays_by_caller;
use crate::experiment::LabError;

/// The seed of all random choices, on both sides.
pub(super) const SEED: u64 = 1;
/// Virtual CPUs. A throttled disk needs less than one.
pub(super) const CPUS: u32 = 2;

/// Runs the jobs of a group, on a disk with the catalogue's latency or with `latency_ns`.
pub(super) fn run(group: &Group, rate: &Rate, memory_bytes: u64, latency_ns: Option<u64>) -> Result<Side, LabError> {
    let mut model = model(rate)?;
    if let Some(latency_ns) = latency_ns {
        model.set("latency_ns", &format!("{latency_ns} ns")).map_err(LabError::failed)?;
    }
    let mut simulation = Simulation::new(SEED, device(None, format!("throttled,rate={}", rate.text), model));
    // As for the engine on the real disk.
    simulation.policy = EQUAL_PARTS_POLICY.to_owned();
    simulation.cpus = CPUS;
    simulation.memory_bytes = memory_bytes;
    simulation.workloads = group.jobs.iter().cloned().map(Workload::Job).collect();
    let outcome = simulation.run(&mut |_| {}).map_err(LabError::failed)?;
    let device = outcome.devices.first().ok_or_else(|| LabError::failed("no device"))?;
    Ok(Side {
        looks: looks(device),
        limit_bytes: device.samples.first().map_or(0, |sample| sample.dirty_limit_bytes),
        disk_bytes: device.bytes.1,
        delays: simulated_delays_by_caller(device),
        jobs: outcome.jobs,
    })
}

/// A disk of this model for a directory, or for all other paths.
pub(super) fn device(directory: Option<&str>, name: String, model: Model) -> DeviceChoice {
    let make = Arc::new(move |world: &_, number| Ok(catalogue::make(world, number, &model)));
    DeviceChoice { directory: directory.map(str::to_owned), model: name, make }
}

/// The device's samples as looks.
pub(super) fn looks(device: &DeviceOutcome) -> Vec<Look> {
    let mut accepted_bytes = 0;
    let looks = device.samples.iter().map(|sample| {
        accepted_bytes += sample.accepted_bytes;
        let dirty_bytes = sample.dirty_bytes + sample.writeback_bytes;
        Look { at_s: sample.at_ns as f64 / 1e9, dirty_bytes, accepted_bytes }
    });
    looks.collect()
}
