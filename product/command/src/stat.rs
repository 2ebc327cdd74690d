//! `afflux stat`: the state of a running server.
//!
//! Owns: the lines of `--verbose`, with a device's waits and its policy's figures in force below it, and their words.
//! Does not own: the figures (the server's report, the policy), the tables without `--verbose` (`top`), showing again
//! (`watch`).
//! Invariants: a rate is the difference of two reports over the time between them. There is no line for a cause without
//! waits, nor for a missing figure; the number of lines is bounded.

#[cfg(test)]
pub(crate) mod tests;

use std::thread;
use std::time::Duration;

use afflux_engine::gauges::Gauge;
use afflux_engine::{DEVICE_FIGURES, ENGINE_FIGURES, WaitTimes};
use afflux_report::failure::Outcome;
use afflux_report::{output, units};

use crate::args;
use crate::control::ControlClient;
use crate::control::messages::{
    AnsweredCalls, CacheGauges, ControlReply, ControlRequest, DelayGauges, DeviceGauges, DirtyFileReport,
    DiskCacheGauges, FigureGauge, LockerGauges, PauseGauges, PeerGauges, Report, SERVED_DEVICE_FIGURES, UnwrittenFiles,
    WaiterGauges,
};
use crate::top::Tables;
use crate::watch::{self, Watch};

/// Time between the two reports behind a rate.
const ONCE_INTERVAL: Duration = Duration::from_millis(500);

/// Size of a page of the cache.
const PAGE_BYTES: u64 = 4096;

pub(crate) fn run(args: &args::StatArgs) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    if args.files {
        let watch = Watch { again: args.watch, redraws: !args.json, pause: watch::EVERY };
        return watch.show(|| {
            let files = dirty_files(&mut client)?;
            if args.json { watch::json_line(&files) } else { Ok(file_lines(&files)) }
        });
    }
    if args.json {
        let watch = Watch { again: args.watch, redraws: false, pause: watch::EVERY };
        return watch.show(|| watch::json_line(&client.report()?));
    }
    let mut before = client.report()?;
    let mut tables = Tables::default();
    tables.take(before.clone());
    // Each text takes the time between its reports.
    Watch { again: args.watch, redraws: true, pause: Duration::ZERO }.show(|| {
        thread::sleep(if args.watch { watch::EVERY } else { ONCE_INTERVAL });
        let now = client.report()?;
        tables.take(now.clone());
        let text = if args.verbose { lines(&before, &now) } else { tables.text() };
        before = now;
        Ok(text)
    })
}

fn dirty_files(client: &mut ControlClient) -> Outcome<UnwrittenFiles> {
    client.ask(&ControlRequest::Files)?;
    match client.reply()? {
        ControlReply::Files(files) => Ok(files),
        other => Err(client.unexpected(&other)),
    }
}

/// A line for each file: its unwritten bytes, its name, and why it is not written.
fn file_lines(dirty: &UnwrittenFiles) -> String {
    if dirty.files.is_empty() {
        return "everything is written\n".to_owned();
    }
    let mut text = String::new();
    for DirtyFileReport { file, bytes, reason } in &dirty.files {
        let why = reason.as_ref().map(|why| format!("  NOT WRITTEN: {}", output::shown(why))).unwrap_or_default();
        text.push_str(&format!("{:>9}  {}{why}\n", units::data(*bytes), output::shown(file)));
    }
    if dirty.others > 0 {
        let files = units::plural(dirty.others, "more file");
        text.push_str(&format!("{:>9}  in {files}\n", units::data(dirty.others_bytes)));
    }
    text
}

