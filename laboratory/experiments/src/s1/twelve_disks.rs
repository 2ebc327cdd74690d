//! Twelve disks of two partitions, eight sequential writers in each: the regression of 2.6.31-rc2.
//!
//! Published, in the post that began S1's thread: 460 MB/s with 2.6.31-rc1, about 400 with rc2; 450 with the tree of
//! that day, and 484 with the test on the share taken out of it. The post does not describe the machine, so the changes
//! are compared and not the rates. Put in: disks of 60 MB/s, 8 CPUs, the memory. Each file has a region of its own,
//! eight in each half of a disk, as a file system spreads directories over its groups. The second pair is a hold-out.
//!
//! Owns: the case. Does not own: the machine, the policies.
//! Invariants: the first seconds, in which the dirty limit fills, are not counted.

use afflux_engine::Nanos;
use afflux_report::{Fields, Row};

use super::machines::{DISK_CACHE_KIB, DiskQueue, Machine, Parameters, Variant, each, params};
use super::options::SharedOptions;
use crate::experiment::{LabError, Watch};
use crate::machine::{PAGE_BYTES, Span, rounded, row};

const PARTITIONS: u64 = 2;
const WRITERS: u64 = 8;
const CPUS: usize = 8;
const CALL_BYTES: u64 = 64 << 10;

/// The size of a run.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) disks: u64,
    pub(super) warm_s: u64,
    pub(super) counted_s: u64,
}

impl Size {
    pub(super) const WHOLE: Self = Self { disks: 12, warm_s: 20, counted_s: 40 };
    /// A quarter of the disks with a quarter of the memory: shares and queues are as in the whole.
    pub(super) const QUICK: Self = Self { disks: 3, warm_s: 10, counted_s: 10 };
}

/// The parameters of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) queue: DiskQueue,
    pub(super) disk_rate: u64,
    /// Memory of the whole machine with twelve disks.
    pub(super) memory_bytes: u64,
}

/// A disk's rate. Nothing in this case is matched to a published rate.
const DISK_RATE: u64 = 60_000_000;

fn machine(variant: &Variant, size: Size, setting: Setting, seed: u64) -> Result<Machine, LabError> {
    let memory_bytes = setting.memory_bytes / PAGE_BYTES * size.disks / 12 * PAGE_BYTES;
    let parameters = Parameters::of("disk-82", size.disks as usize, setting.queue, memory_bytes, seed)?;
    let mut parameters = Parameters { cpus: CPUS, partitions: PARTITIONS as usize, ..parameters };
    parameters.disks.iter_mut().for_each(|disk| disk.zones = vec![(1000, setting.disk_rate)]);
    Machine::new(variant, parameters)
}

fn start_writers(machine: &Machine, size: Size, setting: Setting) {
    // More than any of them writes in the time.
    let bytes = setting.disk_rate * (size.warm_s + size.counted_s);
    for (at, watched) in machine.disks.iter().enumerate() {
        let files = PARTITIONS * WRITERS;
        let region = (500_000_000_000 / files).saturating_sub(bytes);
        for number in 0..files {
            let file = machine.file(at, (number / WRITERS) as usize);
            if !setting.queue.queue.at_submission {
                watched.disk.lay_out(file.id, bytes);
                let gap = watched.disk.create_file();
                watched.disk.lay_out(gap, region);
            }
            machine.stream(&file, u64::MAX / 4, CALL_BYTES);
        }
    }
}

/// The thread's figure for a variant, if the disks and the queues are the same.
fn published(variant: &str, disks: u64, nr_requests: u64) -> Fields {
    let mb_per_s = match (variant, disks, nr_requests) {
        ("linux-2.6.31-rc1" | "linux-2.6.31-rc1-plain-100ms", 12, 128) => 460,
        ("linux-2.6.31" | "linux-2.6.31-plain-100ms", 12, 128) => 400,
        ("linux-2.6.32", 12, 128) => 450,
        ("linux-2.6.32-no-share-test", 12, 128) => 484,
        _ => return Fields::new(),
    };
    Fields::new().with("throughput_mb_per_s", mb_per_s)
}

fn own_params(size: Size, setting: Setting, seed: u64) -> Fields {
    params("twelve-disks", setting.queue, seed)
        .with("disks", size.disks)
        .with("memory_mib", setting.memory_bytes >> 20)
        .with("disk_mb_per_s", setting.disk_rate / 1_000_000)
        .with("allocate_at_submission", setting.queue.queue.at_submission)
}

pub(super) fn run_one(variant: &Variant, size: Size, setting: Setting, seed: u64) -> Result<Row, LabError> {
    let machine = machine(variant, size, setting, seed)?;
    start_writers(&machine, size, setting);
    machine.sleep(size.warm_s * Nanos::SECOND)?;
    let from = machine.tally();
    machine.sleep(size.counted_s * Nanos::SECOND)?;
    let to = machine.tally();
    let span = Span::between(&from, &to);
    let params = own_params(size, setting, seed);
    let mut metrics = span.metrics(setting.queue.queue.nr_requests);
    if span.count("balance_waits") > 0 {
        let pages = span.count("nr_dirtied") as f64 / span.count("balance_waits") as f64;
        metrics.push("stored_a_sleep_pages", rounded(pages, 0));
    }
    let metrics = metrics.with("software", span.software());
    let published = published(variant.name, size.disks, setting.queue.queue.nr_requests);
    Ok(row("s1", variant.name, params, metrics, published))
}

