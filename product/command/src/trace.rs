//! `afflux trace`: the events inside a running server, one by one.
//!
//! Owns: asking, events as lines for people. Recorded calls are in `recorded`.
//! Does not own: the events (the engine), their owners (the server).
//! Invariants: an event is one line, in the order of events; a loss is reported at its place.

mod recorded;
#[cfg(test)]
mod tests;

use serde_json::json;

use crate::args::{self, TraceWhat};
use crate::control::client::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest, Happened, LOST, TraceEvent};
use crate::watch;
use afflux_report::failure::Outcome;
use afflux_report::{output, units};

pub(crate) fn run(args: &args::TraceArgs) -> Outcome {
    match &args.what {
        Some(TraceWhat::Record(args)) => return recorded::record(args),
        Some(TraceWhat::Show(args)) => return recorded::show(args),
        None => {}
    }
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    client.ask(&ControlRequest::Trace {
        device: args.device.clone(),
        lasting_ns: args.lasting_ns,
        only: Vec::new(),
    })?;
    loop {
        let (events, lost) = match client.reply()? {
            ControlReply::Events { events, lost } => (events, lost),
            ControlReply::TraceEnded => return Ok(()),
            other => return Err(client.unexpected(&other)),
        };
        let text = if args.json { json(&events, lost)? } else { lines(&events, lost) };
        // The reader is gone: `trace | head`.
        if !text.is_empty() && !watch::try_print("", &text) {
            return Ok(());
        }
    }
}

fn json(events: &[TraceEvent], lost: u64) -> Outcome<String> {
    let lost = (lost > 0).then(|| watch::json_line(&json!({"event": LOST, "events": lost})));
    lost.into_iter().chain(events.iter().map(watch::json_line)).collect()
}

fn lines(events: &[TraceEvent], lost: u64) -> String {
    let mut text = String::new();
    if lost > 0 {
        text.push_str(&format!("{} events lost: they came faster than they were read\n", units::count(lost)));
    }
    events.iter().for_each(|event| text.push_str(&line(event)));
    text
}

/// Time, device, event, file and client.
fn line(event: &TraceEvent) -> String {
    let (seconds, micros) = (event.at_ns / 1_000_000_000, event.at_ns / 1000 % 1_000_000);
    let device = output::shown(event.device.as_deref().unwrap_or("all"));
    let mut line = format!("{seconds:>5}.{micros:06}  {device}  {}", output::shown(words(&event.what)));
    if let Some(file) = &event.file {
        line.push_str(&format!("  {}", output::shown(file)));
    }
    if let Some(client) = &event.client {
        line.push_str(&format!("  by {}", output::shown(client)));
    }
    line.push('\n');
    line
}

fn words(what: &Happened) -> String {
    match what {
        Happened::PauseBegins { wait, cause } => format!("pause {wait} begins: {cause}"),
        Happened::PauseEnds { wait, cause, ns } => format!("pause {wait} ends after {}: {cause}", units::latency(*ns)),
        Happened::SyncBegins { wait } => format!("sync {wait} begins"),
        Happened::SyncEnds { wait, ns } => format!("sync {wait} ends after {}", units::latency(*ns)),
        Happened::Commit { ns } => format!("COMMIT took {}", units::latency(*ns)),
        Happened::Turn { reason, pages, ns } => {
            format!("turn ({reason}) of {}: {} pages", units::latency(*ns), units::count(*pages))
        }
        Happened::Submitted { operation, offset, bytes } => {
            format!("{} submitted", operation_text(operation, *offset, *bytes))
        }
        Happened::Completed { operation, offset, bytes, ns, error } => {
            let outcome = error.as_ref().map(|error| format!(", failed: {error}")).unwrap_or_default();
            format!("{} ended after {}{outcome}", operation_text(operation, *offset, *bytes), units::latency(*ns))
        }
        Happened::SetAside { ns } => {
            format!("request still not ended after {}: its file waits, others go on", units::latency(*ns))
        }
        Happened::KnobChanged { knob, value } => format!("{knob} is now {}", units::count(*value)),
        Happened::DeviceAdded => "device added".to_owned(),
        Happened::DeviceFailing { error: Some(error) } => format!("device keeps failing: {error}"),
        Happened::DeviceFailing { error: None } => "device works again".to_owned(),
        Happened::DeviceHangs { ns, refuses } => {
            let refuses = if *refuses { ", and refuses its writers and syncs" } else { "" };
            format!("device has completed nothing for {}{refuses}", units::latency(*ns))
        }
        Happened::DeviceGoesOn { ns } => format!("device goes on after {}", units::latency(*ns)),
    }
}

fn operation_text(operation: &str, offset: u64, bytes: u64) -> String {
    match (operation, bytes) {
        ("flush", _) => operation.to_owned(),
        (_, 0) => format!("{operation} to {}", units::memory(offset)),
        _ => format!("{operation} of {} at {}", units::memory(bytes), units::memory(offset)),
    }
}
