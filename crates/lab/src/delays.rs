//! What callers waited for, as rows carry it: the engine's delay accounting.
//!
//! Owns: its form in a row. Does not own: the accounting (`engine`).
//! Invariants: what nobody waited for is left out.

use engine::{DeviceId, Engine, Platform, WaitTimes};
use serde_json::{Map, Value, json};

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

/// Waits for throttle, reclaim, read and sync since the engine was made, by the devices' numbers.
pub(crate) fn delays<P: Platform>(engine: &Engine<P>, devices: &[DeviceId]) -> Value {
    let of = |device: &DeviceId| {
        let waits = engine.waits(*device).unwrap_or_default();
        let kinds =
            [("throttle", waits.throttle), ("reclaim", waits.reclaim), ("read", waits.read), ("sync", waits.sync)];
        let kinds = kinds.iter().filter(|(_, waits)| waits.count > 0);
        kinds.map(|(name, waits)| ((*name).to_owned(), times(waits))).collect::<Map<_, _>>()
    };
    let devices = devices.iter().map(|device| (device.0.to_string(), Value::Object(of(device))));
    Value::Object(devices.collect())
}