/// One line for each device, followed by lines for the policy and the waits; one line for the cache, one for NFS.
fn lines(before: &Report, now: &Report) -> String {
    let time = Duration::from_nanos(now.uptime_ns.saturating_sub(before.uptime_ns));
    let mut rows = Vec::new();
    for device in &now.devices {
        let earlier = before.device(&device.status.name);
        rows.push((output::shown(&device.status.name), device_line(earlier, device, time)));
        let figures = policy_lines(device).into_iter().chain(wait_lines(earlier, device, time));
        let below = [bdi_line(&now.cache, device)].into_iter().chain(figures);
        rows.extend(below.map(|line| (String::new(), format!("  {line}"))));
    }
    let mut add = |name: &str, line: String| rows.push((name.to_owned(), line));
    add("cache", cache_line(before, now, time));
    add("nfs", nfs_line(before, now, time));
    if let Some(point) = &now.mount {
        let calls = answered_parts(before.mount_answered, now.mount_answered, time).join("   ");
        add("mount", format!("{}   {calls}", output::shown(point)));
    }
    now.nfs.tls_certificate_ns.and_then(certificate_line).into_iter().for_each(|line| add("tls", line));
    let secured = now.nfs.clients.iter().filter(|(_, client)| client.tls_connections > 0);
    secured.for_each(|(address, client)| add("tls", tls_line(address, client)));
    now.nfs.lockers.iter().for_each(|locker| add("state", locker_line(locker)));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, line)| format!("{name:width$}  {line}\n")).collect()
}

/// A certificate that expires soon.
fn certificate_line(left_ns: u64) -> Option<String> {
    const DAY_NS: u64 = 86_400_000_000_000;
    match left_ns / DAY_NS {
        _ if left_ns == 0 => Some("the certificate has expired: renew it".to_owned()),
        0 => Some("the certificate expires in less than a day: renew it".to_owned()),
        days @ ..14 => Some(format!("the certificate expires in {}: renew it", units::plural(days, "day"))),
        _ => None,
    }
}

fn device_line(before: Option<&DeviceGauges>, device: &DeviceGauges, time: Duration) -> String {
    let now = &device.status;
    let written = now.written_bytes.saturating_sub(before.map_or(now.written_bytes, |b| b.status.written_bytes));
    let flushed = match (now.background_threshold_bytes, now.write_bandwidth_bytes_per_s) {
        (0, None) => "flushed at once (speed not known yet)".to_owned(),
        (bytes, _) => format!("flushed above {}", units::memory(bytes)),
    };
    let (dirty, limit) = (units::memory(now.dirty_bytes), units::memory(now.dirty_limit_bytes));
    let unsynced_bytes = device.store.as_ref().map_or(0, |store| store.unsynced_bytes);
    let owed = match now.dirty_bytes.saturating_sub(unsynced_bytes) / PAGE_BYTES {
        0 if unsynced_bytes > 0 => " (sent, not yet durable)".to_owned(),
        0 => String::new(),
        pages => format!(" ({} in {})", units::plural(pages, "page"), units::plural(now.dirty_runs, "run")),
    };
    let mut parts =
        vec![format!("{} write", units::rate(written, time)), format!("dirty {dirty}{owed} of {limit}, {flushed}")];
    if let Some(speed) = now.write_bandwidth_bytes_per_s {
        parts.push(format!("writes up to {}", units::rate(speed, Duration::from_secs(1))));
    }
    if now.in_flight > 0 {
        let requests = units::plural(now.in_flight.into(), "request");
        parts.push(format!("in flight {} in {requests}", units::memory(now.writeback_bytes)));
    }
    if now.writers_waiting > 0 {
        parts.push(format!("{} waiting", units::plural(now.writers_waiting.into(), "writer")));
    }
    // A device whose store is away has completed nothing, too.
    if let Some(ns) = now.stalled_ns.filter(|_| now.away_ns.is_none()) {
        let refuses = if now.refuses { ", writers and syncs are refused" } else { "" };
        parts.push(format!("HANGS: has completed nothing for {}{refuses}", units::latency(ns)));
    }
    if let Some(ns) = now.names_stalled_ns {
        parts.push(format!("HANGS: a call for names or attributes has not ended for {}", units::latency(ns)));
    }
    if let Some(ns) = now.away_ns {
        let why = output::bracketed(device.store.as_ref().and_then(|store| store.trouble.as_ref()));
        parts.push(format!("AWAY: has not answered for {}{why}, writers and syncs wait", units::latency(ns)));
    }
    if let Some(store) = &device.store {
        let earlier = before.and_then(|before| before.store.clone()).unwrap_or_default();
        let since = |now: u64, before: u64| per_second(now.saturating_sub(before), time);
        let rates = [
            ("PUT", store.puts, earlier.puts),
            ("GET", store.gets, earlier.gets),
            ("LIST", store.lists, earlier.lists),
            ("DELETE", store.deletes, earlier.deletes),
        ];
        let each = rates.map(|(name, now, before)| format!("{name} {} ({}/s)", units::count(now), since(now, before)));
        parts.push(format!("requests {}", each.join(" ")));
        parts.extend(store.disk_cache.as_ref().map(disk_cache));
        if let Some(ns) = store.slow_ns().filter(|_| now.away_ns.is_none()) {
            let why = output::bracketed(store.trouble.as_ref());
            let requests = units::plural(store.waiting, "request");
            parts.push(format!("waiting for the store: {requests}, the oldest for {}{why}", units::latency(ns)));
        }
        if store.is_read_only {
            parts.push(format!("only read here, as of {} ago", units::latency(store.silent_ns)));
        }
    }
    if now.files_failed > 0 {
        // An error of one file, such as its owner's quota, is none of the device's.
        let why = output::bracketed(device.last_error.as_ref());
        parts.push(format!("{} could not be written{why}", units::plural(now.files_failed.into(), "file")));
    }
    parts.join("   ")
}

