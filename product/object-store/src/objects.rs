//! `Objects` and `DatedObjects` over a store.
//!
//! Owns: the requests.
//! Does not own: their repetition, which is the core's; parts of segments on a local disk (`disk_cache`).
//! Invariants: a request that was begun goes on when its future is dropped.

use std::ops::Range;
use std::sync::Arc;

use afflux_object::{
    Arrivals, ByteParts, DatedObject, DatedObjects, ObjectError, ObjectVersion, Objects, PutOutcome, ReplaceOutcome,
    SegmentId,
};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};

use crate::address::StoreAddress;
use crate::failure::RequestFailure;
use crate::judge::over;
use crate::site::Site;

/// The objects of a volume.
#[derive(Clone, Debug)]
pub struct StoreObjects {
    pub(crate) site: Arc<Site>,
}

impl StoreObjects {
    async fn run<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, ObjectError> {
        let answer = self.site.threads.run(request).await.map_err(|_| ObjectError::Unknown)?;
        answer.map_err(|error| RequestFailure::of(&error).seen())
    }

    /// A GET of a range that has bytes.
    async fn fetch(&self, name: &str, range: Range<u64>, arrivals: &Arrivals) -> Result<ByteParts, ObjectError> {
        let (wire, path, arrivals) = (Arc::clone(&self.site.wire), self.site.address.path(name), arrivals.clone());
        self.run(async move {
            let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
            let found = match wire.get_opts(&path, options).await {
                Ok(found) => found,
                Err(error) => return behind_the_end(error),
            };
            let pieces = found.into_stream().inspect_ok(|piece| arrivals.note(piece.len() as u64));
            Ok(ByteParts(pieces.try_collect().await?))
        })
        .await
    }
}

/// An object has no bytes behind its end.
fn behind_the_end(error: Error) -> Result<ByteParts, Error> {
    if matches!(RequestFailure::of(&error), RequestFailure::Beyond(_)) { Ok(ByteParts::default()) } else { Err(error) }
}

impl Objects for StoreObjects {
    async fn create(&self, name: &str, parts: impl Into<ByteParts> + Send) -> Result<PutOutcome, ObjectError> {
        let parts = parts.into();
        let payload = match self.site.address.store {
            // A file system takes each part by a system call of its own.
            StoreAddress::Directory(_) => parts.joined().into(),
            _ => parts.0.into_iter().collect::<PutPayload>(),
        };
        let (wire, path) = (Arc::clone(&self.site.wire), self.site.address.path(name));
        self.run(async move {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match wire.put_opts(&path, payload, options).await {
                Ok(_) => Ok(PutOutcome::New),
                Err(Error::AlreadyExists { .. }) => Ok(PutOutcome::Present),
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn get_counted(&self, name: &str, range: Range<u64>, arrivals: &Arrivals) -> Result<ByteParts, ObjectError> {
        if range.is_empty() {
            return Ok(ByteParts::default());
        }
        match self.site.disk.get().filter(|_| SegmentId::parse(name).is_ok()) {
            Some(parts) => parts.read(name, range, arrivals, |range| self.fetch(name, range, arrivals)).await,
            None => self.fetch(name, range, arrivals).await,
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, ObjectError> {
        // A store lists whole folders; the rest of the prefix is compared here.
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let address = &self.site.address;
        let root = if folder.is_empty() { address.prefix.clone() } else { address.path(folder) };
        let (wire, volume, prefix) = (Arc::clone(&self.site.wire), address.prefix.clone(), prefix.to_owned());
        self.run(async move {
            let name = |meta: ObjectMeta| {
                let parts = meta.location.prefix_match(&volume)?.map(|part| part.as_ref().to_owned());
                Some(parts.collect::<Vec<_>>().join("/")).filter(|name| name.starts_with(&prefix))
            };
            wire.list(Some(&root)).try_filter_map(|meta| async { Ok(name(meta)) }).try_collect().await
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        let (wire, path) = (Arc::clone(&self.site.wire), self.site.address.path(name));
        self.run(async move {
            match wire.delete(&path).await {
                Err(Error::NotFound { .. }) => Ok(()),
                answer => answer,
            }
        })
        .await
    }

    fn forget(&self, name: &str) {
        if let Some(parts) = self.site.disk.get() {
            parts.forget(name);
        }
    }

    fn away_ns(&self) -> u64 {
        self.site.wire.away_ns()
    }
}

impl DatedObjects for StoreObjects {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        let (wire, path) = (Arc::clone(&self.site.wire), self.site.address.path(name));
        self.run(async move { wire.put(&path, bytes.into()).await.map(drop) }).await
    }

    async fn replace(
        &self,
        name: &str,
        bytes: Bytes,
        version: Option<&ObjectVersion>,
    ) -> Result<ReplaceOutcome, ObjectError> {
        let mode = match (version.cloned(), &self.site.address.store) {
            // The directory's lock excludes others, and a file system replaces no version.
            (_, StoreAddress::Directory(_)) => PutMode::Overwrite,
            (Some(ObjectVersion { tag, id }), _) => PutMode::Update(UpdateVersion { e_tag: tag, version: id }),
            (None, _) => PutMode::Create,
        };
        let (wire, path) = (Arc::clone(&self.site.wire), self.site.address.path(name));
        self.run(async move {
            match wire.put_opts(&path, bytes.into(), PutOptions { mode, ..PutOptions::default() }).await {
                Ok(_) => Ok(ReplaceOutcome::Replaced),
                // A store returns `NotFound` for an update of an object that is gone.
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotFound { .. }) => {
                    Ok(ReplaceOutcome::Changed)
                }
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn dated(&self, name: &str, bytes_max: u64) -> Result<DatedObject, ObjectError> {
        let (wire, path) = (Arc::clone(&self.site.wire), self.site.address.path(name));
        self.run(async move {
            // An empty object has no part.
            let range = (bytes_max > 0).then_some(GetRange::Bounded(0..bytes_max));
            let found = wire.get_opts(&path, GetOptions { range, ..GetOptions::default() }).await?;
            let ObjectMeta { size, last_modified, e_tag, version, .. } = found.meta.clone();
            if size > bytes_max {
                return Err(over(format!("{path} has {size} bytes instead of at most {bytes_max}")));
            }
            let at_ns = u64::try_from(last_modified.timestamp_nanos_opt().unwrap_or_default()).unwrap_or_default();
            let version = ObjectVersion { tag: e_tag, id: version };
            Ok(DatedObject { bytes: found.bytes().await?, at_ns, version })
        })
        .await
    }
}
