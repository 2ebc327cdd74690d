//! `Records` over SlateDB.
//!
//! Owns: the opening, which fences; the numbers of batches; scans.
//! Does not own: the loops behind it and changes in flight (`tasks`, `log`), the values of settings (`database`).
//! Invariants: batches have the numbers of their calls, and become durable in that order. After the end of the records
//! no batch is taken.

mod database;
mod log;
mod tasks;
mod view;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use afflux_object::{
    Batch, Checkpoint, Durability, EPOCH_MAX, Key, Manifest, Record, RecordChange, RecordDatabase, RecordsError,
    Sequence,
};
use bytes::Bytes;
use slatedb::config::{CloseOptions, DurabilityLevel, ReadOptions, ScanOptions};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::{Db, DbReadOps, VersionedManifest};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use self::database::{BLOCK, settings};
use self::log::Demand;
use self::tasks::{TaskProgress, Tasks, reason};
pub use self::view::{StoreView, ViewState};
use crate::address::StoreAddress;
use crate::error::StoreError;
use crate::failure::of_records;
pub(crate) use crate::records::database::Sum;
use crate::records::database::{Compaction, compactor};
use crate::records::tasks::{Given, PendingKeys, Sent};
use crate::site::Site;

const BLOCK_CACHE_BYTES: u64 = 128 << 20;
/// A scan reads ahead so far: a cold listing is a few requests.
const READ_AHEAD_BYTES: usize = 1 << 20;
const FETCHES: usize = 4;
/// A scan for fewer records reads nothing ahead.
const SHORT: usize = 64;
/// A reader waits while the database has to take more batches than this. Otherwise callers whose changes need not be
/// durable would fill the memory while the database waits for its compactor.
const BEHIND_MAX: u64 = 1_024;

/// The records of a volume, open for writing. When the value is dropped, the database ends without a flush.
pub struct StoreRecords {
    tasks: Arc<Tasks>,
    taking: Mutex<Taking>,
    epoch: u32,
    fenced_at_ns: Option<u64>,
    site: Arc<Site>,
}

/// The batches that callers gave. The waits of these callers bound the queue.
struct Taking {
    last: Sequence,
    queue: UnboundedSender<Sent>,
    is_closing: bool,
}

impl StoreRecords {
    pub(crate) async fn open(site: Arc<Site>) -> Result<Self, StoreError> {
        let (path, store) = site.root();
        let has_updates = !matches!(site.address.store, StoreAddress::Directory(_));
        let cache = MokaCacheOptions { max_capacity: BLOCK_CACHE_BYTES, ..MokaCacheOptions::default() };
        let mut builder = Db::builder(path.clone(), Arc::clone(&store))
            .with_settings(settings(has_updates))
            .with_merge_operator(Arc::new(Sum))
            .with_sst_block_size(BLOCK)
            .with_db_cache(Arc::new(MokaCache::new_with_opts(cache)), 0);
        if let Some((clock, seed)) = &site.time.replay {
            builder = builder.with_system_clock(Arc::clone(clock)).with_seed(*seed);
        }
        let time = site.time.clone();
        let opening = async move {
            let sent_ns = (time.now_ns)();
            (builder.build().await, sent_ns, compactor(path, store, &time))
        };
        let ended = |why: &str| StoreError::Threads { why: why.to_owned() };
        let (db, unfenced_at_ns, compactor) = site.threads.run(opening).await.map_err(|_| ended("they ended"))?;
        let db = db.map_err(|error| of_records(&site.url, &site.address, &error))?;
        let epoch = u32::try_from(db.manifest().writer_epoch()).unwrap_or(u32::MAX);
        if epoch > EPOCH_MAX {
            let why = format!("the epoch is {epoch} instead of at most {EPOCH_MAX}");
            return Err(StoreError::Format { url: site.url.clone(), why });
        }
        let (queue, batches) = unbounded_channel();
        // Writers that die young leave a log that none of them flushed.
        let logs = site.wire.wal_id().saturating_sub(db.manifest().replay_after_wal_id());
        let (progress, _) = watch::channel(TaskProgress { unfenced_at_ns, logs, ..TaskProgress::default() });
        let (demand, _) = watch::channel(Demand::default());
        let tasks = Arc::new(Tasks {
            db,
            now_ns: site.time.now_ns,
            progress,
            demand,
            compaction: Compaction::new(),
            pending: PendingKeys::default(),
        });
        // They end with the records; nobody waits for them.
        drop(site.threads.run(Arc::clone(&tasks).write(batches)));
        drop(site.threads.run(Arc::clone(&tasks).log()));
        drop(site.threads.run(Arc::clone(&tasks).flush_memtables(compactor)));
        drop(site.threads.run(Arc::clone(&tasks).poll()));
        drop(site.threads.run(Arc::clone(&tasks).watch()));
        let fenced_at_ns = Some(site.wire.log_made_ns()).filter(|made_ns| *made_ns > unfenced_at_ns);
        let taking = Mutex::new(Taking { last: Sequence(0), queue, is_closing: false });
        Ok(Self { tasks, taking, epoch, fenced_at_ns, site })
    }

