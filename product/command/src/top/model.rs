//! Rates and sums from reports and events.
//!
//! Owns: the last reports, the events of each file between them, the last waits that ended.
//! Does not own: asking (`follow`), order and filter (`rows`).
//! Invariants: a rate is a difference over the server's own time between the reports. All stored state is bounded,
//! however many files and clients there are.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use afflux_engine::DeviceStatus;

use super::follow::FollowedReport;
use super::rows::{self, CacheRow, ClientRow, DeviceRow, FileRow, Rows, SortOrder, WaitRates, WaitRow};
use crate::control::messages::{DeviceGauges, Happened, PeerGauges, Report, StoreGauges, TraceEvent};
use crate::serve::live::CLIENTS_IN_REPORT;

/// Reports behind the rates of clients and files.
const SPAN: usize = 5;

/// Seconds that curves cover.
const CURVE: usize = 120;

/// Most files that are listed separately from one report to the next.
const FILES_MAX: usize = 4_096;

/// Most finished waits that are stored.
const WAITS_MAX: usize = 500;

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    written_bytes: u64,
    read_bytes: u64,
    paused_ns: u64,
    synced_ns: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.written_bytes += other.written_bytes;
        self.read_bytes += other.read_bytes;
        self.paused_ns += other.paused_ns;
        self.synced_ns += other.synced_ns;
    }
}

/// By device and path.
type Tallies = BTreeMap<(String, String), Tally>;

#[derive(Debug, Default)]
struct Curves {
    owed_per_mille: VecDeque<u64>,
    written: VecDeque<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    /// The newest last, each with the events before it.
    reports: VecDeque<(Report, Tallies)>,
    curves: BTreeMap<String, Curves>,
    /// Each with the time of its end since the server was ready; the latest first.
    ended: VecDeque<(u64, WaitRow)>,
    lost: u64,
}

impl Model {
    pub(super) fn take(&mut self, sample: FollowedReport) {
        let FollowedReport { report, events, lost } = sample;
        if self.reports.back().is_some_and(|(before, _)| report.uptime_ns < before.uptime_ns) {
            // Another server has started: the old state does not apply to it.
            *self = Self::default();
        }
        self.lost += lost;
        let mut tallies = Tallies::new();
        for event in events {
            self.happened(event, &mut tallies);
        }
        self.draw(&report);
        self.reports.push_back((report, tallies));
        // One more than the span, since rates are differences.
        if self.reports.len() > SPAN + 1 {
            self.reports.pop_front();
        }
    }

    fn happened(&mut self, event: TraceEvent, tallies: &mut Tallies) {
        let TraceEvent { at_ns, device, file, client, what } = event;
        let device = device.unwrap_or_default();
        let mut tally = Tally::default();
        let mut waited = None;
        match &what {
            Happened::Submitted { operation, bytes, .. } => match operation.as_str() {
                "write" => tally.written_bytes = *bytes,
                "read" => tally.read_bytes = *bytes,
                _ => return,
            },
            Happened::PauseEnds { cause, ns, .. } => (tally.paused_ns, waited) = (*ns, Some((cause.clone(), *ns))),
            Happened::SyncEnds { ns, .. } => (tally.synced_ns, waited) = (*ns, Some(("sync".to_owned(), *ns))),
            _ => return,
        }
        if let Some((waits_for, ns)) = waited {
            let (device, file) = (device.clone(), file.clone());
            let row = WaitRow { ended_ns_ago: None, longest_ns: ns, times: 1, waits_for, device, client, file };
            self.ended.push_front((at_ns, row));
            self.ended.truncate(WAITS_MAX);
        }
        let Some(file) = file else { return };
        let key = (device, file);
        if tallies.len() >= FILES_MAX && !tallies.contains_key(&key) {
            return;
        }
        tallies.entry(key).or_default().add(&tally);
    }

    /// Adds a second to each device's curves.
    fn draw(&mut self, report: &Report) {
        let Some((before, _)) = self.reports.back() else { return };
        let time = between(before, report);
        self.curves.retain(|name, _| report.devices.iter().any(|device| device.status.name == *name));
        for device in &report.devices {
            let curves = self.curves.entry(device.status.name.clone()).or_default();
            let (owed, full) = match (device.figure("owed_ns"), device.figure("budget_in_force_ns")) {
                (Some(owed), Some(budget)) => (owed, budget),
                _ => (device.status.dirty_bytes, device.status.dirty_limit_bytes),
            };
            let written = rate(device.status.written_bytes, of_device(before, device, |it| it.written_bytes), time);
            for (curve, value) in
                [(&mut curves.owed_per_mille, thousandths(owed, full)), (&mut curves.written, written)]
            {
                curve.push_back(value);
                if curve.len() > CURVE {
                    curve.pop_front();
                }
            }
        }
    }

