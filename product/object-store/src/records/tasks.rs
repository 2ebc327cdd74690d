//! The tasks of open records: batches into the database, the log, memtable flushes, reads of the manifest.
//!
//! Owns: their loops and their common state.
//! Does not own: the seam (`records`).
//! Invariants: batches reach the database in the order of their numbers. There is one log PUT at a time, and all batches
//! of its duration share the next. A batch that nobody waits for begins no log PUT for a second. The first error ends all
//! tasks.

use std::sync::Arc;
use std::time::Duration;

use afflux_object::{RecordsError, Sequence};
use slatedb::config::{FlushOptions, FlushType};
use slatedb::{CloseReason, Db, Error, ErrorKind, WriteBatch};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::settings::{FLUSH_EVERY, GATHERED_PART, LOGS_MAX, MANIFEST_POLL, SHARED_MIN, UNWANTED_FOR};
use crate::clock::now_ns;

/// The progress of all tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The newest batch in the database.
    pub(super) written: Sequence,
    /// The time before that batch was given to the database.
    pub(super) written_ns: u64,
    /// The newest durable batch.
    pub(super) durable: Sequence,
    /// The newest batch that a caller waits for.
    pub(super) wanted: Sequence,
    pub(super) unfenced_at_ns: u64,
    /// Log objects since the last memtable flush, at most.
    pub(super) logs: u64,
    pub(super) ended: Option<RecordsError>,
}

impl Progress {
    /// Batches in the database that are not durable.
    fn unlogged(&self) -> u64 {
        self.written.0 - self.durable.0
    }
}

/// An open database and its progress.
pub(super) struct Tasks {
    pub(super) db: Db,
    pub(super) progress: watch::Sender<Progress>,
}

pub(super) type Queue = UnboundedReceiver<(Sequence, WriteBatch)>;

impl Tasks {
    /// A caller waits for a batch.
    pub(super) fn want(&self, sequence: Sequence) {
        self.progress.send_if_modified(|progress| {
            let is_new = sequence > progress.wanted;
            progress.wanted = progress.wanted.max(sequence);
            is_new
        });
    }

    /// Gives batches to the database.
    pub(super) async fn write(self: Arc<Self>, mut queue: Queue) {
        while let Some((sequence, batch)) = queue.recv().await {
            let began_ns = now_ns();
            match self.db.write(batch).await {
                Ok(_) => self.progress.send_modify(|progress| {
                    progress.written = sequence;
                    progress.written_ns = began_ns;
                }),
                Err(error) => return self.end(reason(&error)),
            }
        }
    }

    /// Makes batches durable.
    pub(super) async fn log(self: Arc<Self>) {
        let mut seen = self.progress.subscribe();
        // The batches that clients of the last PUT and those after them gave, and the time to wait for as many.
        let (mut expected, mut patience) = (0, Duration::ZERO);
        loop {
            let has_batch = |progress: &Progress| progress.written > progress.durable || progress.ended.is_some();
            let is_wanted = |progress: &Progress| progress.wanted > progress.durable || progress.ended.is_some();
            let is_shared = |progress: &Progress| progress.unlogged() >= expected || progress.ended.is_some();
            // The end of a wait is seen below.
            let _ = seen.wait_for(has_batch).await.map(drop);
            let _ = timeout(UNWANTED_FOR, seen.wait_for(is_wanted)).await.map(drop);
            let _ = timeout(patience, seen.wait_for(is_shared)).await.map(drop);
            let Progress { written: upto, written_ns, durable, ended: None, .. } = seen.borrow_and_update().clone()
            else {
                return;
            };
            let sent = Instant::now();
            if let Err(error) = self.db.flush().await {
                return self.end(reason(&error));
            }
            let carried = upto.0 - durable.0;
            expected = carried + self.progress.borrow().written.0 - upto.0;
            patience = if expected < SHARED_MIN { Duration::ZERO } else { sent.elapsed() / GATHERED_PART };
            self.progress.send_modify(|progress| {
                progress.durable = upto;
                // The PUT was sent later than the batch was given to the database.
                progress.unfenced_at_ns = progress.unfenced_at_ns.max(written_ns);
                progress.logs += 1;
            });
        }
    }

    /// Flushes memtables, so that an opening reads a short log.
    pub(super) async fn flush_memtables(self: Arc<Self>) {
        let mut seen = self.progress.subscribe();
        loop {
            let full = seen.wait_for(|progress| progress.logs >= LOGS_MAX || progress.ended.is_some());
            // The end of the wait matters, not its kind.
            let _ = timeout(FLUSH_EVERY, full).await.map(drop);
            let is_ended = self.progress.borrow().ended.is_some();
            if is_ended || self.flush_memtable().await.is_err() {
                return;
            }
        }
    }

    /// Flushes the memtable, if there is anything in it. The manifest then shows all batches that were durable.
    pub(super) async fn flush_memtable(&self) -> Result<(), RecordsError> {
        let logs = self.progress.borrow().logs;
        if logs == 0 {
            return Ok(());
        }
        let options = FlushOptions { flush_type: FlushType::MemTable };
        if let Err(error) = self.db.flush_with_options(options).await {
            let reason = reason(&error);
            self.end(reason.clone());
            return Err(reason);
        }
        // Two flushes at a time count the same objects.
        self.progress.send_modify(|progress| progress.logs = progress.logs.saturating_sub(logs));
        Ok(())
    }

    /// Reads the manifest now and then.
    pub(super) async fn poll(self: Arc<Self>) {
        while self.progress.borrow().ended.is_none() {
            tokio::time::sleep(MANIFEST_POLL).await;
            if self.read_manifest().await.is_err() {
                return;
            }
        }
    }

    /// Reads the newest manifest, and finds out whether there is a successor.
    pub(super) async fn read_manifest(&self) -> Result<(), RecordsError> {
        let sent_ns = now_ns();
        if let Err(error) = self.db.refresh_manifest().await {
            let reason = reason(&error);
            self.end(reason.clone());
            return Err(reason);
        }
        self.progress.send_modify(|progress| progress.unfenced_at_ns = progress.unfenced_at_ns.max(sent_ns));
        Ok(())
    }

    /// Notices that the database ended by itself.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut status = self.db.subscribe();
        let closed = match status.wait_for(|status| status.close_reason.is_some()).await {
            Ok(status) => status.close_reason,
            Err(_) => None,
        };
        self.end(of_close(closed.unwrap_or(CloseReason::Clean), "it ended"));
    }

    /// Ends all tasks and waits. The first reason stays.
    pub(super) fn end(&self, reason: RecordsError) {
        self.progress.send_modify(|progress| {
            progress.ended.get_or_insert(reason);
        });
    }
}

/// The meaning of an error of the database. It retries for itself, so each is an end.
pub(super) fn reason(error: &Error) -> RecordsError {
    match error.kind() {
        ErrorKind::Closed(closed) => of_close(closed, &error.to_string()),
        _ => RecordsError::Closed(error.to_string()),
    }
}

pub(super) fn of_close(reason: CloseReason, text: &str) -> RecordsError {
    match reason {
        CloseReason::Fenced => RecordsError::Fenced,
        reason => RecordsError::Closed(format!("{text} ({reason:?})")),
    }
}