fn disk_cache(disk: &DiskCacheGauges) -> String {
    let mut told = format!(
        "disk cache {} % of {}, {} read, {} written",
        disk.hit_percent(&DiskCacheGauges::default()).unwrap_or_default(),
        units::plural(disk.hits + disk.misses, "part"),
        units::memory(disk.read_bytes),
        units::memory(disk.written_bytes)
    );
    if disk.dropped > 0 {
        told += &format!(", {} damaged", units::count(disk.dropped));
    }
    if disk.rests > 0 {
        told += &format!(", too slow {}", units::plural(disk.rests, "time"));
    }
    told
}

/// A device's figures as in `/sys/kernel/debug/bdi/*/stats`, under the same names, with sizes in kB.
fn bdi_line(cache: &CacheGauges, device: &DeviceGauges) -> String {
    let status = &device.status;
    let reclaimable = status.dirty_bytes.saturating_sub(status.writeback_bytes);
    let computed = [as_kernel("BdiReclaimable", "bytes", Some(reclaimable))];
    let figures = by_kernel(DEVICE_FIGURES, status).chain(computed).chain(by_kernel(ENGINE_FIGURES, &cache.status));
    figures.chain(by_kernel(SERVED_DEVICE_FIGURES, device)).collect::<Vec<_>>().join("  ")
}

/// The figures of a record that the kernel has a name for.
fn by_kernel<T>(figures: &'static [Gauge<T>], record: &T) -> impl Iterator<Item = String> {
    let named = figures.iter().filter(|figure| !figure.kernel.is_empty());
    named.map(move |figure| as_kernel(figure.kernel, figure.unit, (figure.value)(record)))
}

fn as_kernel(name: &str, unit: &str, number: Option<u64>) -> String {
    match (number, unit) {
        (None, _) => format!("{name} unknown"),
        (Some(bytes), "bytes") => format!("{name} {} kB", units::count(bytes / 1024)),
        (Some(speed), "bytes/s") => format!("{name} {} kBps", units::count(speed / 1024)),
        (Some(number), _) => format!("{name} {}", units::count(number)),
    }
}

fn cache_line(before: &Report, now: &Report, time: Duration) -> String {
    let (gauges, cache) = (&now.cache, &now.cache.status);
    let used = cache.cache_bytes.saturating_sub(cache.free_bytes);
    let resident = gauges.resident_huge_bytes + gauges.resident_base_bytes;
    let (hit, miss) = (now.counted_since(before, "read_hit_pages"), now.counted_since(before, "read_miss_pages"));
    let so_far = |counter: &str| now.counters.get(counter).copied().unwrap_or(0);
    let (written, dirtied) = (so_far("pgpgout"), so_far("nr_dirtied") * PAGE_BYTES);
    let arena = gauges.arena.as_ref().map(|arena| format!("arena {}", output::shown(arena)));
    [
        format!("{} of {}", units::memory(used), units::memory(cache.cache_bytes)),
        format!("hit {}", units::percent(hit, hit + miss)),
        format!("dirty {}", units::memory(cache.dirty_bytes)),
        format!("written {} for each byte that became dirty", units::times(written, dirtied)),
        format!("evicted {}/s by {}", per_second(now.counted_since(before, "pgsteal"), time), now.eviction),
        units::plural(cache.files, "file"),
        format!(
            "memory {}, {} of it in 2 MiB pages",
            units::memory(resident),
            units::memory(gauges.resident_huge_bytes)
        ),
    ]
    .into_iter()
    .chain(arena)
    .collect::<Vec<_>>()
    .join("   ")
}

