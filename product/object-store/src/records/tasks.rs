//! The tasks of open records: batches into the database, the log, memtable flushes, reads of the manifest.
//!
//! Owns: their loops and their common state; the newest change of each key that callers gave and the database may not
//! show yet.
//! Does not own: the seam (`records`), the moments of log PUTs (`log`).
//! Invariants: batches reach the database in the order of their numbers, each as a whole. The first error ends all
//! tasks. A change is pending from before its batch is sent until after the database has taken it. So a key without a
//! pending change may be read from the database at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afflux_object::{RecordsError, Sequence};
use bytes::Bytes;
use slatedb::compactor::Compactor;
use slatedb::config::{FlushOptions, FlushType};
use slatedb::{CloseReason, Db, Error, ErrorKind, WriteBatch};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::failure::chain;
use crate::records::database::{self, Compaction, FLUSH_EVERY, LOGS_MAX, MANIFEST_POLL, UNCOMPACTED_MIN};
use crate::records::log::{BatchCaller, Demand, log};

/// Batches that nobody waits for gather so long before they go to the database.
const GATHERED_FOR: Duration = Duration::from_millis(2);
/// Most batches that go together.
const TOGETHER: usize = 256;

/// The progress of all tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskProgress {
    /// The newest durable batch.
    pub(super) durable: Sequence,
    pub(super) unfenced_at_ns: u64,
    /// Log objects since the last memtable flush, at most.
    pub(super) logs: u64,
    pub(super) ended: Option<RecordsError>,
}

/// An open database and its progress. Callers wait for durable batches on `progress`: a new batch in the database wakes
/// the log alone.
pub(super) struct Tasks {
    pub(super) db: Db,
    pub(super) now_ns: fn() -> u64,
    pub(super) progress: watch::Sender<TaskProgress>,
    pub(super) demand: watch::Sender<Demand>,
    pub(super) compaction: Compaction,
    pub(super) pending: PendingKeys,
}

impl Tasks {
    /// A caller waits for a batch while the value lives.
    pub(super) fn waits(&self, sequence: Sequence) -> BatchCaller<'_> {
        BatchCaller::waits(&self.demand, sequence)
    }

    /// Gives batches to the database. Each time wakes its threads, which costs more than the changes of a call. So the
    /// task gathers batches until a caller waits for one. Then it gives them as one batch.
    pub(super) async fn write(self: Arc<Self>, mut queue: UnboundedReceiver<Sent>) {
        let (mut seen, mut sent) = (self.demand.subscribe(), Vec::with_capacity(TOGETHER));
        while queue.recv_many(&mut sent, TOGETHER).await > 0 {
            let first = sent.first().map_or(Sequence::default(), |(sequence, _)| *sequence);
            // The end of the wait matters, not its kind.
            let _ = timeout(GATHERED_FOR, seen.wait_for(|demand| demand.is_needed(first))).await.map(drop);
            while sent.len() < TOGETHER
                && let Ok(more) = queue.try_recv()
            {
                sent.push(more);
            }
            let began_ns = (self.now_ns)();
            if let Err(error) = self.db.write(as_one(&sent)).await {
                return self.end(reason(&error));
            }
            let last = sent.last().map_or(first, |(sequence, _)| *sequence);
            sent.drain(..).for_each(|batch| self.pending.taken(&batch));
            self.demand.send_modify(|demand| {
                demand.written = last;
                demand.written_ns = began_ns;
            });
        }
    }

    /// Makes batches durable.
    pub(super) async fn log(self: Arc<Self>) {
        let put = || async { self.db.flush().await.map_err(|error| reason(&error)) };
        let durable = |upto, before_ns| {
            self.progress.send_modify(|progress| {
                progress.durable = upto;
                // The PUT was sent later than the batch was given to the database.
                progress.unfenced_at_ns = progress.unfenced_at_ns.max(before_ns);
                progress.logs += 1;
            });
        };
        if let Err(reason) = log(&self.demand, put, durable).await {
            self.end(reason);
        }
    }

    /// Flushes memtables, so that an opening reads a short log. Flushes make the compactor's work, so it starts with
    /// the first one, or at once if work remains from earlier writers.
    pub(super) async fn flush_memtables(self: Arc<Self>, compactor: Compactor) {
        let (mut seen, mut compactor) = (self.progress.subscribe(), Some(compactor));
        if self.db.manifest().l0().len() >= UNCOMPACTED_MIN {
            self.start(compactor.take());
        }
        loop {
            let full = seen.wait_for(|progress| progress.logs >= LOGS_MAX || progress.ended.is_some());
            // The end of the wait matters, not its kind.
            let _ = timeout(FLUSH_EVERY, full).await.map(drop);
            let is_ended = self.progress.borrow().ended.is_some();
            if is_ended {
                return;
            }
            self.start(compactor.take());
            if self.flush_memtable().await.is_err() {
                return;
            }
        }
    }

    fn start(self: &Arc<Self>, compactor: Option<Compactor>) {
        let Some(compactor) = compactor else { return };
        let (tasks, wish) = (Arc::clone(self), self.compaction.begin());
        tokio::spawn(async move {
            if let Err(error) = database::run(compactor, wish).await {
                tasks.end(reason(&error));
            }
        });
    }

    /// Ends the database after a last flush, which may wait for the compactor.
    pub(super) async fn close(&self) -> Result<(), RecordsError> {
        self.flush_memtable().await?;
        self.compaction.stop().await;
        self.db.close().await.map_err(|error| reason(&error))
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
        let sent_ns = (self.now_ns)();
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
        self.demand.send_modify(|demand| demand.is_ended = true);
        self.compaction.end();
    }
}