    /// Makes all batches durable and ends the database, so that the next opening reads no log. Batches are refused from
    /// then on, and nothing is removed from the store.
    ///
    /// # Errors
    /// If the records had ended.
    pub async fn close(&self) -> Result<(), RecordsError> {
        let last = {
            let mut taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
            taking.is_closing = true;
            taking.last
        };
        self.durable(last).await?;
        self.site.wire.end_removals();
        let tasks = Arc::clone(&self.tasks);
        let closed = self.run(async move { tasks.close().await }).await;
        self.tasks.end(RecordsError::Closed("the records were closed".to_owned()));
        closed
    }

    /// Waits until the records end. Returns the reason: another writer took over, or the database closed.
    pub async fn ended(&self) -> RecordsError {
        let never = self.reaches(|_| false).await;
        never.err().unwrap_or_else(|| RecordsError::Closed("the records ended".to_owned()))
    }

    async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, RecordsError>> + Send + 'static,
    ) -> Result<T, RecordsError> {
        let ended = |_| RecordsError::Closed("the threads of the store ended".to_owned());
        self.site.threads.run(task).await.map_err(ended)?
    }

    fn last_given(&self) -> Sequence {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Waits until a batch is in the database, or for the end.
    async fn written(&self, sequence: Sequence) -> Result<(), RecordsError> {
        self.tasks.demand.send_if_modified(|demand| {
            let waits = demand.written < sequence;
            demand.reads(sequence);
            waits
        });
        let mut seen = self.tasks.demand.subscribe();
        let is_written = seen.wait_for(|demand| demand.is_ended || demand.written >= sequence).await;
        match is_written.map(|demand| demand.written >= sequence) {
            Ok(true) => Ok(()),
            _ => self.reaches(|_| false).await,
        }
    }

    /// The record of one key, with all batches given. It waits for none of the last ones that leave the key alone.
    async fn find(&self, from: Key, to: Key) -> Result<Vec<Record>, RecordsError> {
        let needed = Sequence(self.last_given().0.saturating_sub(BEHIND_MAX));
        let is_behind = self.tasks.demand.borrow().written < needed;
        if is_behind {
            self.written(needed).await?;
        }
        match self.tasks.pending.get(&from) {
            Some(Given::Value(value)) => return Ok(vec![(from, value.into())]),
            Some(Given::Removed) => return Ok(Vec::new()),
            Some(Given::Sum(_)) => self.written(self.last_given()).await?,
            None => (),
        }
        let read = read(&self.tasks.db, from, to, Durability::Applied, 1);
        self.site.threads.here(read).await.map_err(|error| reason(&error))
    }

    /// Waits for progress, or for the end.
    async fn reaches(&self, is_reached: impl Fn(&TaskProgress) -> bool) -> Result<(), RecordsError> {
        let mut seen = self.tasks.progress.subscribe();
        let waited = seen.wait_for(|progress| is_reached(progress) || progress.ended.is_some()).await;
        let progress = waited.map_err(|_| RecordsError::Closed("the records ended".to_owned()))?;
        match &progress.ended {
            Some(reason) if !is_reached(&progress) => Err(reason.clone()),
            _ => Ok(()),
        }
    }
}

impl RecordDatabase for StoreRecords {
    fn epoch(&self) -> u32 {
        self.epoch
    }

    fn apply(&self, batch: Batch) -> Result<Sequence, RecordsError> {
        let ended = || self.tasks.progress.borrow().ended.clone();
        let mut taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = || ended().unwrap_or_else(|| RecordsError::Closed("the records were closed".to_owned()));
        if taking.is_closing || ended().is_some() {
            return Err(refused());
        }
        if batch.is_empty() {
            return Ok(taking.last);
        }
        let sequence = Sequence(taking.last.0 + 1);
        let batch = (sequence, batch.into_iter().map(given).collect());
        self.tasks.pending.give(&batch);
        taking.queue.send(batch).map_err(|_| refused())?;
        taking.last = sequence;
        Ok(sequence)
    }

