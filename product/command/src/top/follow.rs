//! Asks a running server once a second, and collects its events meanwhile.
//!
//! Owns: two connections and their threads, the events that were not fetched yet.
//! Does not own: rates and sums (`model`).
//! Invariants: the screen never waits for the server: a report is there or is not. The stored events are bounded.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::control::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest, Report, TraceEvent};
use afflux_engine::lock;
use afflux_report::failure::{Failure, OrFailed, Outcome};

/// Between two reports.
const EVERY: Duration = Duration::from_secs(1);

/// Most events that are stored from one report to the next.
const EVENTS_MAX: usize = 1 << 16;

/// The events behind the rows.
const WANTED: [&str; 3] = ["pause_ends", "sync_ends", "submitted"];

/// A report, with the events before it.
#[derive(Debug)]
pub(super) struct FollowedReport {
    pub(super) report: Report,
    /// Events since the previous sample.
    pub(super) events: Vec<TraceEvent>,
    pub(super) lost: u64,
}

pub(super) struct Following(Receiver<Outcome<FollowedReport>>);

#[derive(Default)]
struct PendingEvents {
    events: Vec<TraceEvent>,
    lost: u64,
}

impl Following {
    /// Asks the server at the socket `named`, or the only one that runs.
    pub(super) fn start(named: Option<&Path>) -> Outcome<Self> {
        const NO_THREAD: &str = "cannot start a thread";
        let (mut reports, mut events) = (ControlClient::connect(named)?, ControlClient::connect(named)?);
        let only = WANTED.map(str::to_owned).to_vec();
        events.ask(&ControlRequest::Trace { device: None, lasting_ns: None, only })?;
        let pending = Arc::new(Mutex::new(PendingEvents::default()));
        let (told, samples) = mpsc::sync_channel(1);
        let keeping = Arc::clone(&pending);
        // This thread ends with its connection or the process. If the server goes away, the reports show it.
        let body = move || while take(&mut events, &keeping).is_ok() {};
        thread::Builder::new().name("events".to_owned()).spawn(body).or_failed(NO_THREAD)?;
        let body = move || while try_poll_server(&mut reports, &pending, &told) {};
        thread::Builder::new().name("reports".to_owned()).spawn(body).or_failed(NO_THREAD)?;
        Ok(Self(samples))
    }

    pub(super) fn next(&self) -> Outcome<FollowedReport> {
        self.0.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Returns the next sample if it comes within the time.
    pub(super) fn next_within(&self, time: Duration) -> Outcome<Option<FollowedReport>> {
        match self.0.recv_timeout(time) {
            Ok(sample) => sample.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }
}

fn gone() -> Failure {
    Failure::failed("the server is not asked any more")
}

fn take(client: &mut ControlClient, pending: &Mutex<PendingEvents>) -> Outcome {
    match client.reply()? {
        ControlReply::Events { events, lost } => {
            let mut pending = lock(pending);
            let over = (pending.events.len() + events.len()).saturating_sub(EVENTS_MAX);
            pending.lost += lost + over as u64;
            let gone = over.min(pending.events.len());
            pending.events.drain(..gone);
            pending.events.extend(events);
            Ok(())
        }
        other => Err(client.unexpected(&other)),
    }
}

/// Asks once and waits. False once there is no receiver, or after the server failed to answer; the receiver gets that
/// failure.
fn try_poll_server(
    client: &mut ControlClient,
    pending: &Mutex<PendingEvents>,
    told: &SyncSender<Outcome<FollowedReport>>,
) -> bool {
    let report = client.report();
    let answered = report.is_ok();
    let sample = report.map(|report| {
        let PendingEvents { events, lost } = std::mem::take(&mut *lock(pending));
        FollowedReport { report, events, lost }
    });
    let heard = told.send(sample).is_ok();
    if answered && heard {
        thread::sleep(EVERY);
    }
    answered && heard
}
