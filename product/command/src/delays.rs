//! `afflux delays`: the cause of slowness, and clients' waits for a running server's devices, with causes and
//! durations, in the manner of `getdelays`.
//!
//! Owns: asking, the blocks that people read, the object of JSON.
//! Does not own: the figures (the engine), the client of each (the server), the choice of the cause (`cause`).
//! Invariants: the longest waits come first. The number of blocks is bounded, and the last line counts the rest. JSON
//! has all.

mod cause;
#[cfg(test)]
mod tests;

use std::thread;
use std::time::Duration;

use afflux_engine::{Delay, DelayTimes, WaitTimes};
use serde::Serialize;

use crate::args;
use crate::control::client::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest, DeviceDelayGauges};
use crate::watch::{self, Watch};
use afflux_report::failure::Outcome;
use afflux_report::{output, units};
use cause::SeenReports;

/// Looks at the server between two texts, to find the cause.
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
        let cause = cause::sentence(&look(&mut client)?);
        Ok(format!("{cause}\n\n{}", blocks(&ask(&mut client)?)))
    })
}

/// Looks at the server for a while.
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
