//! The engine's waits and events, in the form of the control socket.
//!
//! Owns: names of files, operations and devices in it; when to poll for events, and which of them a time covers.
//! Does not own: the figures (the engine), the messages (`control`).
//! Invariants: nothing here waits for a device. Every event up to the end of the time is reported or counted as lost,
//! and none after it. A listener gets a message at least once a second.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use std::{io, thread};

use afflux_engine::policy::{Figure, FigureValue};
use afflux_engine::trace::{EngineEvent, Traced};
use afflux_engine::{AccountOwner, Backing, Client, Delayed, Operation, PauseStatus, Waiter};
use afflux_frontend::RecordedCall;
use afflux_linux_device::HostFile;
use afflux_linux_server::PeerCounts;
#[cfg(feature = "object")]
use afflux_object::HeldNode;
use afflux_tls::SecuredPeer;

use crate::control::messages::{DelayGauges, FigureGauge, Happened, PauseGauges, PeerGauges, TraceEvent, WaiterGauges};

/// The path of a file on the host, or the number of a file in a store.
pub(crate) fn name(file: &Backing) -> String {
    #[cfg(feature = "object")]
    if let Some(node) = file.get::<HeldNode>() {
        return numbered(node.ino());
    }
    let path = file.get::<HostFile>().and_then(HostFile::host_path);
    path.map_or_else(|| "a file without a name".to_owned(), |path| path.display().to_string())
}

/// The name of a file in a store: its inode number, as `ls -i` shows it.
#[cfg(feature = "object")]
pub(crate) fn numbered(ino: u64) -> String {
    format!("file number {ino}")
}

fn address(client: &Client) -> String {
    client.name().to_owned()
}

pub(crate) fn figure(of: &Figure) -> (String, Option<FigureGauge>) {
    let value = match of.value {
        FigureValue::Number(number) => Some(FigureGauge::Number(number)),
        FigureValue::Word(word) => Some(FigureGauge::Word(word.to_owned())),
        FigureValue::Unknown => None,
    };
    (of.info.name.to_owned(), value)
}

pub(crate) fn pause(of: &PauseStatus) -> PauseGauges {
    let PauseStatus { cause, waiting, count, ns, longest_ns, late_ns_max: _ } = *of;
    PauseGauges { cause: cause.name().to_owned(), waiting, count, ns, longest_ns }
}

pub(crate) fn waiter(of: &Waiter) -> WaiterGauges {
    WaiterGauges {
        file: name(&of.file),
        client: of.client.as_ref().map(address),
        waits_for: of.waits_for.name().to_owned(),
        calls: of.calls,
        ns: of.ns,
    }
}

pub(crate) fn delayed(of: &Delayed) -> DelayGauges {
    let (times, waiting) = (of.times, of.waiting);
    match &of.whose {
        AccountOwner::Client(client) => {
            let (uid, client) = (client.user(), Some(address(client)));
            DelayGauges { client, uid, waiting, times, ..DelayGauges::default() }
        }
        AccountOwner::File(file) => DelayGauges { file: Some(name(file)), waiting, times, ..DelayGauges::default() },
    }
}

/// A call, in the form of `Reply::Calls`.
pub(crate) fn call(at_ns: u64, call: &RecordedCall) -> [u64; 5] {
    [at_ns / 1000, call.operation.code().into(), call.file, call.offset, call.bytes]
}

/// Clients' traffic and certificates, by address.
pub(crate) fn peers(
    counts: BTreeMap<IpAddr, PeerCounts>,
    secured: impl Iterator<Item = SecuredPeer>,
) -> BTreeMap<String, PeerGauges> {
    let mut peers: BTreeMap<IpAddr, PeerGauges> =
        counts.into_iter().map(|(address, counts)| (address, peer(counts))).collect();
    for SecuredPeer { address, name } in secured {
        // The address of a connection that is just ending has no traffic.
        let Some(peer) = peers.get_mut(&address) else { continue };
        peer.tls_connections += 1;
        peer.certificates.extend(name.filter(|name| !peer.certificates.contains(name)));
    }
    peers.into_iter().map(|(address, peer)| (address.to_string(), peer)).collect()
}

fn peer(PeerCounts { connections, bytes_in, bytes_out }: PeerCounts) -> PeerGauges {
    let connections = connections as u64;
    PeerGauges { connections, received_bytes: bytes_in, sent_bytes: bytes_out, ..PeerGauges::default() }
}

/// Whether an event is of one of these kinds; true if none are named. This check comes before the system call for the
/// file's path.
pub(crate) fn is_one_of(traced: &Traced, kinds: &[String]) -> bool {
    kinds.is_empty() || kinds.iter().any(|kind| kind == happened(&traced.event).name())
}

