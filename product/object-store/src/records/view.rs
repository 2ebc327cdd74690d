//! `Records` as a view that is only read.
//!
//! Owns: the opening of a view: the newest state, which follows another host's writer, or a snapshot.
//! Does not own: the scans, which are those of a writer (`records`).
//! Invariants: a view sends no request that changes anything. Its states are those after whole batches.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use afflux_object::{Batch, Durability, Key, Manifest, Record, RecordDatabase, RecordsError, Sequence};
use slatedb::config::DbReaderOptions;
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::{DbReader, DbReaderMode};

use super::tasks::{of_close, reason};
use super::{BLOCK_CACHE_BYTES, read, shown};
use crate::error::StoreError;
use crate::failure::of_records;
use crate::records::database::Sum;
use crate::site::Site;
use crate::snapshot::{admin, find};

/// A view polls so often for what the writer made durable. Each poll is about ten requests, also at an idle volume.
/// Clients of NFS cache attributes for three seconds at least, so more polls would show their programs nothing earlier.
const POLL: Duration = Duration::from_secs(3);
/// A view that does not move.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The state that a view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewState {
    /// The newest one, about three seconds behind the writer.
    Following,
    /// The newest one of the opening.
    Fixed,
    /// A snapshot of this name.
    Snapshot(String),
}

/// The records of a volume, open for reading.
pub struct StoreView {
    db: Arc<DbReader>,
    site: Arc<Site>,
}

impl StoreView {
    pub(crate) async fn open(site: Arc<Site>, view: &ViewState) -> Result<Self, StoreError> {
        let root = site.root();
        let poll = if *view == ViewState::Following { POLL } else { NEVER };
        let (at, view) = (Arc::clone(&site), view.clone());
        let opening = async move {
            let mode = match view {
                ViewState::Following | ViewState::Fixed => DbReaderMode::FollowLatest,
                ViewState::Snapshot(name) => {
                    let there = admin(&root).list_checkpoints(None).await;
                    let there = there.map_err(|error| of_records(&at.url, &at.address, &error))?;
                    DbReaderMode::Checkpoint(find(&at.url, &name, there)?.id)
                }
            };
            let options = DbReaderOptions { manifest_poll_interval: poll, ..DbReaderOptions::default() };
            let cache = MokaCacheOptions { max_capacity: BLOCK_CACHE_BYTES, ..MokaCacheOptions::default() };
            let builder = DbReader::builder(root.0, root.1).with_reader_mode(mode).with_options(options);
            let builder = builder.with_merge_operator(Arc::new(Sum));
            let builder = builder.with_db_cache(Arc::new(MokaCache::new_with_opts(cache)), 0);
            builder.build().await.map_err(|error| of_records(&at.url, &at.address, &error))
        };
        let ended = |_| StoreError::Threads { why: "they ended".to_owned() };
        let db = site.threads.run(opening).await.map_err(ended)??;
        Ok(Self { db: Arc::new(db), site })
    }

    /// Calls `moved` whenever the view shows a later state. Returns why it shows no later one any more.
    pub async fn follow(&self, mut moved: impl FnMut()) -> RecordsError {
        let mut status = self.db.subscribe();
        loop {
            let seen = status.borrow_and_update().durable_seq;
            let is_news = |status: &slatedb::DbStatus| status.durable_seq != seen || status.close_reason.is_some();
            match status.wait_for(is_news).await.map(|status| status.close_reason) {
                Ok(None) => moved(),
                Ok(Some(reason)) => return of_close(reason, "the view ended"),
                Err(_) => return RecordsError::Closed("the view ended".to_owned()),
            }
        }
    }

    async fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Result<T, RecordsError> {
        let ended = |_| RecordsError::Closed("the threads of the store ended".to_owned());
        self.site.threads.run(task).await.map_err(ended)
    }
}

impl RecordDatabase for StoreView {
    fn epoch(&self) -> u32 {
        0
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn apply(&self, _: Batch) -> Result<Sequence, RecordsError> {
        Err(RecordsError::ReadOnly)
    }

    fn durable_through(&self) -> Sequence {
        Sequence::default()
    }

    async fn durable(&self, _: Sequence) -> Result<(), RecordsError> {
        Ok(())
    }

    async fn scan_first(
        &self,
        from: Key,
        to: Key,
        durability: Durability,
        most: usize,
    ) -> Result<Vec<Record>, RecordsError> {
        let db = Arc::clone(&self.db);
        let read = self.run(async move { read(&*db, from, to, durability, most).await }).await?;
        read.map_err(|error| reason(&error))
    }

    async fn manifest(&self) -> Result<Manifest, RecordsError> {
        Ok(shown(&self.db.manifest()))
    }

    /// No writer fences a view.
    fn unfenced_at_ns(&self) -> u64 {
        u64::MAX
    }

    async fn prove(&self) -> Result<(), RecordsError> {
        // The database has no call for a poll. The next one begins within a pause, and is over within another.
        self.run(async { tokio::time::sleep(2 * POLL).await }).await
    }
}

impl fmt::Debug for StoreView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreView")
    }
}
