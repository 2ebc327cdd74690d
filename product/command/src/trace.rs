//! `afflux trace`: the events inside a running server, one by one; `trace record` and `trace show`: the byte ranges of
//! clients' calls, in a file.
//!
//! Owns: asking, events and calls as lines for people, writing and reading the file.
//! Does not own: the events (the engine), their owners and the recording (the server), the format
//! (`afflux_frontend::trace`).
//! Invariants: an event is one line, in the order of events; a loss is reported where it happened. An incomplete file
//! lacks the last record, and every reader refuses the file.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_frontend::trace::{self as format, Trace, TracedCall, TracedOperation};
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::{bounded_file, output, units};
use serde_json::json;
use signal_hook::consts::SIGINT;

use crate::args::{self, TraceRecord, TraceShow, TraceWhat};
use crate::control::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest, Happened, LOST, TraceEvent};
use crate::watch;

pub(crate) fn run(args: &args::TraceArgs) -> Outcome {
    match &args.what {
        Some(TraceWhat::Record(args)) => return record(args),
        Some(TraceWhat::Show(args)) => return show(args),
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

fn record(args: &TraceRecord) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    client.ask(&ControlRequest::Record { lasting_ns: args.lasting_ns })?;
    let interrupted = interrupted()?;
    let wrong = |error: std::io::Error| Failure::failed(format!("{}: {error}", args.output.display()));
    let mut file = None;
    let (mut count, mut lost_in_all) = (0, 0);
    loop {
        let (calls, lost) = match client.reply()? {
            ControlReply::Calls { calls, lost } => (calls, lost),
            ControlReply::TraceEnded => break,
            other => return Err(client.unexpected(&other)),
        };
        if file.is_none() {
            // Waits until the server confirms that it records.
            let mut made = BufWriter::new(File::create(&args.output).map_err(wrong)?);
            made.write_all(&format::encode(None)).map_err(wrong)?;
            file = Some(made);
        }
        let Some(file) = &mut file else { continue };
        for call in calls.iter().filter_map(read) {
            file.write_all(&format::encode(Some(&call))).map_err(wrong)?;
            count += 1;
        }
        lost_in_all += lost;
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    if let Some(mut file) = file {
        file.write_all(&format::end(count, lost_in_all)).and_then(|()| file.flush()).map_err(wrong)?;
    }
    let lost = match lost_in_all {
        0 => String::new(),
        lost => format!("; {} lost: they came faster than they were written", units::count(lost)),
    };
    output::say(format_args!("{} calls in {}{lost}", units::count(count), output::shown(args.output.display())));
    Ok(())
}

/// Set by the first Ctrl-C.
fn interrupted() -> Outcome<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&flag)).or_failed("Ctrl-C cannot be caught")?;
    Ok(flag)
}

fn read(call: &[u64; 5]) -> Option<TracedCall> {
    let [at_us, operation, file, offset, bytes] = *call;
    let operation = TracedOperation::of_code(operation)?;
    // A call beyond the largest file was refused, and cannot be replayed.
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= afflux_engine::FILE_BYTES_MAX);
    let moves = bytes > 0 || operation == TracedOperation::Sync;
    (fits && moves).then_some(TracedCall { at_us, file, operation, offset, bytes })
}

/// Lines of calls that are written together.
const LINES_AT_ONCE: usize = 512;

fn show(args: &TraceShow) -> Outcome {
    let name = args.input.display();
    let bytes =
        bounded_file::read(&args.input, format::FILE_BYTES_MAX).or_failed(format_args!("{name} cannot be read"))?;
    let trace = Trace::read(&bytes).map_err(|error| Failure::wrong_use(format!("{name}: {error}")))?;
    let line = |call| if args.json { call_object(call) } else { call_line(call) };
    for calls in trace.calls.chunks(LINES_AT_ONCE) {
        let lines: String = calls.iter().map(line).collect();
        // The reader may be gone: `trace show | head`.
        if !output::try_write(lines.as_bytes()) {
            return Ok(());
        }
    }
    let lost = if trace.lost > 0 && !args.json {
        format!("{} calls were lost while it was recorded\n", units::count(trace.lost))
    } else {
        String::new()
    };
    output::try_write(lost.as_bytes());
    Ok(())
}

fn call_object(call: &TracedCall) -> String {
    let TracedCall { at_us, file, operation, offset, bytes } = *call;
    format!(
        "{}\n",
        json!({"time_us": at_us, "op": operation.name(), "file": format!("{file:016x}"), "offset": offset, "bytes": bytes})
    )
}

fn call_line(call: &TracedCall) -> String {
    let TracedCall { at_us, file, operation, offset, bytes } = *call;
    let (seconds, micros) = (at_us / 1_000_000, at_us % 1_000_000);
    match operation {
        TracedOperation::Sync => format!("{seconds:>5}.{micros:06}  {file:016x}  sync\n"),
        _ => format!("{seconds:>5}.{micros:06}  {file:016x}  {:<5}  {bytes} at {offset}\n", operation.name()),
    }
}