/// `devices` are their names by number; `ready_ns` is when the server was ready.
pub(crate) fn event(traced: &Traced, devices: &[String], ready_ns: u64) -> TraceEvent {
    TraceEvent {
        at_ns: traced.at.0.saturating_sub(ready_ns),
        device: traced.device.and_then(|device| devices.get(device.0 as usize).cloned()),
        file: traced.file.as_ref().and_then(|file| file.backing()).map(|backing| name(&backing)),
        client: traced.client.as_ref().map(address),
        what: happened(&traced.event),
    }
}

fn happened(event: &EngineEvent) -> Happened {
    match *event {
        EngineEvent::PauseBegins { wait, cause } => Happened::PauseBegins { wait, cause: cause.name().to_owned() },
        EngineEvent::PauseEnds { wait, cause, ns } => Happened::PauseEnds { wait, cause: cause.name().to_owned(), ns },
        EngineEvent::SyncBegins { wait } => Happened::SyncBegins { wait },
        EngineEvent::SyncEnds { wait, ns } => Happened::SyncEnds { wait, ns },
        EngineEvent::Commit { ns } => Happened::Commit { ns },
        EngineEvent::FlushSlice { slice, pages, ns } => Happened::Turn { reason: slice.reason().to_owned(), pages, ns },
        EngineEvent::Submitted { operation } => {
            let (operation, offset, bytes) = operation_fields(operation);
            Happened::Submitted { operation, offset, bytes }
        }
        EngineEvent::Completed { operation, ns, error } => {
            let (operation, offset, bytes) = operation_fields(operation);
            Happened::Completed { operation, offset, bytes, ns, error: error.map(|error| error.to_string()) }
        }
        EngineEvent::SetAside { ns } => Happened::SetAside { ns },
        EngineEvent::KnobChanged { knob, value } => Happened::KnobChanged { knob: knob.to_owned(), value },
        EngineEvent::DeviceAdded => Happened::DeviceAdded,
        EngineEvent::DeviceHangs { ns, refuses } => Happened::DeviceHangs { ns, refuses },
        EngineEvent::DeviceGoesOn { ns } => Happened::DeviceGoesOn { ns },
        EngineEvent::DeviceFailing { error } => Happened::DeviceFailing { error: error.map(|error| error.to_string()) },
    }
}

/// An operation's name, offset and length; for a change of size, the offset is the new size.
fn operation_fields(operation: Operation) -> (String, u64, u64) {
    let (name, offset, bytes) = match operation {
        Operation::Read { offset, len } => ("read", offset, u64::from(len)),
        Operation::Write { offset, len } => ("write", offset, u64::from(len)),
        Operation::Sync => ("flush", 0, 0),
        Operation::SetSize { size } => ("set size", size, 0),
        Operation::Punch { offset, len } => ("punch", offset, len),
        Operation::Reserve { offset, len } => ("reserve", offset, len),
    };
    (name.to_owned(), offset, bytes)
}

/// Most events that are taken at a time, and so are in one reply.
const TAKEN_MAX: usize = 1024;

/// Between two polls for events.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Longest silence; a message shows whether the listener is gone.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Takes events and reports them until the time is over. `take` returns at most that many events, and the number of
/// events lost before them. `at_ns` returns the time of an event by the clock `now`.
pub(crate) fn stream_events<T>(
    now: &dyn Fn() -> u64,
    lasting_ns: Option<u64>,
    take: &mut dyn FnMut(usize) -> (Vec<T>, u64),
    at_ns: &dyn Fn(&T) -> u64,
    tell: &mut dyn FnMut(Vec<T>, u64) -> io::Result<()>,
) -> io::Result<()> {
    let end_ns = lasting_ns.map_or(u64::MAX, |ns| now().saturating_add(ns));
    let mut told_at = None::<Instant>;
    loop {
        // The clock is read before the poll, so that the poll finds every event up to the end.
        let now_ns = now();
        let (mut events, lost) = take(TAKEN_MAX);
        let is_all = events.len() < TAKEN_MAX || events.last().is_none_or(|last| at_ns(last) > end_ns);
        events.retain(|event| at_ns(event) <= end_ns);
        if lost > 0 || !events.is_empty() || told_at.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            tell(events, lost)?;
            told_at = Some(Instant::now());
        }
        if is_all && now_ns >= end_ns {
            return Ok(());
        }
        if is_all {
            thread::sleep(LOOK_EVERY.min(Duration::from_nanos(end_ns - now_ns)));
        }
    }
}

#[cfg(test)]
mod tests;
