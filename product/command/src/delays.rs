//! `afflux delays`: the cause of slowness in one sentence, and clients' waits for a running server's devices, with
//! causes and durations, in the manner of `getdelays`.
//!
//! Owns: asking, the choice of the cause (a disk, its budget, memory, the network or the client) and its words, the
//! blocks that people read, the object of JSON.
//! Does not own: the figures (the engine), the client of each (the server).
//! Invariants: the cause is a pure function of the reports. The server is blamed only for waits that it measured. The
//! longest waits come first. The number of blocks is bounded, and the last line counts the rest. JSON has all.

use std::thread;
use std::time::Duration;

use afflux_engine::{Delay, DelayTimes, DeviceStatus, PerDelay, WaitTimes};
use afflux_report::failure::Outcome;
use afflux_report::{output, units};
use serde::Serialize;

use crate::control::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest, DeviceDelayGauges, DeviceGauges, Report};
use crate::watch::{self, Watch};
use crate::{args, stat};

/// Samples of the server between two texts, to find the cause.
const LOOKS: u32 = 5;

/// Most clients of a device that people see.
const SHOWN_MAX: usize = 16;

#[derive(Serialize)]
struct Delays {
    uptime_ns: u64,
    devices: Vec<DeviceDelayGauges>,
}

pub(crate) fn run(args: &args::DelaysArgs) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    if args.json {
        let watch = Watch { again: args.watch, redraws: false, pause: watch::EVERY };
        return watch.show(|| watch::json_line(&ask(&mut client)?));
    }
    // Looking for the cause takes the time between two texts.
    Watch { again: args.watch, redraws: true, pause: Duration::ZERO }.show(|| {
        let cause = sentence(&look(&mut client)?);
        Ok(format!("{cause}\n\n{}", blocks(&ask(&mut client)?)))
    })
}

/// Samples the server for a while.
fn look(client: &mut ControlClient) -> Outcome<SeenReports> {
    let mut seen = SeenReports::begins(client.report()?);
    for _ in 0..LOOKS {
        thread::sleep(watch::EVERY / LOOKS);
        seen.look(client.report()?);
    }
    Ok(seen)
}

fn ask(client: &mut ControlClient) -> Outcome<Delays> {
    client.ask(&ControlRequest::Delays)?;
    let mut devices = Vec::<DeviceDelayGauges>::new();
    loop {
        match client.reply()? {
            ControlReply::Delays(device) => match devices.last_mut() {
                Some(last) if last.name == device.name => last.clients.extend(device.clients),
                _ => devices.push(device),
            },
            ControlReply::DelaysEnded { uptime_ns } => {
                for device in &mut devices {
                    device.clients.sort_by_key(|client| std::cmp::Reverse(client.times.ns()));
                }
                return Ok(Delays { uptime_ns, devices });
            }
            other => return Err(client.unexpected(&other)),
        }
    }
}

/// A block for each client of each device.
fn blocks(delays: &Delays) -> String {
    let mut text = String::new();
    for device in &delays.devices {
        for client in device.clients.iter().take(SHOWN_MAX) {
            let waiting = match client.waiting {
                0 => String::new(),
                1 => ", 1 call waits now".to_owned(),
                calls => format!(", {} calls wait now", units::count(calls)),
            };
            block(&mut text, &format!("{} on {}{waiting}", client.name(), output::shown(&device.name)), &client.times);
        }
        let more = device.clients.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            let (more, name) = (units::count(more as u64), output::shown(&device.name));
            text.push_str(&format!("and {more} more on {name} that waited less (--json shows them)\n\n"));
        }
        if device.others_count > 0 {
            let (others, name) = (units::count(device.others_count), output::shown(&device.name));
            block(&mut text, &format!("{others} others on {name}, no longer told apart"), &device.others);
        }
    }
    if text.is_empty() {
        text.push_str("nobody has waited\n");
    }
    text
}

fn block(text: &mut String, title: &str, times: &DelayTimes) {
    text.push_str(&format!(
        "{title}\n{:<8}{:>10}{:>15}{:>15}{:>13}{:>13}\n",
        "", "count", "delay total", "delay average", "delay p99", "delay max"
    ));
    for delay in Delay::ALL {
        let WaitTimes { count, ns, p99_ns, max_ns, .. } = times.of(delay);
        let average = ns.checked_div(count).unwrap_or(0);
        let [total, average, p99, max] = [ns, average, p99_ns, max_ns].map(units::latency);
        let (name, count) = (delay.name().to_uppercase(), units::count(count));
        text.push_str(&format!("{name:<8}{count:>10}{total:>15}{average:>15}{p99:>13}{max:>13}\n"));
    }
    text.push('\n');
}

/// Waits below this part of the time do not make anything slow.
const SMALL_PART: u64 = 20;

/// From this fraction of the time on, in percent, a disk has no time for more.
const BUSY_PERCENT: u64 = 80;

