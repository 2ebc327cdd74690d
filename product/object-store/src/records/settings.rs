//! The settings of the database.
//!
//! Owns: their values and reasons.
//! Does not own: the times of memtable flushes and manifest reads, which are tasks of ours.
//! Invariants: fences are never deleted: a fenced writer could go on behind a deleted one.

use std::time::Duration;

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
    SstBlockSize,
};

/// The manifest is read so often, to notice a successor and to let an idle writer answer.
pub(super) const MANIFEST_POLL: Duration = Duration::from_secs(5);
/// An opening reads at most about this many log objects.
pub(super) const LOGS_MAX: u64 = 256;
/// A memtable with records is flushed so often.
pub(super) const FLUSH_EVERY: Duration = Duration::from_secs(60);
/// A cold read fetches a block. Its transfer takes less than the latency, and the records of hundreds of files share
/// it.
pub(super) const BLOCK: SstBlockSize = SstBlockSize::Block64Kib;
/// A memtable of this size is flushed.
const MEMTABLE_BYTES: usize = 32 << 20;
/// The compactor looks for work so often, and its worker too. Each look is two requests, also on an idle volume.
const COMPACT_EVERY: Duration = Duration::from_secs(15);
/// It looks so often for the end of a compaction under way.
const COMPACTED_EVERY: Duration = Duration::from_secs(5);
/// A busy writer flushes a memtable every two seconds, so this many come between two looks.
const UNCOMPACTED_MAX: usize = 16;
/// The compactor starts at once with so many of them, and else with the first flush. A flush waits for it once there
/// are too many.
pub(super) const UNCOMPACTED_MIN: usize = UNCOMPACTED_MAX / 2;
/// The database's own collector keeps everything for a day: a suspended machine may still read it.
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

/// The settings for an opening that only puts the log into tables. Nothing compacts or collects beside it.
pub(crate) fn of_flush() -> Settings {
    Settings {
        l0_max_ssts: usize::MAX,
        l0_max_ssts_per_key: usize::MAX,
        garbage_collector_options: None,
        ..settings(true)
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
