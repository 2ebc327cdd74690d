//! Carries out the loads: starts the writers of each, and computes its figures.
//!
//! Owns: the definition of each load.
//! Does not own: the list of loads (`plan`), the writers (`rig`).
//! Invariants: all writers begin at once, on an empty machine; a device's throughput counts the writes of its disk.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use afflux_engine::Nanos;
use afflux_engine::counters::Counter;
use afflux_report::Fields;

use super::devices::{Device, device};
use super::figures::{backlogs_ns, bytes, jain, sorted, written_between};
use super::plan::{Case, Load};
use super::raw::{self, RANDOM_PAGES, RawOrder};
use super::rig::{Order, Rig, Teller, Writing};
use crate::experiment::LabError;
use crate::machine::{PAGE_BYTES, lock, ms, rounded, seconds};
use crate::statistics::percentile;

const CALL_BYTES: u64 = 64 << 10;
/// Most virtual time to wait for the last dirty page at the end.
const DRAIN_NS_MAX: u64 = 1800 * Nanos::SECOND;
/// A burst that is not accepted within this time is given up.
const BURST_NS_MAX: u64 = 60 * Nanos::SECOND;
const BURST_BYTES: u64 = 400_000_000;
/// Time that the other writers have before a burst.
const BURST_AFTER_NS: u64 = 8 * Nanos::SECOND;
/// Size of the file that the load overwrites.
const REWRITTEN_BYTES: u64 = 64 << 20;
/// For a writer that writes until the run ends.
const FOR_EVER_NS: u64 = u64::MAX;