/// Two reports of a server, and the samples after the first report.
struct SeenReports {
    before: Report,
    now: Report,
    /// Samples after the first report.
    looks: u32,
    /// Those that found a part of a request, a call or an unsent reply in the server.
    on_their_way: u32,
}

impl SeenReports {
    fn begins(before: Report) -> Self {
        Self { now: before.clone(), before, looks: 0, on_their_way: 0 }
    }

    fn look(&mut self, now: Report) {
        self.looks += 1;
        self.on_their_way += u32::from(now.nfs.connections_at_work > 0);
        self.now = now;
    }
}

fn sentence(seen: &SeenReports) -> String {
    let time_ns = seen.now.uptime_ns.saturating_sub(seen.before.uptime_ns);
    let longest = |ns: fn(&DeviceGauges) -> Option<u64>| {
        let times = seen.now.devices.iter().filter_map(|device| Some((device, ns(device)?)));
        let (device, ns) = times.max_by_key(|it| it.1)?;
        Some((device, output::shown(&device.status.name), units::latency(ns)))
    };
    // A device whose store is away has completed nothing, too.
    if let Some((_, name, age)) = longest(|device| device.status.away_ns) {
        return format!(
            "The store behind {name} is the cause: it has not answered for {age}, and its writers and syncs wait."
        );
    }
    let rests = |report: &Report| -> u64 {
        let disks = report.devices.iter().filter_map(|device| device.store.as_ref()?.disk_cache);
        disks.map(|disk| disk.rests).sum()
    };
    if rests(&seen.now) > rests(&seen.before) {
        return "The disk of --disk-cache is the cause: a read of it took over a second, and the store is asked instead."
            .to_owned();
    }
    // Requests for names and records are no waits of the engine, but their callers wait.
    if let Some((device, name, age)) = longest(|device| device.store.as_ref()?.slow_ns()) {
        let store = device.store.as_ref();
        let why = output::bracketed(store.and_then(|store| store.trouble.as_ref()));
        let requests = units::plural(store.map_or(0, |store| store.waiting), "request");
        return format!("The store behind {name} is the cause: {requests} wait for it, the oldest for {age}{why}.");
    }
    if let Some((_, name, age)) = longest(|device| device.status.stalled_ns) {
        return format!("The disk {name} is the cause: it hangs, and has completed nothing for {age}.");
    }
    if let Some((_, name, age)) = longest(|device| device.status.names_stalled_ns) {
        return format!("The disk {name} is the cause: it hangs, and a call for names or attributes waits for {age}.");
    }
    let times = seen.now.devices.iter().map(|device| Times::of(seen, device, time_ns));
    let worst = times.max_by_key(|times| times.waited_ns());
    match worst.filter(|times| times.waited_ns() > time_ns / SMALL_PART) {
        Some(times) => times.sentence(),
        None => without_waits(seen, Duration::from_nanos(time_ns)),
    }
}

/// A device's figures over the time.
struct Times<'a> {
    before: Option<&'a DeviceGauges>,
    now: &'a DeviceGauges,
    time_ns: u64,
    /// The waits for the device in that time, of all calls together.
    waited: PerDelay<u64>,
}

impl<'a> Times<'a> {
    fn of(seen: &'a SeenReports, now: &'a DeviceGauges, time_ns: u64) -> Self {
        let before = seen.before.device(&now.status.name);
        let earlier = before.map(|before| before.waits).unwrap_or_default();
        let waited_ns = |delay| now.waits.calls.of(delay).ns.saturating_sub(earlier.calls.of(delay).ns);
        let mut waited = PerDelay::each(waited_ns);
        for waiter in &now.waiting {
            let ns = waiter.ns.min(time_ns).saturating_mul(waiter.calls);
            let sum = if waiter.waits_for == "sync" { &mut waited.sync } else { &mut waited.throttle };
            *sum = sum.saturating_add(ns);
        }
        Self { before, now, time_ns, waited }
    }

    fn waited_ns(&self) -> u64 {
        Delay::ALL.iter().fold(0, |sum, delay| sum.saturating_add(self.waited.of(*delay)))
    }

