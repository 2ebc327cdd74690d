//! `write_bw_log`, `write_lat_log`, `write_iops_log`: fio's files of single calls and of rates.
//!
//! Owns: names and lines of these files, means over a time.
//! Does not own: the calls (the simulation).
//! Invariants: a line has fio's form: milliseconds, value, direction (0 reads, 1 writes), bytes of a call, priority
//! (always none).

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs;

use afflux_workloads::simulation::{JobLog, LoggedCall};

use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

/// The default window of rates, as in fio.
const RATE_WINDOW_NS: u64 = 500_000_000;

/// Writes the logs that jobs ask for, into the working directory.
pub(super) fn write(logs: &[JobLog]) -> Outcome {
    for log in logs {
        for (path, text) in files(log) {
            fs::write(&path, text).map_err(|error| Failure::failed(format!("{path} cannot be written: {error}")))?;
        }
        if log.left_out > 0 {
            output::remark(format_args!(
                "warning: logs of job {} end early: {} calls had no room in them",
                log.number, log.left_out
            ));
        }
    }
    Ok(())
}

/// The files of a log, with their contents.
fn files(log: &JobLog) -> Vec<(String, String)> {
    let number = log.number;
    let mut files = Vec::new();
    if let Some(name) = &log.logs.bandwidth {
        files.push((format!("{name}_bw.{number}.log"), rates(log, |call| call.bytes, 1024)));
    }
    if let Some(name) = &log.logs.calls {
        files.push((format!("{name}_iops.{number}.log"), rates(log, |_| 1, 1)));
    }
    if let Some(name) = &log.logs.latency {
        let text = latencies(log);
        files.push((format!("{name}_clat.{number}.log"), text.clone()));
        files.push((format!("{name}_lat.{number}.log"), text));
    }
    files
}

/// Reads, writes and trims, as fio numbers them.
const DIRECTIONS: [u8; 3] = [0, 1, 2];

fn line(into: &mut String, at_ns: u64, value: u64, direction: u8, bytes: u64) {
    let _ = writeln!(into, "{}, {value}, {direction}, {bytes}, 0", at_ns / 1_000_000);
}

/// Calls of one direction that ended in each window, with the window's end.
fn windows(calls: &[LoggedCall], direction: u8, window_ns: u64) -> Vec<(u64, Vec<LoggedCall>)> {
    let mut windows: Vec<(u64, Vec<LoggedCall>)> = Vec::new();
    for call in calls.iter().filter(|call| call.direction == direction) {
        let end_ns = (call.at_ns / window_ns + 1).saturating_mul(window_ns);
        match windows.last_mut() {
            Some((at_ns, window)) if *at_ns == end_ns => window.push(*call),
            _ => windows.push((end_ns, vec![*call])),
        }
    }
    windows
}

/// Amounts per second, in units, window by window.
fn rates(log: &JobLog, value: impl Fn(&LoggedCall) -> u64, unit: u64) -> String {
    let window_ns = if log.logs.mean_ns == 0 { RATE_WINDOW_NS } else { log.logs.mean_ns };
    let mut text = String::new();
    for direction in DIRECTIONS {
        for (at_ns, calls) in windows(&log.calls, direction, window_ns) {
            let sum: u128 = calls.iter().map(|call| u128::from(value(call))).sum();
            let rate = sum * 1_000_000_000 / u128::from(window_ns) / u128::from(unit);
            line(&mut text, at_ns, rate as u64, direction, calls[0].bytes);
        }
    }
    text
}

/// The latency of each call, or the mean of each window.
fn latencies(log: &JobLog) -> String {
    let mut text = String::new();
    if log.logs.mean_ns == 0 {
        log.calls.iter().for_each(|call| line(&mut text, call.at_ns, call.took_ns, call.direction, call.bytes));
        return text;
    }
    for direction in DIRECTIONS {
        for (at_ns, calls) in windows(&log.calls, direction, log.logs.mean_ns) {
            let sum: u128 = calls.iter().map(|call| u128::from(call.took_ns)).sum();
            line(&mut text, at_ns, (sum / calls.len() as u128) as u64, direction, calls[0].bytes);
        }
    }
    text
}
