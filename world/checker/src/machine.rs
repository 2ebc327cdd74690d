//! The machine that a scenario describes: its CPUs, disks, settings and policies.
//!
//! Owns: the meaning of each number of a scenario.
//! Does not own: the scenario (`text`), its run (`run`).
//! Invariants: an impossible scenario is an error with a reason.

use std::sync::Arc;

use afflux_engine::Recovered;
use afflux_frames::{Frames, Layout, Memory};
use afflux_reference::Conservation;
use afflux_simulator::catalogue::DeviceChoice;
use afflux_simulator::{
    CpuOptions, Disk, DiskFiles, DiskOptions, OWN_POLICY, Setup, SimMachine, Slice, World, WorldOptions, catalogue,
};

use crate::report::RunOptions;
use crate::text::{CpuSpec, DeviceSpec, Scenario};

/// Most steps of other tasks before a step that is due.
const STEPS_FIRST: u64 = 5_000;
/// With slices: most slices of other tasks before it.
const OTHERS_FIRST: u64 = 64;
/// With CPUs: most time that simultaneous calls take from the tasks before it.
const CALLS_NS: u64 = 50_000_000;
/// Slots for files: more than a scenario has open at a time.
const FILE_SLOTS: u32 = 256;
/// The write verifier of an engine that has to take a new one.
const NEW_VERIFIER: u64 = 99;

/// The empty world.
pub(super) fn world(scenario: &Scenario, options: &RunOptions) -> World {
    let steps_max = if scenario.crash_step > 0 { scenario.crash_step } else { options.steps_max };
    let cpus = scenario.cpus.map(|CpuSpec { count, slice_ns, switch_per_mille }| CpuOptions {
        slice: Slice::Fixed(slice_ns),
        switch_per_mille,
        ..CpuOptions::count(count as usize)
    });
    World::new(WorldOptions {
        step_ns: scenario.step_ns,
        steps_max,
        keep_lines: options.keep_lines,
        cpus,
        ..WorldOptions::seed(scenario.seed)
    })
}

/// The machine with its disks.
pub(super) fn machine(world: &World, scenario: &Scenario) -> Result<SimMachine, String> {
    let memory_bytes = scenario.frames * 4096;
    let layout = Layout::new(memory_bytes, FILE_SLOTS).map_err(|error| error.to_string())?;
    let memory = Memory::anonymous(layout).map_err(|error| error.to_string())?;
    let machine = SimMachine::over(world, Frames::over(memory, &[]), setup(scenario, memory_bytes)?);
    with_disks(world, scenario, machine)
}

/// The machine with its disks after a kill: a new engine over the old one's memory.
pub(super) fn revived(
    world: &World,
    scenario: &Scenario,
    recovered: Recovered,
    disks: Vec<DiskFiles>,
) -> Result<SimMachine, String> {
    let setup = setup(scenario, scenario.frames * 4096)?;
    let machine = with_disks(world, scenario, SimMachine::recover(world, recovered, NEW_VERIFIER, setup))?;
    machine.disks.iter().zip(disks).for_each(|(disk, files)| disk.restore(files));
    Ok(machine)
}

fn with_disks(world: &World, scenario: &Scenario, mut machine: SimMachine) -> Result<SimMachine, String> {
    for (number, spec) in scenario.devices.iter().enumerate() {
        // Alternates: it changes nothing visible before a power loss.
        let longer_ahead = (scenario.seed ^ number as u64) & 1 == 1;
        machine.add(&format!("disk{number}"), disk(world, number as u64, spec, longer_ahead)?);
    }
    Ok(machine)
}

fn setup(scenario: &Scenario, memory_bytes: u64) -> Result<Setup, String> {
    let policy = scenario.policy.as_deref().unwrap_or(OWN_POLICY);
    let mut setup = Setup::of(policy).map_err(|error| error.to_string())?.with_eviction(scenario.eviction);
    for (name, value) in &scenario.knobs {
        let knob = setup.settings.named(name).map_err(|error| error.to_string())?;
        let before = setup.settings.get(knob);
        setup.settings.set(knob, *value).map_err(|error| error.to_string())?;
        if setup.settings.background_is_below_limit(setup.shares(memory_bytes)).is_err() {
            // Two draws contradict each other. The second is refused, as in a running engine.
            setup.settings.set(knob, before).map_err(|error| error.to_string())?;
        }
    }
    Ok(setup)
}

/// The rules that always hold in this machine's engine.
pub(super) fn conservation(scenario: &Scenario) -> Conservation {
    // If steps take no time, nothing is late: a pause then ends exactly at its end.
    let late_ns =
        STEPS_FIRST * scenario.step_ns + scenario.cpus.map_or(0, |cpus| OTHERS_FIRST * cpus.slice_ns + CALLS_NS);
    Conservation { pause_late_ns_max: Some(late_ns), ..Conservation::default() }
}

/// A disk.
fn disk(world: &World, number: u64, spec: &DeviceSpec, longer_ahead: bool) -> Result<Arc<Disk>, String> {
    let Some(name) = &spec.model else {
        return Ok(Disk::new(world, number, DiskOptions { longer_ahead, ..plain_options(spec) }));
    };
    let mut keys =
        vec![("block_bytes", spec.block), ("request_bytes_max", spec.request_max), ("nr_requests", spec.depth)];
    if spec.has_times() {
        keys.extend([("rate", spec.rate), ("volatile", spec.volatile), ("flush_ns", spec.latency_ns)]);
    }
    let overrides = keys.into_iter().map(|(key, value)| (key.to_owned(), value.to_string())).collect();
    let model = DeviceChoice { name: name.clone(), overrides }.model(None);
    let model = model.map_err(|error| error.to_string())?;
    let options = DiskOptions {
        capacity_bytes: spec.capacity,
        inline_per_mille: spec.inline_per_mille,
        // The worst case: nothing is durable before its sync.
        volatile_bytes_max: u64::MAX,
        longer_ahead,
        ..model.options()
    };
    Ok(catalogue::make_with(world, number, &model, options))
}

fn plain_options(spec: &DeviceSpec) -> DiskOptions {
    DiskOptions {
        block_bytes: spec.block as u32,
        request_bytes_max: spec.request_max as u32,
        depth: spec.depth as u32,
        volatile_cache: spec.volatile != 0,
        latency_ns: spec.latency_ns,
        bytes_per_second: spec.rate,
        capacity_bytes: spec.capacity,
        inline_per_mille: spec.inline_per_mille,
        volatile_bytes_max: u64::MAX,
        ..DiskOptions::default()
    }
}
