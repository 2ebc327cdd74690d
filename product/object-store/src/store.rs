//! An open store.
//!
//! Owns: the opening of a URL: lock, probe; the adapters that come from it.
//! Does not own: the requests.
//! Invariants: a store that broke a promise gives no records to a writer. The probe runs beside the first reads; no
//! record changes before its result. The name of its probe identifies each opening.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use futures_util::future::try_join;
use object_store::path::Path;
use tokio::sync::watch;

use crate::address::{Address, PROBES, StoreAddress};
use crate::connect::connect;
use crate::directory::DirectoryLock;
use crate::disk_cache::{DiskCache, DiskCacheFigures, VolumeParts};
use crate::error::{DiskCacheError, StoreError};
use crate::failure::{RequestFailure, advice};
use crate::objects::StoreObjects;
use crate::options::Options;
use crate::probe::{AllowedUse, probe};
use crate::records::{StoreRecords, StoreView, ViewState};
use crate::site::{Site, variables};
use crate::snapshot::{self, Snapshot};
use crate::there::{self, There, occupied};
use crate::threads::{Gone, StoreClock};
use crate::waits::{RequestWaits, Trouble};
use crate::wire::SentRequests;

/// A store with the location of one volume. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) site: Arc<Site>,
    probed: Probed,
    has_volume: bool,
}

/// The result of a probe, once there is one.
type Probed = watch::Receiver<Option<Result<AllowedUse, RequestFailure>>>;

