//! Draws a scenario from a seed. Each seed switches some kinds of operations off and makes others frequent, so that
//! rare combinations occur (swarm testing).
//!
//! Owns: the draws and their probabilities.
//! Does not own: tasks with a habit (`patterns`), the meaning of the operations (`text`, `ops`).
//! Invariants: equal seeds give equal scenarios in one version of this file; a scenario for later is stored as text.

use afflux_engine::eviction::EvictionKind;
use afflux_engine::rare::Rare;
use afflux_engine::settings::KnobInfo;
use afflux_simulator::{EQUAL_PARTS_POLICY, Random, Setup, catalogue};

use crate::offsets::{Offsets, PAGE};
use crate::patterns;
use crate::text::{CpuSpec, DeviceSpec, FailRequest, FileSpec, Op, Scenario};

/// The number of kinds of operations, in the order of `draw_op`.
const KINDS: usize = 19;

struct Weights([u64; KINDS]);

impl Weights {
    fn draw(random: &mut Random) -> Self {
        let base = [30_u64, 6, 8, 4, 40, 8, 8, 4, 10, 1, 2, 2, 2, 2, 3, 3, 3, 12, 1];
        Self(base.map(|weight| match random.below(4) {
            0 => 0,
            1 => weight,
            2 => weight * 4,
            _ => weight.div_ceil(2),
        }))
    }

    fn kind(&self, random: &mut Random) -> usize {
        let total: u64 = self.0.iter().sum();
        let mut at = random.below(total.max(1));
        for (kind, weight) in self.0.iter().enumerate() {
            if at < *weight {
                return kind;
            }
            at -= weight;
        }
        4
    }
}

fn micros(random: &mut Random) -> u64 {
    match random.below(10) {
        0 => random.below(40_000_000),
        1..4 => random.below(100_000),
        _ => random.below(2_000),
    }
}

fn draw_op(
    random: &mut Random,
    weights: &Weights,
    offsets: &Offsets,
    last_end: &mut u64,
    files: u64,
    devices: u64,
) -> Op {
    let file = random.below(files);
    let (mut offset, len) = (offsets.offset(random), offsets.len(random));
    if random.chance(offsets.sequential_per_mille) {
        offset = if *last_end < offsets.pages * PAGE { *last_end } else { 0 };
    }
    *last_end = offset + len;
    let after_max = random.pick(&[1, 20, 200, 3_000, 20_000]);
    let (hold_us, after_us) = (random.below(20_000), random.below(after_max));
    let size = if random.chance(300) { offset } else { random.below(offsets.pages * PAGE + 1) };
    let (sync_offset, sync_len) = if random.chance(600) { (0, 0) } else { (offset, len) };
    match weights.kind(random) {
        0 => Op::Read { file, offset, len },
        1 => Op::TryRead { file, offset, len },
        2 => Op::ReadPinned { file, offset, len, hold_us },
        3 => Op::TryReadPinned { file, offset, len, hold_us },
        5 => Op::TryWrite { file, offset, len },
        6 => Op::SetSize { file, size },
        7 => Op::Punch { file, offset, len },
        8 => Op::Sync { file, offset: sync_offset, len: sync_len },
        9 => Op::Drain { device: random.below(devices) },
        10 => Op::Discard { file, remove: random.below(2) },
        11 => Op::Invalidate { file },
        12 => Op::HostChange { file, size, offset: offset % (offsets.pages * PAGE), len },
        13 => Op::Reopen { file },
        14 if random.chance(300) => Op::CancelPinned { file, offset, len, after_us },
        14 => Op::CancelRead { file, offset, len, after_us },
        15 => Op::CancelWrite { file, offset, len, after_us },
        16 if random.chance(300) => Op::CancelSetSize { file, size, after_us },
        16 => Op::CancelSync { file, offset: sync_offset, len: sync_len, after_us },
        18 => Op::Rest {},
        17 => Op::Sleep { us: micros(random) },
        _ => Op::Write { file, offset, len },
    }
}

fn draw_trouble(random: &mut Random, scenario: &Scenario) -> Op {
    let device = random.below(scenario.devices.len() as u64);
    match random.below(14) {
        12 | 13 => Op::Fault {
            // A failing flush that loses the data it should have made durable.
            device,
            target: 2,
            file: 0,
            offset: 0,
            len: u64::MAX,
            times: random.pick(&[1, 1, 3]),
            per_mille: random.pick(&[1000, 300]),
            what: 5,
            arg: 0,
        },
        0 => Op::Hang { device },
        1 => Op::Release { device },
        2 | 3 => Op::ClearFaults { device },
        4 => Op::Capacity { device, bytes: random.below(200) * PAGE },
        5 => {
            let (name, value) = draw_knob(random);
            let number = knobs().iter().position(|knob| knob.name == name).unwrap_or(0) as u64;
            Op::Knob { number, value }
        }
        _ => Op::Fault {
            device,
            target: random.below(5),
            file: random.below(scenario.files.len() as u64 + 1),
            offset: random.pick(&[0, 0, 1, 3, 15]) * PAGE,
            len: random.pick(&[1, 512, 4096, 65536, u64::MAX, u64::MAX]),
            times: random.pick(&[0, 1, 1, 2, 5]),
            per_mille: random.pick(&[1000, 1000, 300, 50]),
            what: random.below(6),
            arg: random.below(2_000_000_000),
        },
    }
}

