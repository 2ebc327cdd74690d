//! `afflux trace record` and `afflux trace show`: the byte ranges of clients' calls, in a file.
//!
//! Owns: writing and reading the file, calls as lines.
//! Does not own: the format (`afflux_frontend::trace`), recording (the server).
//! Invariants: an incomplete file lacks the last record, and every reader refuses the file. Losses are reported.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_frontend::trace::{self as format, Trace, TracedCall, TracedOperation};
use serde_json::json;
use signal_hook::consts::SIGINT;

use crate::args::{TraceRecord, TraceShow};
use crate::control::client::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest};
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::{bounded_file, output, units};

pub(super) fn record(args: &TraceRecord) -> Outcome {
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
    let operation = TracedOperation::of_number(operation)?;
    // A call beyond the largest file was refused, and cannot be replayed.
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= afflux_engine::FILE_BYTES_MAX);
    let moves = bytes > 0 || operation == TracedOperation::Sync;
    (fits && moves).then_some(TracedCall { at_us, file, operation, offset, bytes })
}

/// Lines of calls that are written together.
const LINES_AT_ONCE: usize = 512;

pub(super) fn show(args: &TraceShow) -> Outcome {
    let name = args.input.display();
    let bytes =
        bounded_file::read(&args.input, format::FILE_BYTES_MAX).or_failed(format_args!("{name} cannot be read"))?;
    let trace = Trace::read(&bytes).map_err(|error| Failure::wrong_use(format!("{name}: {error}")))?;
    let line = |call| if args.json { object(call) } else { line(call) };
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

fn object(call: &TracedCall) -> String {
    let TracedCall { at_us, file, operation, offset, bytes } = *call;
    format!(
        "{}\n",
        json!({"time_us": at_us, "op": operation.name(), "file": format!("{file:016x}"), "offset": offset, "bytes": bytes})
    )
}

fn line(call: &TracedCall) -> String {
    let TracedCall { at_us, file, operation, offset, bytes } = *call;
    let (seconds, micros) = (at_us / 1_000_000, at_us % 1_000_000);
    match operation {
        TracedOperation::Sync => format!("{seconds:>5}.{micros:06}  {file:016x}  sync\n"),
        _ => format!("{seconds:>5}.{micros:06}  {file:016x}  {:<5}  {bytes} at {offset}\n", operation.name()),
    }
}