impl Store {
    /// Finds what [`Self::open`] would refuse without a request to the store, or [`Self::open_to_read`] if it
    /// `is_read`. Nothing is made.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn check(url: &str, options: &Options, is_read: bool) -> Result<(), StoreError> {
        let address = Address::parse(url)?;
        if let StoreAddress::Directory(directory) = &address.store
            && !is_read
            && !DirectoryLock::is_there(directory)?
        {
            return Ok(());
        }
        connect(url, &address, options, &variables()).map(drop)
    }

    /// Connects to `s3://BUCKET/PREFIX`, `gs://…`, `az://…`, `file:///DIR` or `memory:`, and begins to probe it.
    /// [`Self::access`] waits for the result.
    ///
    /// Keys come from the usual variables (`AWS_*`, `GOOGLE_*`, `AZURE_*`), from the files in `~/.aws`, or from the
    /// instance. A directory is made if it is absent, and locked. `memory:` is empty at each opening.
    ///
    /// # Errors
    /// With advice, if the URL or the settings are wrong or the store does not report what is there.
    pub async fn open(url: &str, options: &Options) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let lock = match &address.store {
            StoreAddress::Directory(directory) => Some(DirectoryLock::take(directory)?),
            _ => None,
        };
        let site = Site::reach(url, address, options, lock)?;
        let random = random();
        let names = ["create", "update"].map(|kind| site.address.path(&format!("{PROBES}/{random:016x}-{kind}")));
        let can_update = !matches!(site.address.store, StoreAddress::Directory(_));
        let probed = begin_probe(&site, names, can_update);
        let there = look(&site).await.map_err(|gone| StoreError::Threads { why: format!("{gone:?}") })?;
        match there.map_err(|failure| advice(url, &site.address, failure))? {
            There::Objects(names) => Err(occupied(url, &names)),
            There::Inside(volume) => Err(StoreError::Inside { url: url.to_owned(), volume: site.address.url(&volume) }),
            There::Volume => Ok(Self { site: Arc::new(site), probed, has_volume: true }),
            There::Nothing => Ok(Self { site: Arc::new(site), probed, has_volume: false }),
        }
    }

    /// Connects to a volume that is there, for reading. Nothing is locked, and nothing is written.
    ///
    /// # Errors
    /// As [`Self::open`], or if there is no volume.
    pub async fn open_to_read(url: &str, options: &Options) -> Result<Self, StoreError> {
        let site = Site::reach(url, Address::parse(url)?, options, None)?;
        let there = look(&site).await.map_err(|gone| StoreError::Threads { why: format!("{gone:?}") })?;
        match there.map_err(|failure| advice(url, &site.address, failure))? {
            There::Volume => {}
            There::Nothing | There::Inside(_) => return Err(StoreError::NoVolume { url: url.to_owned() }),
            There::Objects(names) => return Err(occupied(url, &names)),
        }
        let why = "it was opened for reading".to_owned();
        let (_, probed) = watch::channel(Some(Ok(AllowedUse::ReadOnly { why })));
        Ok(Self { site: Arc::new(site), probed, has_volume: true })
    }

    /// The result of the probe.
    ///
    /// # Errors
    /// With advice, if the store does not take the requests of the probe.
    pub async fn access(&self) -> Result<AllowedUse, StoreError> {
        let mut probed = self.probed.clone();
        let probed = probed.wait_for(Option::is_some).await.ok().and_then(|probed| probed.clone());
        let probed = probed.ok_or_else(|| StoreError::Threads { why: "the probe ended".to_owned() })?;
        probed.map_err(|failure| advice(&self.site.url, &self.site.address, failure))
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        match self.access().await? {
            AllowedUse::ReadOnly { why } => Err(StoreError::ReadOnly { url: self.site.url.clone(), why }),
            AllowedUse::ReadWrite => Ok(()),
        }
    }

    /// Whether the opening found a volume. Without one, the first writer makes it.
    pub fn has_volume(&self) -> bool {
        self.has_volume
    }

    /// The objects of the volume.
    pub fn objects(&self) -> StoreObjects {
        StoreObjects { site: Arc::clone(&self.site) }
    }

    /// Opens the records of the volume for writing. From then on no older writer's batch becomes durable.
    ///
    /// # Errors
    /// If the store is read-only, another writer was quicker, or the records have an unknown format.
    pub async fn records(&self) -> Result<StoreRecords, StoreError> {
        // The opening reads first. Its first change waits for the probe.
        let ((), records) = try_join(self.check_writable(), StoreRecords::open(Arc::clone(&self.site))).await?;
        Ok(records)
    }

    /// Opens the records for reading.
    ///
    /// # Errors
    /// If there is no such snapshot, or the records have an unknown format.
    pub async fn view(&self, view: &ViewState) -> Result<StoreView, StoreError> {
        StoreView::open(Arc::clone(&self.site), view).await
    }

    /// Makes a snapshot. It retains the state of the volume after its last flush. A server flushes each minute and at
    /// its end.
    ///
    /// # Errors
    /// If the name is malformed or given already, or the store refuses.
    pub async fn make_snapshot(&self, name: &str) -> Result<(), StoreError> {
        snapshot::make(&self.site, name).await
    }

    /// The snapshots, the oldest first.
    ///
    /// # Errors
    /// If the store refuses, or the records have an unknown format.
    pub async fn snapshots(&self) -> Result<Vec<Snapshot>, StoreError> {
        snapshot::list(&self.site).await
    }

    /// Removes a snapshot. The next passes of the server's upkeep free its space.
    ///
    /// # Errors
    /// If there is no snapshot of the name, or the store refuses.
    pub async fn remove_snapshot(&self, name: &str) -> Result<(), StoreError> {
        snapshot::remove(&self.site, name).await
    }

    /// Has reads of the volume's objects use a disk cache from now on. `id` is the volume's identity, and `epoch` that
    /// of its writer's opening, if this process is the writer. A second call changes nothing.
    ///
    /// # Errors
    /// If the directory of the disk cache takes no note of the volume.
    pub fn use_disk_cache(&self, cache: &DiskCache, id: [u8; 16], epoch: Option<u32>) -> Result<(), DiskCacheError> {
        let parts = cache.of_volume(id, &self.site.location(), epoch, random())?;
        let _ = self.site.disk.set(parts);
        Ok(())
    }

    /// The figures of the disk cache, if the volume has one.
    pub fn disk_cache(&self) -> Option<DiskCacheFigures> {
        self.site.disk.get().map(VolumeParts::figures)
    }

    /// A clock for the volume.
    pub fn clock(&self) -> StoreClock {
        StoreClock { threads: self.site.threads.clone() }
    }

    /// Whether a lock shows that no earlier process uses the store: in a directory, but not in a bucket.
    pub fn is_locked(&self) -> bool {
        self.site.lock.is_some()
    }

    /// A warning for people, if other users of this machine may write to the volume's directory.
    pub fn warning(&self) -> Option<&str> {
        self.site.lock.as_ref()?.warning.as_deref()
    }

    /// The requests since the opening, those of the probe and of the records too.
    pub fn requests(&self) -> SentRequests {
        self.site.wire.requests()
    }

    /// How long ago the store gave its last answer. A view that follows is at most this much behind, and its pause
    /// more.
    pub fn silent_ns(&self) -> u64 {
        self.site.wire.silent_ns()
    }

    /// For how long the store has taken no object, though one is sent: it refuses PUTs, or does not answer them.
    pub fn untaken_ns(&self) -> u64 {
        self.site.wire.untaken_ns()
    }

    /// The first failure of a PUT since the last one that succeeded.
    pub fn refusal(&self) -> Option<Trouble> {
        self.site.wire.refusal()
    }

    /// The reason why operations wait, if a request failed and is repeated: the oldest one.
    pub fn trouble(&self) -> Option<Trouble> {
        self.site.wire.trouble()
    }

    /// The requests that wait for an answer: those of data, of records, and of everything else.
    pub fn waits(&self) -> RequestWaits {
        self.site.wire.waits()
    }

    /// The volume is served from now on. Until then no request waits longer than ten seconds. A server waits until its
    /// store is there again.
    pub fn serve(&self) {
        self.site.wire.patience().serve();
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.site.url)
    }
}

/// Probes the store. Until the result is there, the records do not change.
pub(crate) fn begin_probe(site: &Site, names: [Path; 2], can_update: bool) -> Probed {
    let (tells, probed) = watch::channel(None);
    site.wire.hold_changes();
    let wire = Arc::clone(&site.wire);
    drop(site.threads.run(async move {
        let access = probe(&wire, names, can_update).await;
        let may_change = access == Ok(AllowedUse::ReadWrite);
        tells.send_replace(Some(access));
        wire.decide_changes(may_change);
    }));
    probed
}

/// Checks the location of the volume.
async fn look(site: &Site) -> Result<Result<There, RequestFailure>, Gone> {
    let (wire, address) = (Arc::clone(&site.wire), site.address.clone());
    site.threads.run(async move { there::look(&wire, &address).await }).await
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