/// A client with TLS, and the names that it has proved.
fn tls_line(address: &str, client: &PeerGauges) -> String {
    let (secured, all) = (client.tls_connections, units::plural(client.connections, "connection"));
    let names: Vec<String> = client.certificates.iter().map(output::shown).collect();
    let names = if names.is_empty() { String::new() } else { format!("   certificate of {}", names.join(", ")) };
    format!("{address}   {secured} of {all}{names}")
}

/// A client with opens or locks, by the number that `afflux unlock` takes, or a mount.
fn locker_line(locker: &LockerGauges) -> String {
    let name = output::shown(&locker.name);
    let mut parts = vec![locker.number.map_or_else(|| name.clone(), |number| format!("client {number} ({name})"))];
    if locker.opens > 0 {
        parts.push(units::plural(locker.opens, "open file"));
    }
    if locker.ranges > 0 {
        parts.push(units::plural(locker.ranges, "lock"));
    }
    if locker.denying > 0 {
        parts.push(format!("{} that keep others out", units::plural(locker.denying, "open file")));
    }
    if locker.waiting > 0 {
        parts.push(format!("{} waiting", units::plural(locker.waiting, "program")));
    }
    parts.join("   ")
}

/// The rates of the calls that a front end answers.
fn answered_parts(before: AnsweredCalls, now: AnsweredCalls, time: Duration) -> Vec<String> {
    let since = |count: fn(AnsweredCalls) -> u64| count(now).saturating_sub(count(before));
    let mut parts = vec![format!("{} calls/s", per_second(since(|it| it.calls), time))];
    let shown = [("READ", since(|it| it.reads)), ("WRITE", since(|it| it.writes)), ("COMMIT", since(|it| it.syncs))];
    let moved = shown.into_iter().filter(|(_, calls)| *calls > 0);
    parts.extend(moved.map(|(name, calls)| format!("{name} {}/s", per_second(calls, time))));
    parts
}

fn nfs_line(before: &Report, now: &Report, time: Duration) -> String {
    let nfs = &now.nfs;
    let mut parts = vec![units::plural(nfs.connections, "connection")];
    parts.extend(answered_parts(before.nfs.answered, nfs.answered, time));
    let weak = nfs.answered.unauthorized;
    let limit = now.knobs.get("nfs_request_bytes_max").copied().unwrap_or(0);
    let is_crowded = nfs.waiting_for_room > 0 || nfs.request_bytes > limit / 2;
    let requests = format!("requests {} of {}", units::memory(nfs.request_bytes), units::memory(limit));
    let connections = |count: u64, what: &str| (count, format!("{} {what}", units::plural(count, "connection")));
    let if_any = [
        (nfs.sessions, units::plural(nfs.sessions, "session")),
        (nfs.open_files, units::plural(nfs.open_files, "open file")),
        (nfs.locked_ranges, units::plural(nfs.locked_ranges, "lock")),
        (nfs.delegations, units::plural(nfs.delegations, "delegation")),
        (nfs.delegations_revoked, format!("{} revoked", units::plural(nfs.delegations_revoked, "delegation"))),
        (weak, format!("{} of unauthorized callers refused (see `afflux serve --help`)", units::plural(weak, "call"))),
        connections(
            nfs.closed_for_room,
            &format!("closed to make room (at most {})", units::count(nfs.connections_max)),
        ),
        connections(nfs.refused, "refused (nfs_peer_connections_max)"),
        (is_crowded.into(), requests),
        connections(nfs.waiting_for_room, "waiting for memory"),
        connections(nfs.closed_unread, "reset for want of room for their data"),
        connections(nfs.closed_stalled, "closed for blocking others"),
    ];
    parts.extend(if_any.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words));
    parts.join("   ")
}