/// All knobs of a machine, in their order.
fn knobs() -> Vec<&'static KnobInfo> {
    Setup::default().settings.all().map(|(_, knob)| knob).collect()
}

fn draw_knob(random: &mut Random) -> (String, u64) {
    let knob = random.pick(&knobs());
    // Retries or looks an hour apart only make the run long; the rules are the same at a minute.
    let max = if knob.unit.ends_with("seconds") { knob.max.min(60_000) } else { knob.max };
    let value = match random.below(5) {
        0 => knob.min,
        1 => max,
        2 => knob.default.min(max),
        _ => {
            // Small values as often as large ones.
            let bits = random.between(1, 64 - max.leading_zeros().min(63) as u64);
            random.below(1 << bits.min(62)).clamp(knob.min, max)
        }
    };
    (knob.name.to_owned(), value)
}

/// Half of the runs take rare paths only by chance; the others force some of them.
fn draw_rare(random: &mut Random) -> Vec<(String, u64)> {
    if random.chance(500) {
        return Vec::new();
    }
    let mut rare = Vec::new();
    // Short holds have a draw of their own.
    for path in Rare::ALL.iter().filter(|path| !matches!(path, Rare::ShortHold)) {
        if random.chance(400) {
            rare.push((path.name().to_owned(), random.pick(&[5, 50, 300, 600])));
        }
    }
    rare
}

fn draw_device(random: &mut Random, tame: bool) -> DeviceSpec {
    let spec = DeviceSpec {
        model: None,
        block: random.pick(&[512, 4096]),
        request_max: random.pick(&[4096, 8192, 65536, 1 << 20]),
        depth: random.pick(&[1, 2, 4, 32]),
        volatile: random.pick(&[0, 1, 1]),
        latency_ns: random.pick(&[0, 10_000, 100_000, 5_000_000]),
        rate: random.pick(&[1_000_000, 20_000_000, 1_000_000_000]),
        capacity: if !tame && random.chance(100) { random.between(8, 400) * PAGE } else { 1 << 50 },
        inline_per_mille: random.pick(&[0, 0, 0, 100, 1000]),
    };
    if random.chance(500) {
        return spec;
    }
    let spec = DeviceSpec { model: Some(random.pick(&catalogue::names()).to_owned()), ..spec };
    if spec.has_times() {
        return spec;
    }
    let DeviceSpec { volatile, latency_ns, rate, .. } = DeviceSpec::default();
    DeviceSpec { volatile, latency_ns, rate, ..spec }
}

/// Half of the runs have no virtual CPUs, since tasks in any order find races sooner. Slices of 3 ms are Linux's former
/// base slice.
fn draw_cpus(random: &mut Random) -> Option<CpuSpec> {
    let cpus = CpuSpec {
        count: random.pick(&[1, 1, 2, 3, 8]),
        slice_ns: random.pick(&[2_000, 50_000, 3_000_000]),
        switch_per_mille: random.pick(&[0, 50, 500]),
    };
    random.chance(500).then_some(cpus)
}

/// Policies beside our own: equal parts, and the kernels'.
fn other_policies() -> impl Iterator<Item = &'static str> {
    std::iter::once(EQUAL_PARTS_POLICY).chain(afflux_linux_policies::NAMES.iter().copied())
}

/// The engine's own policy in half of the runs.
fn draw_policy(random: &mut Random) -> Option<String> {
    let name = random.pick(&other_policies().collect::<Vec<_>>());
    random.chance(500).then(|| name.to_owned())
}

/// The policy's default in half of the runs. Drawn from a separate generator, so that other draws stay the same.
fn draw_eviction(seed: u64) -> Option<EvictionKind> {
    let mut random = Random::new(seed).fork(0xe71c);
    random.chance(500).then(|| random.pick(&afflux_linux_policies::EVICTIONS))
}

/// Whether work on many pages releases the lock after each page. Drawn from a separate generator, so that other draws
/// stay the same.
fn draw_short_holds(scenario: &mut Scenario) {
    let mut random = Random::new(scenario.seed).fork(0x401d);
    if random.chance(400) {
        scenario.rare.push((Rare::ShortHold.name().to_owned(), random.pick(&[50, 600, 1000])));
    }
}

/// Three tasks that race around a cut, in some runs.
fn draw_cut(random: &mut Random, offsets: &Offsets, scenario: &mut Scenario) {
    if !random.chance(150) {
        return;
    }
    let count = random.between(4, 40);
    scenario.tasks.extend(patterns::cut(random, offsets, count, scenario.files.len() as u64));
    if random.chance(700) {
        let under_way = Rare::CopyUnderWay.name();
        scenario.rare.retain(|(name, _)| name != under_way);
        scenario.rare.push((under_way.to_owned(), random.pick(&[300, 900])));
    }
}