    /// Whether there are two reports to compute rates from.
    pub(super) fn has_rates(&self) -> bool {
        self.reports.len() > 1
    }

    pub(super) fn rows(&self) -> Rows {
        let Some((now, _)) = self.reports.back() else { return Rows::default() };
        let before = self.reports.iter().rev().nth(1).map_or(now, |(before, _)| before);
        let mut rows = Rows {
            listen: now.listen.clone(),
            uptime_ns: now.uptime_ns,
            policy: now.policy.clone(),
            cache: cache(before, now),
            connections: now.nfs.connections,
            open_files: now.nfs.open_files,
            delegations: now.nfs.delegations,
            locked_ranges: now.nfs.locked_ranges,
            calls_per_s: rate(now.calls(), before.calls(), between(before, now)),
            devices: now.devices.iter().map(|device| self.device(before, now, device)).collect(),
            clients: self.clients(now),
            files: self.files(now),
            waits: self.waits(now),
            lost_events: self.lost,
        };
        rows.sort(SortOrder::default());
        rows
    }

    fn device(&self, before: &Report, now: &Report, device: &DeviceGauges) -> DeviceRow {
        let time = between(before, now);
        let status = &device.status;
        let rate_of = |value: fn(&DeviceStatus) -> u64| rate(value(status), of_device(before, device, value), time);
        let curves = self.curves.get(&status.name);
        let curve = |of: fn(&Curves) -> &VecDeque<u64>| curves.map(|it| of(it).iter().copied().collect());
        DeviceRow {
            status: status.clone(),
            owed_ns: device.figure("owed_ns"),
            budget_ns: device.figure("budget_in_force_ns"),
            written_bytes_per_s: rate_of(|it| it.written_bytes),
            read_bytes_per_s: rate_of(|it| it.read_bytes),
            store_requests_per_s: device.store.as_ref().map(|store| {
                let all = |store: &StoreGauges| store.puts + store.gets + store.lists + store.deletes;
                let earlier = before.device(&status.name).and_then(|device| device.store.as_ref());
                rate(all(store), all(earlier.unwrap_or(store)), time)
            }),
            disk_cache_percent: device.store.as_ref().and_then(|store| {
                let earlier = before.device(&status.name).and_then(|device| device.store.as_ref()?.disk_cache);
                store.disk_cache?.hit_percent(&earlier.unwrap_or_default())
            }),
            owed_per_mille: curve(|it| &it.owed_per_mille).unwrap_or_default(),
            written: curve(|it| &it.written).unwrap_or_default(),
        }
    }

    /// Clients with connections, and clients that wait or have waited.
    fn clients(&self, now: &Report) -> Vec<ClientRow> {
        let Some((oldest, _)) = self.reports.front() else { return Vec::new() };
        let time = between(oldest, now);
        let mut clients = BTreeMap::<&str, ClientRow>::new();
        for (name, peer) in &now.nfs.clients {
            let row = clients.entry(name).or_default();
            row.connections = peer.connections;
            row.received_bytes_per_s = rate(self.moved(name, |peer| peer.received_bytes), 0, time);
            row.sent_bytes_per_s = rate(self.moved(name, |peer| peer.sent_bytes), 0, time);
        }
        let earlier = waited(oldest);
        // If the old report is full, a client that it lacks may have waited before.
        let is_crowded = oldest.devices.iter().any(|device| device.clients.len() >= CLIENTS_IN_REPORT);
        for (name, waited) in waited(now) {
            let missing = if is_crowded { waited } else { WaitRates::default() };
            let before = earlier.get(name).copied().unwrap_or(missing);
            let since = WaitRates::each(|delay| rate(waited.of(delay), before.of(delay), time));
            if rows::all(&since) > 0 || clients.contains_key(name) {
                clients.entry(name).or_default().waited = since;
            }
        }
        for waiter in now.devices.iter().flat_map(|device| &device.waiting) {
            if let Some(name) = &waiter.client {
                clients.entry(name).or_default().waiting += waiter.calls;
            }
        }
        clients.into_iter().map(|(name, row)| ClientRow { name: name.to_owned(), ..row }).collect()
    }

    /// Bytes that a client has moved in the span. A client's counts restart at zero with new connections.
    fn moved(&self, client: &str, value: impl Fn(&PeerGauges) -> u64) -> u64 {
        let counts = |report: &Report| report.nfs.clients.get(client).map_or(0, &value);
        let reports = self.reports.iter().map(|(report, _)| counts(report));
        reports.clone().zip(reports.skip(1)).map(|(before, now)| now.checked_sub(before).unwrap_or(now)).sum()
    }