    fn durable_through(&self) -> Sequence {
        self.tasks.progress.borrow().durable
    }

    async fn durable(&self, sequence: Sequence) -> Result<(), RecordsError> {
        let _caller = self.tasks.waits(sequence);
        self.reaches(|progress| progress.durable >= sequence).await
    }

    async fn scan_first(
        &self,
        from: Key,
        to: Key,
        durability: Durability,
        most: usize,
    ) -> Result<Vec<Record>, RecordsError> {
        if durability == Durability::Applied && is_one_key(&from, &to) && most > 0 {
            return self.find(from, to).await;
        }
        if durability == Durability::Applied {
            self.written(self.last_given()).await?;
        }
        let tasks = Arc::clone(&self.tasks);
        self.run(async move {
            let read = read(&tasks.db, from, to, durability, most).await;
            read.map_err(|error| reason(&error))
        })
        .await
    }

    async fn manifest(&self) -> Result<Manifest, RecordsError> {
        let tasks = Arc::clone(&self.tasks);
        self.run(async move {
            tasks.flush_memtable().await?;
            tasks.read_manifest().await?;
            Ok(shown(&tasks.db.manifest()))
        })
        .await
    }

    fn unfenced_at_ns(&self) -> u64 {
        self.tasks.progress.borrow().unfenced_at_ns
    }

    fn fenced_at_ns(&self) -> Option<u64> {
        self.fenced_at_ns
    }

    async fn prove(&self) -> Result<(), RecordsError> {
        let tasks = Arc::clone(&self.tasks);
        self.run(async move { tasks.read_manifest().await }).await
    }
}

impl Drop for StoreRecords {
    fn drop(&mut self) {
        self.tasks.end(RecordsError::Closed("the records were dropped".to_owned()));
        let tasks = Arc::clone(&self.tasks);
        // The tasks of the database end. Nothing is flushed: no caller waits for a batch.
        drop(self.site.threads.run(async move {
            let _ = tasks.db.close_with_options(CloseOptions::default().with_flush_type(None)).await;
        }));
    }
}

impl fmt::Debug for StoreRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreRecords").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

fn given(change: RecordChange) -> (Bytes, Given) {
    match change {
        RecordChange::Put(key, value) => (key.into(), Given::Value(value.into())),
        RecordChange::Remove(key) => (key.into(), Given::Removed),
        RecordChange::Add(key, by) => (key.into(), Given::Sum(by)),
    }
}

fn shown(manifest: &VersionedManifest) -> Manifest {
    let living = |checkpoint: &slatedb::Checkpoint| Checkpoint { manifest: checkpoint.manifest_id };
    Manifest { id: manifest.id(), checkpoints: manifest.checkpoints().iter().map(living).collect() }
}

/// The first `most` records of a range.
async fn read(
    db: &(impl DbReadOps + Sync),
    from: Key,
    to: Key,
    durability: Durability,
    most: usize,
) -> Result<Vec<Record>, slatedb::Error> {
    let level = match durability {
        Durability::Applied => DurabilityLevel::Memory,
        Durability::Remote => DurabilityLevel::Remote,
    };
    if from >= to || most == 0 {
        return Ok(Vec::new());
    }
    if is_one_key(&from, &to) {
        // A filter tells most files without the key.
        let options = ReadOptions::default().with_durability_filter(level);
        let value = db.get_with_options(&from, &options).await?;
        return Ok(value.map(|value| (from, value.into())).into_iter().collect());
    }
    let options = ScanOptions::default().with_durability_filter(level).with_cache_blocks(true);
    // The end of a short scan is near: what lies behind it is not fetched.
    let options = match most {
        0..SHORT => options,
        _ => options.with_read_ahead_bytes(READ_AHEAD_BYTES).with_max_fetch_tasks(FETCHES),
    };
    let mut iterator = db.scan_with_options(Bytes::from(from)..Bytes::from(to), &options).await?;
    let mut records = Vec::new();
    while records.len() < most
        && let Some(found) = iterator.next().await?
    {
        records.push((found.key.into(), found.value.into()));
    }
    Ok(records)
}

/// The range ends with the first key behind `from`.
fn is_one_key(from: &[u8], to: &[u8]) -> bool {
    to.strip_prefix(from) == Some(&[0])
}

#[cfg(test)]
mod tests;