/// Callers that sync one file beside each other, on a disk that goes on with writes during a flush, in some runs. Drawn
/// from a separate generator, so that other draws stay the same.
fn draw_syncers(scenario: &mut Scenario, offsets: &Offsets, tame: bool) {
    let random = &mut Random::new(scenario.seed).fork(0x53c5);
    if !random.chance(80) {
        return;
    }
    let file = random.below(scenario.files.len() as u64);
    let device = &mut scenario.devices[scenario.files[file as usize].device as usize];
    let latency_ns = random.pick(&[100_000, 5_000_000]);
    *device = DeviceSpec { model: Some("throttled".to_owned()), volatile: 1, latency_ns, ..device.clone() };
    let in_call = Rare::SyncInCall.name();
    scenario.rare.retain(|(name, _)| name != in_call);
    scenario.rare.push((in_call.to_owned(), 1000));
    let count = random.between(4, 40);
    scenario.tasks.extend(patterns::syncers(random, offsets, count, file, !tame));
}

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed).fork(0x9e7e);
    let random = &mut random;
    // Every other seed runs without faults. Otherwise faults would excuse errors of a sound disk, too.
    let tame = random.chance(500);
    let mut scenario = Scenario {
        seed,
        frames: random.pick(&[64, 64, 64, 96, 128, 256, 256, 1024]),
        step_ns: random.pick(&[0, 100, 1_000, 10_000]),
        crash_us: if random.chance(150) { random.between(1, 3_000_000) } else { 0 },
        ..Scenario::default()
    };
    scenario.cpus = draw_cpus(random);
    scenario.policy = draw_policy(random);
    scenario.eviction = draw_eviction(seed);
    scenario.rare = draw_rare(random);
    if random.chance(50) {
        scenario.fail_allocation = random.between(1, 100);
    }
    for _ in 0..random.pick(&[0, 2, 6, 12]) {
        scenario.knobs.push(draw_knob(random));
    }
    for _ in 0..random.pick(&[1, 1, 2, 2, 3, 4]) {
        scenario.devices.push(draw_device(random, tame));
    }
    let offsets = Offsets::draw(random);
    for _ in 0..random.between(1, 4) {
        let size = if random.chance(400) { 0 } else { random.below(offsets.pages * PAGE) };
        scenario.files.push(FileSpec { device: random.below(scenario.devices.len() as u64), size });
    }
    let weights = Weights::draw(random);
    let length = random.pick(&[3, 8, 15, 30, 30, 120]);
    for _ in 0..random.between(1, 8) {
        let (count, mut last_end) = (random.between(1, length), 0);
        let (files, devices) = (scenario.files.len() as u64, scenario.devices.len() as u64);
        let ops = match random.below(12) {
            0 | 1 => patterns::log(random, &offsets, count, files),
            2 => patterns::rewriter(random, &offsets, count, files),
            3 => patterns::sectors(random, &offsets, count, files),
            4 => patterns::forgetter(random, &offsets, count, files, !tame),
            _ => (0..count).map(|_| draw_op(random, &weights, &offsets, &mut last_end, files, devices)).collect(),
        };
        scenario.tasks.push(ops);
    }
    draw_cut(random, &offsets, &mut scenario);
    if !tame {
        let mut ops = Vec::new();
        // Most work takes less time than most pauses, so some faults begin at once.
        let mut at_once = random.pick(&[0, 1, 1, 3]);
        for _ in 0..random.between(1, 10) {
            if at_once == 0 {
                ops.push(Op::Sleep { us: micros(random) });
            }
            at_once = u64::saturating_sub(at_once, 1);
            ops.push(draw_trouble(random, &scenario));
        }
        scenario.tasks.push(ops);
        for _ in 0..random.pick(&[0, 0, 1, 4]) {
            let (device, nth_max) = (random.below(scenario.devices.len() as u64), random.pick(&[5, 30, 200]));
            let what = random.below(6);
            scenario.fail_requests.push(FailRequest { device, nth: random.between(1, nth_max), what });
        }
    }
    draw_short_holds(&mut scenario);
    draw_syncers(&mut scenario, &offsets, tame);
    scenario
}

/// The scenario of a seed, under a policy (`None` is the engine's own), with all its disks of one model of the
/// catalogue.
pub fn generate_on(seed: u64, policy: Option<&str>, model: &str) -> Scenario {
    let mut scenario = generate(seed);
    scenario.policy = policy.map(ToOwned::to_owned);
    scenario.devices.iter_mut().for_each(|device| device.model = Some(model.to_owned()));
    scenario
}

/// Every policy, the engine's own first, with every model of the catalogue.
pub fn policies_and_models() -> Vec<(Option<&'static str>, &'static str)> {
    let policies = std::iter::once(None).chain(other_policies().map(Some));
    policies.flat_map(|policy| catalogue::names().into_iter().map(move |model| (policy, model))).collect()
}