fn as_one(sent: &[Sent]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (key, given) in sent.iter().flat_map(|(_, changes)| changes) {
        match given {
            Given::Value(value) => batch.put_bytes(key.clone(), value.clone()),
            Given::Removed => batch.delete(key),
            Given::Sum(by) => batch.merge(key, by.to_be_bytes()),
        }
    }
    batch
}

/// The meaning of an error of the database. It retries for itself, so each is an end.
pub(super) fn reason(error: &Error) -> RecordsError {
    match error.kind() {
        ErrorKind::Closed(closed) => of_close(closed, &chain(error)),
        _ => RecordsError::Closed(chain(error)),
    }
}

pub(super) fn of_close(reason: CloseReason, text: &str) -> RecordsError {
    match reason {
        CloseReason::Fenced => RecordsError::Fenced,
        reason => RecordsError::Closed(format!("{text} ({reason:?})")),
    }
}

/// The change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Value(Bytes),
    Removed,
    /// The database adds it up.
    Sum(i64),
}

/// The changes of one batch, with its number.
pub(super) type Sent = (Sequence, Vec<(Bytes, Given)>);

#[derive(Debug, Default)]
pub(super) struct PendingKeys(Mutex<BTreeMap<Bytes, (Sequence, Given)>>);

impl PendingKeys {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Bytes, (Sequence, Given)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the changes of a batch that is about to be sent.
    pub(super) fn give(&self, (sequence, changes): &Sent) {
        let mut pending = self.lock();
        changes.iter().for_each(|(key, given)| _ = pending.insert(key.clone(), (*sequence, given.clone())));
    }

    /// The database has taken a batch.
    pub(super) fn taken(&self, (sequence, changes): &Sent) {
        let mut pending = self.lock();
        for (key, _) in changes {
            if pending.get(key).is_some_and(|(last, _)| last <= sequence) {
                pending.remove(key);
            }
        }
    }

    /// The newest change of a key, if the database may not show it yet.
    pub(super) fn get(&self, key: &[u8]) -> Option<Given> {
        self.lock().get(key).map(|(_, given)| given.clone())
    }
}

#[cfg(test)]
mod tests;