pub(crate) fn per_second(number: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    units::count(if seconds > 0.0 { (number as f64 / seconds).round() as u64 } else { 0 })
}

const CLIENTS_SHOWN: usize = 4;

fn wait_lines(before: Option<&DeviceGauges>, now: &DeviceGauges, time: Duration) -> Vec<String> {
    let (waits, mut lines) = (&now.waits, Vec::new());
    lines.extend(times("throttled writes waited", "write", &waits.calls.throttle));
    lines.extend(paused(&now.pauses));
    lines.extend(times("calls waited for memory", "call", &waits.calls.reclaim));
    lines.extend(times("calls waited for reads", "call", &waits.calls.read));
    lines.extend(times("syncs waited", "sync", &waits.calls.sync));
    lines.extend(times("COMMITs took", "COMMIT", &waits.commit));
    lines.extend(now.waiting.iter().map(waiting));
    if now.waiting_more > 0 {
        lines.push(format!("and {} more are waiting", units::count(now.waiting_more)));
    }
    lines.extend(clients(before, now, time));
    lines
}

fn times(what: &str, one: &str, times: &WaitTimes) -> Option<String> {
    let WaitTimes { count, ns, p50_ns, p99_ns, max_ns, .. } = *times;
    let [p50, p99, longest, sum] = [p50_ns, p99_ns, max_ns, ns].map(units::latency);
    let since = format!("{} since the start, {sum} together", units::plural(count, one));
    (count > 0).then(|| format!("{what}: half up to {p50}, 99 % up to {p99}, longest {longest} ({since})"))
}

fn paused(pauses: &[PauseGauges]) -> Option<String> {
    let ended = pauses.iter().filter(|pause| pause.count > 0);
    let causes: Vec<String> = ended
        .map(|pause| {
            let (count, sum) = (units::plural(pause.count, "pause"), units::latency(pause.ns));
            format!("{} ({count}, {sum}, longest {})", output::shown(&pause.cause), units::latency(pause.longest_ns))
        })
        .collect();
    (!causes.is_empty()).then(|| format!("because of: {}", causes.join(", ")))
}

fn waiting(one: &WaiterGauges) -> String {
    let whom = one.client.as_ref().map(|client| format!(" by {}", output::shown(client))).unwrap_or_default();
    let (file, what) = (output::shown(&one.file), output::shown(&one.waits_for));
    format!("waiting for {}: {file}{whom}, {} ({what})", units::latency(one.ns), units::plural(one.calls, "call"))
}

/// Clients with waits that ended between the reports, longest first.
fn clients(before: Option<&DeviceGauges>, now: &DeviceGauges, time: Duration) -> Option<String> {
    let same = |one: &DelayGauges, other: &DelayGauges| (&one.client, one.uid) == (&other.client, other.uid);
    let earlier = |client: &DelayGauges| {
        let found = before.and_then(|before| before.clients.iter().find(|other| same(client, other)));
        found.map_or(0, |found| found.times.ns())
    };
    let waited = |client: &DelayGauges| client.times.ns().saturating_sub(earlier(client));
    let mut rows: Vec<(u64, &DelayGauges)> = now.clients.iter().map(|client| (waited(client), client)).collect();
    rows.retain(|(ns, _)| *ns > 0 && before.is_some());
    rows.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let more = rows.len().saturating_sub(CLIENTS_SHOWN);
    let shown = rows.iter().take(CLIENTS_SHOWN);
    let mut parts: Vec<String> =
        shown.map(|(ns, client)| format!("{} {}", client.name(), units::latency(*ns))).collect();
    if more > 0 {
        parts.push(format!("{} more", units::count(more as u64)));
    }
    let span = units::latency(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    (!parts.is_empty()).then(|| format!("waits of clients that ended in the last {span}: {}", parts.join(", ")))
}

/// Most figures of an unknown policy.
const FIGURES_SHOWN: usize = 12;

/// Bytes that a price in ns covers.
const MIB: f64 = (1 << 20) as f64;

/// A device's figures, by name.
struct Figures<'a>(&'a DeviceGauges);

