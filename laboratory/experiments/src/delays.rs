//! The waits of callers, in the form of a row: the engine's delay accounting.
//!
//! Owns: the form in a row, by device or by caller. Does not own: the accounting (`engine`).
//! Invariants: empty entries are left out.

use afflux_engine::{AccountOwner, Delay, DelayTimes, DeviceId, Engine, Platform, WaitTimes};
use afflux_workloads::simulation::DeviceOutcome;
use serde_json::{Map, Value, json};

/// The key for calls without a caller.
const NOBODY: &str = "nobody in particular";
/// The key for callers that the accounting does not tell apart, because there were too many.
const OTHERS: &str = "others";

fn times(times: &WaitTimes) -> Value {
    let ms = |ns: u64| (ns as f64 / 1e3).round() / 1e3;
    json!({
        "count": times.count,
        "total_ms": ms(times.ns),
        "average_ms": ms(times.ns / times.count.max(1)),
        "p99_ms": ms(times.p99_ns),
        "max_ms": ms(times.max_ns),
    })
}

/// Waits for throttle, reclaim, read and sync since the engine was made, by the number of the device.
pub(crate) fn delays<P: Platform>(engine: &Engine<P>, devices: &[DeviceId]) -> Value {
    let of = |device: &DeviceId| {
        let waits = engine.waits(*device).unwrap_or_default();
        kinds(|delay| waits.times.calls.of(delay))
    };
    let devices = devices.iter().map(|device| (device.0.to_string(), of(device)));
    Value::Object(devices.collect())
}

fn kinds(waits: impl Fn(Delay) -> WaitTimes) -> Value {
    let all = Delay::ALL.iter().map(|delay| (delay.name(), waits(*delay)));
    let waited = all.filter(|(_, waits)| waits.count > 0);
    Value::Object(waited.map(|(name, waits)| (name.to_owned(), times(&waits))).collect::<Map<_, _>>())
}

/// The waits of each caller of a real engine for a device, by the caller's name.
pub(crate) fn delays_by_caller<P: Platform>(engine: &Engine<P>, device: DeviceId) -> Value {
    let told = engine.waits(device).unwrap_or_default().delays;
    let who = |whose: &AccountOwner| match whose {
        AccountOwner::Client(client) => client.to_string(),
        AccountOwner::File(_) => NOBODY.to_owned(),
    };
    let accounts = told.accounts.iter().map(|one| (who(&one.whose), &one.times));
    by_caller(accounts.chain([(OTHERS.to_owned(), &told.others)]))
}

/// The waits of each caller in a simulated run.
pub(crate) fn simulated_delays_by_caller(device: &DeviceOutcome) -> Value {
    let accounts = device.delays.iter().map(|one| (one.who.clone(), &one.times));
    by_caller(accounts.chain([(OTHERS.to_owned(), &device.delays_of_others)]))
}

fn by_caller<'a>(callers: impl Iterator<Item = (String, &'a DelayTimes)>) -> Value {
    let waited = callers.map(|(who, times)| (who, kinds(|delay| times.of(delay))));
    Value::Object(waited.filter(|(_, kinds)| *kinds != json!({})).collect())
}