/// The devices' own throughput, each measured once.
#[derive(Default)]
pub(super) struct RawRates(BTreeMap<(&'static str, RawOrder, u64), f64>);

impl RawRates {
    fn of(&mut self, case: &Case, order: RawOrder) -> Result<f64, LabError> {
        let key = (case.device.name, order, case.seconds);
        match self.0.entry(key) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(vacant) => Ok(*vacant.insert(raw::bytes_per_s(case.device, order, case.seconds)?.max(1.0))),
        }
    }
}

/// The results of a case.
pub(super) struct Outcome {
    pub(super) metrics: Fields,
    /// Instants and backlogs in nanoseconds, for plots.
    pub(super) backlogs_ns: Vec<(u64, u64)>,
}

impl Case {
    fn end_ns(&self) -> u64 {
        self.seconds * Nanos::SECOND
    }

    fn rig(&self, devices: &[&Device]) -> Result<Rig, LabError> {
        Rig::new(self.law, devices, self.memory_bytes, self.seed)
    }

    pub(super) fn run(&self, raw: &mut RawRates) -> Result<Outcome, LabError> {
        let alone = |metrics| Outcome { metrics, backlogs_ns: Vec::new() };
        match self.load {
            Load::Stream => self.streams(1, raw),
            Load::Four => self.streams(4, raw),
            Load::Hundred => self.streams(100, raw),
            Load::Random | Load::StreamAndRandom => self.at_random(raw),
            Load::FsyncBeside => self.synced_beside(raw),
            Load::LightBeside => self.light_beside(),
            Load::ThreeSizes => self.three_sizes(),
            Load::BurstBesideFull | Load::BurstBesideHung => self.burst().map(alone),
            Load::RewriteOften => self.rewritten(800),
            Load::RewriteSeldom => self.rewritten(8000),
        }
    }

    fn streams(&self, count: usize, raw: &mut RawRates) -> Result<Outcome, LabError> {
        let rig = self.rig(&[self.device])?;
        let writers: Vec<Teller> =
            (0..count).map(|_| rig.write(&rig.file(0), Writing::onward(CALL_BYTES, self.end_ns()))).collect();
        let ended = self.ends(&rig)?;
        let raw_rate = raw.of(self, RawOrder::Stream)?;
        let shares: Vec<f64> = writers.iter().map(|writer| lock(writer).bytes as f64).collect();
        let half = self.end_ns() / 2;
        let later = written_between(&rig.looks(0), half, self.end_ns());
        let metrics = Fields::new()
            .with("percent_of_raw", percent(ended.written_bytes as f64, raw_rate * self.seconds as f64))
            .with("percent_of_raw_later", percent(later as f64, raw_rate * seconds(half)))
            .with("jain_of_bytes", rounded(jain(&shares), 4));
        Ok(self.outcome(&rig, &writers, &ended, metrics))
    }

    /// Random writes, alone or beside a stream. For both, the device's time for each of the two alone is added up.
    fn at_random(&self, raw: &mut RawRates) -> Result<Outcome, LabError> {
        let rig = self.rig(&[self.device])?;
        let onward = Writing::onward(PAGE_BYTES, self.end_ns());
        let order = Order::AtRandom { pages: RANDOM_PAGES };
        let random_file = rig.sized_file(0, RANDOM_PAGES * PAGE_BYTES);
        let random = rig.write(&random_file, Writing { order, ..onward });
        let mut writers = vec![Teller::clone(&random)];
        let stream_file = (self.load == Load::StreamAndRandom).then(|| rig.file(0));
        if let Some(file) = &stream_file {
            writers.push(rig.write(file, Writing::onward(CALL_BYTES, self.end_ns())));
        }
        rig.until(self.end_ns())?;
        let written = |teller: &Teller, dirty_bytes: u64| lock(teller).bytes.saturating_sub(dirty_bytes) as f64;
        let of_stream = stream_file.as_ref().map_or(0.0, |file| written(&writers[1], file.dirty_bytes()));
        let ended = self.ends(&rig)?;
        let of_random = ended.written_bytes as f64 - of_stream;
        let (time, random_rate) = (self.seconds as f64, raw.of(self, RawOrder::Random)?);
        let stream_rate = if stream_file.is_some() { raw.of(self, RawOrder::Stream)? } else { 1.0 };
        let metrics = Fields::new()
            .with("percent_of_raw", percent(of_random / random_rate + of_stream / stream_rate, time))
            .with("random_mb_per_s", rounded(of_random / 1e6 / time, 3))
            .with("stream_mb_per_s", rounded(of_stream / 1e6 / time, 3));
        Ok(self.outcome(&rig, &writers, &ended, metrics))
    }

    /// 4 KiB with an fsync, five times a second, beside a stream.
    fn synced_beside(&self, raw: &mut RawRates) -> Result<Outcome, LabError> {
        let rig = self.rig(&[self.device])?;
        let stream = rig.write(&rig.file(0), Writing::onward(CALL_BYTES, self.end_ns()));
        let small =
            Writing { every_ns: 200 * Nanos::MILLISECOND, syncs: true, ..Writing::onward(PAGE_BYTES, self.end_ns()) };
        let synced = rig.write(&rig.file(0), small);
        let ended = self.ends(&rig)?;
        let raw_rate = raw.of(self, RawOrder::Stream)?;
        let syncs = sorted(&[synced], |record| &record.syncs_ns);
        let metrics = Fields::new()
            .with("percent_of_raw", percent(ended.written_bytes as f64, raw_rate * self.seconds as f64))
            .with("fsyncs", syncs.len())
            .with("fsync_p50_ms", rounded(ms(percentile(&syncs, 500)), 2))
            .with("fsync_max_ms", rounded(ms(percentile(&syncs, 1000)), 2));
        Ok(self.outcome(&rig, &[stream], &ended, metrics))
    }

    /// 4 KiB every 100 ms, beside a stream to the same device.
    fn light_beside(&self) -> Result<Outcome, LabError> {
        let rig = self.rig(&[self.device])?;
        let stream = rig.write(&rig.file(0), Writing::onward(CALL_BYTES, self.end_ns()));
        let small = Writing { every_ns: 100 * Nanos::MILLISECOND, ..Writing::onward(PAGE_BYTES, self.end_ns()) };
        let light = rig.write(&rig.file(0), small);
        let ended = self.ends(&rig)?;
        let waits = sorted(&[light], |record| &record.writes_ns);
        let metrics = Fields::new()
            .with("light_p50_ms", rounded(ms(percentile(&waits, 500)), 3))
            .with("light_max_ms", rounded(ms(percentile(&waits, 1000)), 2));
        Ok(self.outcome(&rig, &[stream], &ended, metrics))
    }

    fn three_sizes(&self) -> Result<Outcome, LabError> {
        let rig = self.rig(&[self.device])?;
        let writers =
            [4 << 10, CALL_BYTES, 1 << 20].map(|call| rig.write(&rig.file(0), Writing::onward(call, self.end_ns())));
        rig.until(self.end_ns())?;
        let shares = writers.each_ref().map(|writer| lock(writer).bytes as f64);
        let ended = self.ends(&rig)?;
        let [small, middle, large] = shares.map(|bytes| rounded(bytes / 1e6, 2));
        let metrics = Fields::new()
            .with("jain_of_bytes", rounded(jain(&shares), 4))
            .with("mb_of_4k", small)
            .with("mb_of_64k", middle)
            .with("mb_of_1m", large);
        Ok(self.outcome(&rig, &writers, &ended, metrics))
    }

    /// 400 MB to the device alone, and beside another device that is full, or full and hung.
    fn burst(&self) -> Result<Fields, LabError> {
        let (alone, beside) = (self.burst_s(false)?, self.burst_s(true)?);
        let times = match (alone, beside) {
            (Some(alone), Some(beside)) => rounded(beside / alone, 3).into(),
            _ => serde_json::Value::Null,
        };
        let shown = |seconds: Option<f64>| seconds.map(|seconds| rounded(seconds, 4));
        Ok(Fields::new().with("alone_s", shown(alone)).with("beside_s", shown(beside)).with("times_alone", times))
    }

    fn burst_s(&self, beside: bool) -> Result<Option<f64>, LabError> {
        let slow = device("25MB/s").map_err(LabError::failed)?;
        let rig = self.rig(&[slow, self.device])?;
        if beside {
            rig.write(&rig.file(0), Writing::onward(CALL_BYTES, FOR_EVER_NS));
        }
        if beside && self.load == Load::BurstBesideHung {
            rig.until(BURST_AFTER_NS / 2)?;
            rig.disks[0].hang();
        }
        rig.until(BURST_AFTER_NS)?;
        let burst =
            rig.write(&rig.file(1), Writing { bytes_max: BURST_BYTES, ..Writing::onward(CALL_BYTES, FOR_EVER_NS) });
        let taken = rig.until_holds(BURST_NS_MAX, || lock(&burst).ended_ns.is_some())?;
        let ended_ns = lock(&burst).ended_ns;
        Ok(ended_ns.filter(|_| taken).map(|ended_ns| seconds(ended_ns - BURST_AFTER_NS)))
    }

    /// 64 MB overwritten at random, each page once per `every_ms` in the mean; then a sync of everything.
    fn rewritten(&self, every_ms: u64) -> Result<Outcome, LabError> {
        let pages = REWRITTEN_BYTES / PAGE_BYTES;
        let end_ns = Nanos::MILLISECOND * every_ms.max(4000) * if self.quick { 2 } else { 5 };
        let case = Case { seconds: end_ns / Nanos::SECOND, ..*self };
        let rig = case.rig(&[self.device])?;
        let order = Order::AtRandom { pages };
        let every_ns = every_ms * Nanos::MILLISECOND / pages;
        let writing = Writing { order, every_ns, ..Writing::onward(PAGE_BYTES, case.end_ns()) };
        let writers = [rig.write(&rig.sized_file(0, REWRITTEN_BYTES), writing)];
        let ended = case.ends(&rig)?;
        let (accepted, disk) = (bytes(&writers) as f64, rig.disks[0].figures().bytes.1 as f64);
        let dirtied = rig.count(Counter::PagesDirtied) as f64 * PAGE_BYTES as f64;
        let metrics = Fields::new()
            .with("written_per_accepted", rounded(disk / accepted.max(1.0), 4))
            .with("written_per_dirtied", rounded(disk / dirtied.max(1.0), 4));
        Ok(case.outcome(&rig, &writers, &ended, metrics))
    }

    /// Waits until the writers end, then until everything is synced.
    fn ends(&self, rig: &Rig) -> Result<Ended, LabError> {
        rig.until(self.end_ns())?;
        let written_bytes = rig.disks[0].figures().bytes.1;
        let syncs = rig.sync_all();
        let synced = || syncs.iter().all(|sync| lock(sync).ended_ns.is_some());
        let drained = rig.until_holds(DRAIN_NS_MAX, synced)?;
        let last_ns = syncs.iter().filter_map(|sync| lock(sync).ended_ns).max();
        let drain_ns = last_ns.filter(|_| drained).unwrap_or_else(|| rig.now_ns()) - self.end_ns();
        Ok(Ended { written_bytes, drained, drain_ns })
    }

    /// The figures that every load has, appended to `metrics`.
    fn outcome(&self, rig: &Rig, writers: &[Teller], ended: &Ended, metrics: Fields) -> Outcome {
        let (waits, looks) = (sorted(writers, |record| &record.writes_ns), rig.looks(0));
        let backlogs_ns = backlogs_ns(&looks);
        let (at_ns, worst_ns) = backlogs_ns.iter().copied().max_by_key(|(_, ns)| *ns).unwrap_or_default();
        // The largest limit, since the law stretches it while writers wait; its value at the start does not matter.
        let limit_ns = looks.iter().map(|look| look.limit_ns).max().unwrap_or(0);
        let metrics = metrics
            .with("written_mb_per_s", rounded(ended.written_bytes as f64 / 1e6 / self.seconds as f64, 3))
            .with("backlog_s", rounded(seconds(worst_ns), 3))
            .with("backlog_at_s", rounded(seconds(at_ns), 2))
            .with("write_p999_ms", rounded(ms(percentile(&waits, 999)), 3))
            .with("write_max_ms", rounded(ms(percentile(&waits, 1000)), 2))
            .with("sync_all_s", rounded(seconds(ended.drain_ns), 3))
            .with("drained", ended.drained)
            .with("limit_s", rounded(seconds(limit_ns), 3))
            .with("writes", waits.len())
            .with("accepted_mb", rounded(bytes(writers) as f64 / 1e6, 2))
            .with("write_requests", rig.count(Counter::WriteRequests))
            .with("throttle_pauses", rig.count(Counter::ThrottlePauses))
            .with("flusher_turns", rig.count(Counter::FlusherTurns))
            .with("delays", rig.delays());
        Outcome { metrics, backlogs_ns }
    }
}

/// How a case ended.
struct Ended {
    /// Bytes that the disk wrote while writers wrote.
    written_bytes: u64,
    drained: bool,
    /// From the writers' end until everything was synced.
    drain_ns: u64,
}

fn percent(part: f64, whole: f64) -> f64 {
    rounded(100.0 * part / whole.max(1e-9), 2)
}