impl Figures<'_> {
    fn word(&self, name: &str) -> Option<&str> {
        match self.0.in_force.get(name)? {
            Some(FigureGauge::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn time(&self, name: &str) -> Option<String> {
        self.0.figure(name).map(units::latency)
    }

    /// `owes 610 ms of 1.00 s (as requested), …`
    fn budget(&self) -> Option<String> {
        let (asked_ns, in_force_ns) = (self.0.figure("budget_ns")?, self.0.figure("budget_in_force_ns")?);
        let (owed_ns, counted_ns) = (self.0.figure("owed_ns")?, self.0.figure("counted_ns")?);
        let [asked, in_force, owed] = [asked_ns, in_force_ns, owed_ns].map(units::latency);
        let why = match self.word("budget_because")? {
            "asked for" => "as requested".to_owned(),
            "many writers" => {
                let writers = units::plural(self.0.figure("payers_on_average")?, "writer");
                format!("{asked} were requested; {writers} and their runs need more")
            }
            "memory guard" => format!("counted as {}: memory for dirty data runs short", units::latency(counted_ns)),
            other => output::shown(other),
        };
        let unpaused = self.time("unpaused_ns")?;
        Some(format!("owes {owed} of {in_force} ({why}); writers pause above {unpaused}"))
    }

    /// `writes 31.0 µs a run and 1.00 GB/s (40.0 ms ago)`
    fn prices(&self, of: &str, what: &str) -> Option<String> {
        let figure = |name: &str| self.0.figure(&format!("{of}_{name}"));
        let (run, mib_ns) = (units::latency(figure("run_ns")?), figure("mib_ns")?);
        let speed = units::rate((MIB / (mib_ns.max(1) as f64 / 1e9)) as u64, Duration::from_secs(1));
        let age =
            figure("age_ns").map_or_else(|| "not measured yet".to_owned(), |ns| format!("{} ago", units::latency(ns)));
        Some(format!("{what} {run} a run and {speed} ({age})"))
    }

    fn knowledge(&self) -> Option<String> {
        let (write, read) = (self.prices("write", "writes")?, self.prices("read", "reads")?);
        let cold = match self.word("knowledge")? {
            "cold" => {
                let (run, mib) = (self.time("run_ns")?, self.time("mib_ns")?);
                format!("; too little is known, so that a run counts as {run} and a MiB as {mib}")
            }
            _ => String::new(),
        };
        Some(format!("learned: {write}, {read}{cold}"))
    }

    fn flight(&self) -> Option<String> {
        let (at_once, ns) = (self.0.figure("parallel_requests")?, self.time("in_flight_max_ns")?);
        let alone = self.time("unloaded_latency_ns").map(|ns| format!("; one alone takes {ns}")).unwrap_or_default();
        let most = units::plural(at_once, "write");
        Some(format!("in flight: {most} at once, or as many as take {ns}{alone}"))
    }

    /// All figures, by name.
    fn plain(&self) -> Option<String> {
        let shown = |(name, value): (&String, &Option<FigureGauge>)| {
            let value = match value {
                Some(FigureGauge::Number(number)) => units::count(*number),
                Some(FigureGauge::Word(word)) => output::shown(word),
                None => "unknown".to_owned(),
            };
            format!("{} {value}", output::shown(name))
        };
        let all: Vec<String> = self.0.in_force.iter().take(FIGURES_SHOWN).map(shown).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

fn policy_lines(device: &DeviceGauges) -> Vec<String> {
    let figures = Figures(device);
    let mut lines: Vec<String> = match figures.budget() {
        Some(budget) => [Some(budget), figures.knowledge(), figures.flight()].into_iter().flatten().collect(),
        None => figures.plain().into_iter().collect(),
    };
    let knobs = device.knobs_in_force.iter();
    lines.extend(knobs.map(|gauge| format!("{}: {}", output::shown(&gauge.knob), gauge.told_with(units::count))));
    lines
}
