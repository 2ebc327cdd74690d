//! The database of our records: its settings, its sums, its compactor.
//!
//! Owns: the values of the settings and their reasons; the addition by which the database joins changes of one record;
//! the making, the run and the end of the compactor.
//! Does not own: the times of memtable flushes and manifest reads, the moment of the compactor's start (`tasks`); the
//! choice of records that it merges (the database).
//! Invariants: fences are never deleted: a fenced writer could go on behind a deleted one. The order of additions does
//! not matter. An absent record counts as 0. No opening waits for the compactor: its start takes seven round trips. A
//! failure of it ends the records. After [`Compaction::stop`] it sends no request.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::compactor::Compactor;
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
    SstBlockSize,
};
use slatedb::{CompactorBuilder, MergeOperator, MergeOperatorError};
use tokio::sync::watch::{Receiver, Sender, channel};

use crate::threads::Time;

/// The manifest is read so often, to notice a successor and to let an idle writer answer.
pub(super) const MANIFEST_POLL: Duration = Duration::from_secs(5);
/// An opening reads at most about this many log objects.
pub(super) const LOGS_MAX: u64 = 256;
/// A memtable with records is flushed so often.
pub(super) const FLUSH_EVERY: Duration = Duration::from_secs(60);
/// A cold read fetches a block. Its transfer takes less than the latency, and it has the records of hundreds of files.
pub(super) const BLOCK: SstBlockSize = SstBlockSize::Block64Kib;
/// A memtable of this size is flushed.
const MEMTABLE_BYTES: usize = 32 << 20;
/// The compactor polls for work so often, and its worker too. Each poll is two requests, also on an idle volume.
const COMPACT_EVERY: Duration = Duration::from_secs(15);
/// It polls so often for the end of a compaction under way.
const COMPACTED_EVERY: Duration = Duration::from_secs(5);
/// A busy writer flushes a memtable every two seconds, so this many come between two polls.
const UNCOMPACTED_MAX: usize = 16;
/// The compactor starts at once with so many of them, and else with the first flush. A flush waits for it once there
/// are too many.
pub(super) const UNCOMPACTED_MIN: usize = UNCOMPACTED_MAX / 2;
/// The database's own collector retains everything for a day: a suspended machine may still read it.
const RETENTION: Duration = Duration::from_secs(24 * 3600);
const COLLECT_EVERY: Duration = Duration::from_secs(3600);
/// Our task reads the manifest; the database's timer is a second one.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// The settings. A store without conditional updates has no boundary files.
pub(super) fn settings(has_updates: bool) -> Settings {
    let folder =
        Some(GarbageCollectorDirectoryOptions { interval: Some(COLLECT_EVERY), min_age: RETENTION, dry_run: false });
    Settings {
        // The log's task flushes as soon as there is a batch. A timer of a millisecond would also wake an idle machine.
        flush_interval: None,
        manifest_poll_interval: NEVER,
        l0_sst_size_bytes: MEMTABLE_BYTES,
        l0_max_ssts: UNCOMPACTED_MAX,
        l0_max_ssts_per_key: UNCOMPACTED_MAX,
        // It runs beside the database, which would wait for its start.
        compactor_options: None,
        garbage_collector_options: Some(GarbageCollectorOptions {
            manifest_options: folder,
            wal_options: folder,
            wal_fence_options: None,
            compacted_options: folder,
            compactions_options: folder,
            detach_options: None,
            boundary_files_enabled: has_updates,
            ..GarbageCollectorOptions::default()
        }),
        ..Settings::default()
    }
}

/// The settings of the compactor.
pub(super) fn compaction() -> CompactorOptions {
    CompactorOptions {
        poll_interval: COMPACT_EVERY,
        commit_compacted_interval: COMPACTED_EVERY,
        worker: Some(CompactionWorkerOptions {
            compactions_poll_interval: COMPACT_EVERY,
            ..CompactionWorkerOptions::default()
        }),
        ..CompactorOptions::default()
    }
}

/// Adds numbers of 8 big-endian bytes.
pub(crate) struct Sum;

impl MergeOperator for Sum {
    fn merge(&self, key: &Bytes, existing: Option<Bytes>, operand: Bytes) -> Result<Bytes, MergeOperatorError> {
        let before = existing.map_or(Ok(0), |existing| decode_sum(key, &existing))?;
        let sum = before.wrapping_add(decode_sum(key, &operand)?);
        Ok(Bytes::copy_from_slice(&sum.to_be_bytes()))
    }
}

fn decode_sum(key: &Bytes, value: &Bytes) -> Result<i64, MergeOperatorError> {
    let bytes = value.as_ref().try_into().map_err(|_| MergeOperatorError::Callback {
        message: format!("the record {key:?} has {} bytes instead of the 8 of a sum", value.len()),
    })?;
    Ok(i64::from_be_bytes(bytes))
}

/// Makes the compactor of a database. It sends no request before its run.
pub(super) fn compactor(path: Path, store: Arc<dyn ObjectStore>, time: &Time) -> Compactor {
    let builder = CompactorBuilder::new(path, store)
        .with_options(compaction())
        .with_merge_operator(Arc::new(Sum))
        .with_sst_block_size(BLOCK);
    match &time.replay {
        Some((clock, seed)) => builder.with_system_clock(Arc::clone(clock)).with_seed(*seed).build(),
        None => builder.build(),
    }
}

/// The wish that the compactor ends. Each run has a receiver until it has ended.
pub(super) struct Compaction(Sender<bool>);

impl Compaction {
    pub(super) fn new() -> Self {
        Self(channel(false).0)
    }

    pub(super) fn begin(&self) -> Receiver<bool> {
        self.0.subscribe()
    }

    /// Asks a run to end.
    pub(super) fn end(&self) {
        self.0.send_replace(true);
    }

    /// Ends a run, and waits for it.
    pub(super) async fn stop(&self) {
        self.end();
        self.0.closed().await;
    }
}

/// Compacts until the end.
///
/// # Errors
/// If another compactor took over, or the database fails.
pub(super) async fn run(compactor: Compactor, mut wish: Receiver<bool>) -> Result<(), slatedb::Error> {
    let ended = {
        let (ended, run) = (pin!(wish.wait_for(|ends| *ends)), pin!(compactor.run()));
        match select(ended, run).await {
            Either::Left(_) => None,
            Either::Right((result, _)) => Some(result),
        }
    };
    match ended {
        Some(result) => result,
        None => compactor.stop().await,
    }
}
