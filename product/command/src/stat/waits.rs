//! Waits of writers, syncs and COMMITs, as lines below their device.
//!
//! Owns: the choice of lines, and their words.
//! Does not own: the figures (the server's report).
//! Invariants: there is no line for a cause without waits; the number of lines is bounded.

use std::time::Duration;

use afflux_engine::WaitTimes;

use crate::control::messages::{DelayGauges, DeviceGauges, PauseGauges, WaiterGauges};
use afflux_report::{output, units};

const CLIENTS_SHOWN: usize = 4;

pub(super) fn lines(before: Option<&DeviceGauges>, now: &DeviceGauges, time: Duration) -> Vec<String> {
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