    fn sentence(&self) -> String {
        let PerDelay { throttle, read, sync, reclaim } = self.waited;
        let (name, longest) = (output::shown(&self.now.status.name), throttle.max(read).max(sync).max(reclaim));
        let waited = format!("calls waited {} in the last {}", units::latency(longest), units::latency(self.time_ns));
        let busy = format!("busy {} of the time", units::percent(self.busy_ns(), self.time_ns));
        if longest == reclaim {
            return format!("The cache is the cause: {waited} for free memory; a larger --cache has more.");
        }
        if longest == read {
            let speed = self.rate(|device| device.read_bytes);
            return format!(
                "The disk {name} is the cause: {waited} for bytes that are not cached (it reads {speed}, {busy})."
            );
        }
        if longest == sync {
            return format!(
                "The disk {name} is the cause: {waited} until their bytes were durable (COMMIT, fsync; {busy})."
            );
        }
        if self.pause_cause() == Some("memory guard") {
            return format!(
                "The cache is the cause: {waited}, since dirty pages leave too few frames; a larger --cache has more."
            );
        }
        if self.busy_ns() >= self.time_ns / 100 * BUSY_PERCENT {
            let speed = self.rate(|device| device.written_bytes);
            return format!(
                "The disk {name} is the cause: {waited}, since clients send more than it writes ({speed}, {busy})."
            );
        }
        match (self.now.figure("owed_ns"), self.now.figure("budget_in_force_ns")) {
            (Some(owed), Some(budget)) => format!(
                "The budget of {name} is the cause: {waited} while it owed {} of {} and was {busy}; a larger budget_ms lets \
                 them go on.",
                units::latency(owed),
                units::latency(budget)
            ),
            _ => format!(
                "The budget of {name} is the cause: {waited} at its dirty limit ({} of {}), while it was {busy}; a larger \
                 dirty_ratio lets them go on.",
                units::memory(self.now.status.dirty_bytes),
                units::memory(self.now.status.dirty_limit_bytes)
            ),
        }
    }

    fn moved(&self, value: fn(&DeviceStatus) -> u64) -> u64 {
        value(&self.now.status).saturating_sub(self.before.map_or(0, |before| value(&before.status)))
    }

    fn busy_ns(&self) -> u64 {
        self.moved(|device| device.busy_ns).min(self.time_ns)
    }

    fn rate(&self, bytes: fn(&DeviceStatus) -> u64) -> String {
        units::rate(self.moved(bytes), Duration::from_nanos(self.time_ns))
    }

    /// The cause of most of the pauses that ended, or of one that lasts.
    fn pause_cause(&self) -> Option<&str> {
        let earlier = |cause: &str| {
            let pauses = self.before.map(|before| before.pauses.iter());
            pauses.into_iter().flatten().find(|pause| pause.cause == cause).map_or(0, |pause| pause.ns)
        };
        let ended = self.now.pauses.iter().map(|pause| (pause.ns.saturating_sub(earlier(&pause.cause)), &pause.cause));
        let longest = ended.filter(|(ns, _)| *ns > 0).max().map(|(_, cause)| cause.as_str());
        let lasting = || self.now.waiting.iter().map(|waiter| waiter.waits_for.as_str()).find(|cause| *cause != "sync");
        longest.or_else(lasting)
    }
}

/// The cause if no call waited for a device.
fn without_waits(seen: &SeenReports, time: Duration) -> String {
    let SeenReports { before, now, looks, on_their_way } = seen;
    let calls = now.calls().saturating_sub(before.calls());
    let bytes = |report: &Report| {
        report.nfs.clients.values().fold((0, 0), |sum, of| (sum.0 + of.received_bytes, sum.1 + of.sent_bytes))
    };
    let (earlier, later) = (bytes(before), bytes(now));
    let [came, went] =
        [later.0.saturating_sub(earlier.0), later.1.saturating_sub(earlier.1)].map(|bytes| units::rate(bytes, time));
    let last = units::latency(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let nothing = format!("Nothing waited in the last {last}");
    let of_mount = now.mount_answered.calls.saturating_sub(before.mount_answered.calls);
    let is_mount_alone = now.mount.is_some() && now.nfs.connections == 0;
    if is_mount_alone && calls == 0 {
        return format!("{nothing}, and no program called: if something is slow, the program is the cause.");
    }
    if calls == 0 && later.0 <= earlier.0 {
        let who = if now.nfs.connections == 0 { "no client is connected" } else { "no client called" };
        return format!("{nothing}, and {who}: if something is slow, the client or the way to it is the cause.");
    }
    if now.nfs.waiting_for_room > 0 {
        return "Memory for requests is the cause: connections wait for it; a larger nfs_request_bytes_max has more."
            .to_owned();
    }
    let changes = now.counted_since(before, "names_changed");
    if now.names_durable && changes > calls / 10 {
        let changes = stat::per_second(changes, time);
        return format!(
            "The disk is the cause: {changes} names a second are changed, and each change waits until it is durable; \
             --async-metadata answers earlier."
        );
    }
    if is_mount_alone {
        let calls = stat::per_second(of_mount, time);
        return format!("{nothing}: the programs on the mount are the cause ({calls} calls/s).");
    }
    let traffic = format!("{} calls/s, {came} in, {went} out", stat::per_second(calls, time));
    if on_their_way * 2 > *looks {
        return format!(
            "{nothing}, and {on_their_way} of {looks} looks found calls or replies on their way: the network is the cause \
             ({traffic})."
        );
    }
    let idle = looks - on_their_way;
    format!(
        "{nothing}, and {idle} of {looks} looks found no call: the client is the cause, or the delay of the network to it \
         ({traffic})."
    )
}

#[cfg(test)]
mod tests;