    /// Files with requests to their device, and files that calls wait for or have waited for.
    fn files(&self, now: &Report) -> Vec<FileRow> {
        let Some((oldest, _)) = self.reports.front() else { return Vec::new() };
        let time = between(oldest, now);
        let mut sums = Tallies::new();
        for ((device, file), tally) in self.reports.iter().skip(1).flat_map(|(_, tallies)| tallies) {
            sums.entry((device.clone(), file.clone())).or_default().add(tally);
        }
        let mut waiting = BTreeMap::<(String, String), u64>::new();
        for device in &now.devices {
            for waiter in &device.waiting {
                let key = (device.status.name.clone(), waiter.file.clone());
                sums.entry(key.clone()).or_default();
                *waiting.entry(key).or_default() += waiter.calls;
            }
        }
        let row = |(key, tally): ((String, String), Tally)| FileRow {
            waiting: waiting.get(&key).copied().unwrap_or(0),
            device: key.0,
            name: key.1,
            written_bytes_per_s: rate(tally.written_bytes, 0, time),
            read_bytes_per_s: rate(tally.read_bytes, 0, time),
            paused_ns_per_s: rate(tally.paused_ns, 0, time),
            synced_ns_per_s: rate(tally.synced_ns, 0, time),
        };
        sums.into_iter().map(row).collect()
    }

    fn waits(&self, now: &Report) -> Vec<WaitRow> {
        let mut rows = Vec::new();
        for device in &now.devices {
            rows.extend(device.waiting.iter().map(|waiter| WaitRow {
                ended_ns_ago: None,
                longest_ns: waiter.ns,
                times: waiter.calls,
                waits_for: waiter.waits_for.clone(),
                device: device.status.name.clone(),
                client: waiter.client.clone(),
                file: Some(waiter.file.clone()),
            }));
            let store = device.store.as_ref().and_then(|store| Some((store.slow_ns()?, store.waiting)));
            rows.extend(store.map(|(longest_ns, times)| WaitRow {
                ended_ns_ago: None,
                longest_ns,
                times,
                waits_for: "store".to_owned(),
                device: device.status.name.clone(),
                client: None,
                file: None,
            }));
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.longest_ns));
        let mut ended = Vec::<WaitRow>::new();
        for (at_ns, row) in &self.ended {
            if let Some(same) = ended.iter_mut().find(|same| same.is_as(row)) {
                same.longest_ns = same.longest_ns.max(row.longest_ns);
                same.times += 1;
            } else {
                let ended_ns_ago = Some(now.uptime_ns.saturating_sub(*at_ns));
                ended.push(WaitRow { ended_ns_ago, ..row.clone() });
            }
        }
        rows.extend(ended);
        rows
    }
}

/// The time between the reports by the server's clock.
fn between(before: &Report, now: &Report) -> Duration {
    Duration::from_nanos(now.uptime_ns.saturating_sub(before.uptime_ns))
}

/// The rate per second; zero if the count has restarted meanwhile.
fn rate(now: u64, before: u64, time: Duration) -> u64 {
    let moved = u128::from(now.saturating_sub(before));
    let per_second = (moved * 1_000_000_000).checked_div(time.as_nanos()).unwrap_or(0);
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// In thousandths.
fn thousandths(part: u64, whole: u64) -> u64 {
    let thousandths = (u128::from(part) * 1_000).checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(thousandths).unwrap_or(u64::MAX)
}

/// The value of the same device in an earlier report; for a new device, the current value.
fn of_device(before: &Report, device: &DeviceGauges, value: impl Fn(&DeviceStatus) -> u64) -> u64 {
    value(&before.device(&device.status.name).unwrap_or(device).status)
}

fn cache(before: &Report, now: &Report) -> CacheRow {
    let status = &now.cache.status;
    CacheRow {
        cache_bytes: status.cache_bytes,
        used_bytes: status.cache_bytes.saturating_sub(status.free_bytes),
        dirty_bytes: status.dirty_bytes,
        hit_pages: now.counted_since(before, "read_hit_pages"),
        miss_pages: now.counted_since(before, "read_miss_pages"),
    }
}

/// Waits of each client for all devices since the start, for all its users together.
fn waited(report: &Report) -> BTreeMap<&str, WaitRates> {
    let mut sums = BTreeMap::<&str, WaitRates>::new();
    for delays in report.devices.iter().flat_map(|device| &device.clients) {
        let Some(client) = &delays.client else { continue };
        let sum = sums.entry(client).or_default();
        *sum = WaitRates::each(|delay| sum.of(delay) + delays.times.of(delay).ns);
    }
    sums
}
