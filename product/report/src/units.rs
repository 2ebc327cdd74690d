//! Numbers for people.
//!
//! Owns: the choice of unit: binary for memory, decimal for data moved and rates, time in the unit that keeps the
//! number short.
//! Does not own: exact values; JSON carries those.
//! Invariants: every text has its unit.

#[cfg(test)]
mod tests;

use std::time::Duration;

const MEMORY: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const LATENCY: [&str; 4] = ["ns", "µs", "ms", "s"];
const DATA: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/// Bytes of memory: `15.1 MiB`.
pub fn memory(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &MEMORY)
}

/// Bytes of moved data: `21.4 MB`.
pub fn data(bytes: u64) -> String {
    scaled(bytes as f64, 1000.0, &DATA)
}

/// Bytes a second: `25.1 MB/s`.
pub fn rate(bytes: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let each = if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
    format!("{}/s", scaled(each, 1000.0, &DATA))
}

/// A time: `38 ms`, `1.2 s`, `4 min 10 s`.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 3599.5 {
        let minutes = (seconds / 60.0).round() as u64;
        format!("{} h {} min", minutes / 60, minutes % 60)
    } else if seconds >= 59.95 {
        let whole = seconds.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    } else if seconds >= 9.95 {
        format!("{seconds:.0} s")
    } else if seconds >= 0.0995 {
        format!("{seconds:.1} s")
    } else if seconds >= 0.000_999_5 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{:.0} µs", seconds * 1e6)
    }
}

/// The duration of an operation, with three digits: `850 ns`, `4.13 ms`, `1.25 s`; from a minute on as [`time`].
pub fn latency(ns: u64) -> String {
    if ns >= 59_950_000_000 {
        return time(Duration::from_nanos(ns));
    }
    scaled(ns as f64, 1000.0, &LATENCY)
}

/// Operations a second: `1,204/s`; with a decimal below ten.
pub fn frequency(count: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let each = if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    if each > 0.0 && each < 9.95 { format!("{each:.1}/s") } else { format!("{}/s", self::count(each.round() as u64)) }
}

/// A number of things, such as "1 file" and "2 files".
pub fn plural(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", count(number))
}

/// A count with a comma between groups of three digits: `1,204`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A fraction: `97.2 %`; `-` if the whole is zero.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// A change in percent: `+2.1 %`. Zero has no sign: `0.0 %`.
pub fn change(percent: f64) -> String {
    if percent.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{percent:+.1} %") }
}

/// A ratio: `1.05`; `-` if the whole is zero.
pub fn times(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.2}", part as f64 / whole as f64) }
}

fn scaled(mut number: f64, step: f64, units: &[&str]) -> String {
    let mut at = 0;
    // 999.5 would be shown as 1000.
    while number >= step * 0.9995 && at + 1 < units.len() {
        number /= step;
        at += 1;
    }
    let decimals = match number {
        _ if at == 0 => 0,
        n if n < 9.995 => 2,
        n if n < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.decimals$} {}", units[at])
}
