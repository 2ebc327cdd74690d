//! A trace replayed in a run: each call at its time, on files that exist from the start.
//!
//! Owns: the files, the calls in flight, their bound.
//! Does not own: the contents of a trace (`replay`), the machine.
//! Invariants: calls begin in the order of the trace, and no earlier than at their recorded times. A call beyond
//! [`CALLS_AT_ONCE`] waits, and so do all calls after it. A stopped run begins no more calls.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use afflux_engine::{Client, Error, Nanos, Platform};

use crate::locking::lock;
use crate::recorder::Recorder;
use crate::simulated::{SimulatedSite, WorkFile};
use crate::workload::{Replay, Workload};
use afflux_frontend::trace::{TracedCall, TracedOperation};

/// Most calls in flight: as many as a busy server has from some clients.
const CALLS_AT_ONCE: u64 = 4096;

/// Bytes moved at a time, which bounds a call's memory.
const PIECE_BYTES: u64 = 1 << 20;

/// A trace of the run, with its files.
pub(super) struct Replayed {
    calls: Arc<Vec<TracedCall>>,
    files: Arc<BTreeMap<u64, ReplayedFile>>,
    pub(super) row: Arc<Mutex<Recorder>>,
}

struct ReplayedFile {
    file: Arc<WorkFile>,
    task: Client,
}

#[derive(Default)]
struct CallsInFlight {
    count: u64,
    waker: Option<Waker>,
}

/// The traces among the workloads.
pub(super) fn replays(workloads: &[Workload]) -> impl Iterator<Item = &Replay> {
    workloads.iter().filter_map(|workload| match workload {
        Workload::Replay(replay) => Some(replay),
        _ => None,
    })
}

/// Makes the files of the traces.
pub(super) fn replayed(workloads: &[Workload], machine: &SimulatedSite) -> Result<Vec<Replayed>, String> {
    let mut all = Vec::new();
    for replay in replays(workloads) {
        let mut files = BTreeMap::new();
        let mut device = String::new();
        for (number, bytes) in replay.trace.files() {
            let name = format!("{}.{number:x}", replay.name);
            let path = format!("{}/{name}", replay.directory.trim_end_matches('/'));
            let file = machine.file(&path, bytes)?;
            device.clone_from(&machine.volumes[file.volume].name);
            files.insert(number, ReplayedFile { file, task: Client::task(&name) });
        }
        let mut row = Recorder::new(&replay.name, device, &[]);
        row.clones = 1;
        let calls = Arc::clone(&replay.trace).calls.clone();
        all.push(Replayed { calls: Arc::new(calls), files: Arc::new(files), row: Arc::new(Mutex::new(row)) });
    }
    Ok(all)
}

impl Replayed {
    /// A task that makes all calls, to be spawned.
    pub(super) fn run(&self, machine: &Arc<SimulatedSite>) -> impl Future<Output = ()> + Send + 'static {
        let (calls, files, row) = (Arc::clone(&self.calls), Arc::clone(&self.files), Arc::clone(&self.row));
        let machine = Arc::clone(machine);
        let in_flight = Arc::new(Mutex::new(CallsInFlight::default()));
        async move {
            let (began_ns, first_us) = (machine.now_ns(), calls.first().map_or(0, |call| call.at_us));
            for call in calls.iter() {
                let at_ns = began_ns.saturating_add((call.at_us - first_us).saturating_mul(1000));
                machine.platform.sleep_until(Nanos(at_ns)).await;
                fewer_than(&in_flight, CALLS_AT_ONCE).await;
                if machine.has_failed() || machine.now_ns() >= machine.stop_ns.load(Ordering::Relaxed) {
                    break;
                }
                let Some(of) = files.get(&call.file) else { continue };
                let (file, task, call) = (Arc::clone(&of.file), of.task.clone(), *call);
                let (machine, row, ends) = (Arc::clone(&machine), Arc::clone(&row), Arc::clone(&in_flight));
                lock(&in_flight).count += 1;
                let platform = Arc::clone(&machine.platform);
                platform.spawn("replayed call", async move {
                    carry_out(&machine, &task, &file, call, &row).await;
                    let mut ends = lock(&ends);
                    ends.count -= 1;
                    let waker = ends.waker.take();
                    drop(ends);
                    waker.into_iter().for_each(Waker::wake);
                });
            }
            fewer_than(&in_flight, 1).await;
        }
    }
}

async fn fewer_than(in_flight: &Mutex<CallsInFlight>, count: u64) {
    poll_fn(|cx| {
        let mut state = lock(in_flight);
        if state.count < count {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
}

async fn carry_out(machine: &SimulatedSite, task: &Client, file: &WorkFile, call: TracedCall, row: &Mutex<Recorder>) {
    let began_ns = machine.now_ns();
    let result = moved(machine, task, file, call).await;
    let mut row = lock(row);
    match (result, call.operation) {
        (Err(error), TracedOperation::Read) => row.error(format!("read: {error}")),
        (Err(error), TracedOperation::Write) => row.error(format!("write: {error}")),
        (Err(error), TracedOperation::Sync) => row.error(format!("sync: {error}")),
        (Ok(()), TracedOperation::Read) => _ = row.moves[0].record(began_ns, machine.now_ns(), call.bytes),
        (Ok(()), TracedOperation::Write) => _ = row.moves[1].record(began_ns, machine.now_ns(), call.bytes),
        (Ok(()), TracedOperation::Sync) => _ = row.syncs.record(began_ns, machine.now_ns(), 0),
    }
}

async fn moved(machine: &SimulatedSite, task: &Client, file: &WorkFile, call: TracedCall) -> Result<(), Error> {
    if call.operation == TracedOperation::Sync {
        return machine.sync(task, file).await;
    }
    let mut piece = vec![0; call.bytes.min(PIECE_BYTES) as usize];
    let mut done = 0;
    while done < call.bytes {
        let len = (call.bytes - done).min(PIECE_BYTES) as usize;
        match call.operation {
            TracedOperation::Read => {
                machine.read(task, file, call.offset + done, &mut piece[..len]).await.map(|_| ())?
            }
            _ => machine.write(task, file, call.offset + done, &mut piece[..len]).await?,
        }
        done += len as u64;
    }
    Ok(())
}