/// A machine for the case.
struct Rig {
    nr_requests: u64,
    request_kib: u64,
    memory_bytes: u64,
    variants: &'static [&'static Variant],
    in_quick: bool,
}

/// Without the plain waits, which change little here.
const WOKEN: &[&Variant] = &[
    &Variant::RC1,
    &Variant::PDFLUSH,
    &Variant::FLUSHERS,
    &Variant::FLUSHERS_UNTESTED,
    &Variant::AFFLUX,
    &Variant::AFFLUX_2S,
];

/// Chosen by the part of a disk's share of the dirty limit that its queue holds: all of it with 2 GiB, half with 8.
/// Then small requests, and a long queue.
const RIGS: &[Rig] = &[
    Rig { nr_requests: 128, request_kib: 512, memory_bytes: 2 << 30, variants: WOKEN, in_quick: true },
    Rig { nr_requests: 128, request_kib: 512, memory_bytes: 4 << 30, variants: WOKEN, in_quick: false },
    Rig { nr_requests: 128, request_kib: 512, memory_bytes: 8 << 30, variants: WOKEN, in_quick: true },
    Rig { nr_requests: 128, request_kib: 64, memory_bytes: 8 << 30, variants: Variant::ALL, in_quick: false },
    Rig { nr_requests: 2048, request_kib: 64, memory_bytes: 8 << 30, variants: Variant::ALL, in_quick: false },
];

/// The case, for the experiment.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<(), LabError> {
    let size = if common.quick { Size::QUICK } else { Size::WHOLE };
    let rigs = RIGS.iter().filter(|rig| !common.quick || rig.in_quick);
    let runs = rigs.flat_map(|rig| {
        let setting = Setting {
            queue: DiskQueue {
                queue: common.queue(rig.nr_requests, rig.request_kib),
                cache_kib: common.cache_kib(DISK_CACHE_KIB),
            },
            disk_rate: common.disk_rate.unwrap_or(DISK_RATE),
            memory_bytes: common.memory_bytes(rig.memory_bytes),
        };
        rig.variants.iter().map(move |variant| (*variant, setting))
    });
    let mut rates = Vec::new();
    each(watch, "twelve-disks", runs.collect(), |variant, setting| {
        let row = run_one(variant, size, setting, common.seed)?;
        let rate = row.metrics.get("throughput_mb_per_s").and_then(serde_json::Value::as_f64);
        rates.push((variant.name, setting, rate.unwrap_or_default()));
        Ok(row)
    })?;
    changes(size, &rates, common.seed).iter().for_each(|row| watch.row(row));
    Ok(())
}

/// What the test on the share costs in 2.6.31 and with flushers, and the engine beside the kernel without the test.
pub(super) const SHARE_TEST_31: &str = "2.6.31-rc1 to 2.6.31";
pub(super) const SHARE_TEST_32: &str = "flushers, without the test to with it";
pub(super) const OWN_TO_RC1: &str = "2.6.31-rc1 to afflux";
pub(super) const OWN_2S_TO_RC1: &str = "2.6.31-rc1 to afflux with two seconds";

/// Two rates of a setting as a change in percent: in these the unknown speed of the published disks cancels out.
fn changes(size: Size, rates: &[(&str, Setting, f64)], seed: u64) -> Vec<Row> {
    let pairs = [
        (SHARE_TEST_31, &Variant::RC1, &Variant::PDFLUSH, Some((460.0, 400.0))),
        (SHARE_TEST_32, &Variant::FLUSHERS_UNTESTED, &Variant::FLUSHERS, Some((484.0, 450.0))),
        (OWN_TO_RC1, &Variant::RC1, &Variant::AFFLUX, None),
        (OWN_2S_TO_RC1, &Variant::RC1, &Variant::AFFLUX_2S, None),
    ];
    let of = |(name, from, to, printed): (&str, &Variant, &Variant, Option<(f64, f64)>)| {
        let to = rates.iter().filter(move |(variant, ..)| *variant == to.name);
        let row = move |(_, setting, to): &(&str, Setting, f64)| {
            let (.., from) = rates.iter().find(|(other, own, _)| *other == from.name && own == setting)?;
            let percent =
                |from: f64, to: f64| Fields::new().with("change_percent", rounded((to / from - 1.0) * 100.0, 1));
            let published = printed.filter(|_| setting.queue.queue.nr_requests == 128);
            let published = published.map_or_else(Fields::new, |(from, to)| percent(from, to));
            Some(row("s1", name, own_params(size, *setting, seed), percent(*from, *to), published))
        };
        to.filter_map(row).collect::<Vec<_>>()
    };
    pairs.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests;
