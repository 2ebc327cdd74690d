//! The volumes of a bucket.
//!
//! Owns: the search for them; the objects of one of them.
//! Does not own: what a volume is made of, but for the folders that distinguish it from others.
//! Invariants: the search lists nothing below a volume, and has a bound.

use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta, ObjectStore};

use crate::address::{Address, LOG, MANIFESTS, PREFIX_BYTES_MAX, RECORDS, TABLES};
use crate::error::StoreError;
use crate::failure::{RequestFailure, advice};
use crate::options::Options;
use crate::probe::repeated;
use crate::site::Site;
use crate::store::Store;

/// Most folders that are looked into.
const FOLDERS_MAX: usize = 100_000;

impl Store {
    /// The addresses of the volumes at a URL and below, in order.
    ///
    /// # Errors
    /// As [`Self::open`], or if the location has too many folders.
    pub async fn volumes(url: &str, options: &Options) -> Result<Vec<String>, StoreError> {
        let site = Site::reach(url, Address::parse(url)?, options, None)?;
        let (wire, prefix) = (Arc::clone(&site.wire), site.address.prefix.clone());
        let found = site.threads.run(async move { search(&*wire, prefix).await }).await;
        let found = found.map_err(|_| StoreError::Threads { why: "they ended".to_owned() })?;
        let found = found.map_err(|failure| advice(url, &site.address, failure))?;
        Ok(found.iter().map(|path| site.address.url(path)).collect())
    }

    /// The objects of the volume, by one list of all.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn stored(&self) -> Result<StoredObjects, StoreError> {
        let site = &self.site;
        let (wire, prefix) = (Arc::clone(&site.wire), site.address.prefix.clone());
        let sums = move || {
            let add = |sums: StoredObjects, meta: ObjectMeta| async move {
                Ok(StoredObjects { objects: sums.objects + 1, bytes: sums.bytes + meta.size })
            };
            let (wire, prefix) = (Arc::clone(&wire), prefix.clone());
            async move { wire.list(Some(&prefix)).try_fold(StoredObjects::default(), add).await }
        };
        let summed = site.threads.run(async move { repeated(sums).await.answer }).await;
        let summed = summed.map_err(|_| StoreError::Threads { why: "they ended".to_owned() })?;
        summed.map_err(|error| advice(&site.url, &site.address, RequestFailure::of(&error)))
    }
}

/// What a volume has in its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredObjects {
    /// Their number: segments, records and a few small ones.
    pub objects: u64,
    /// The sum of their lengths.
    pub bytes: u64,
}

/// The prefixes of volumes.
async fn search(store: &dyn ObjectStore, prefix: Path) -> Result<Vec<Path>, RequestFailure> {
    let (mut volumes, mut left, mut seen) = (Vec::new(), vec![prefix], 0);
    while let Some(folder) = left.pop() {
        seen += 1;
        if seen > FOLDERS_MAX {
            let why = format!("there are more than {FOLDERS_MAX} folders; name a prefix below which the volumes are");
            return Err(RequestFailure::Refused(why));
        }
        let listed = list(store, &folder).await?;
        let has_folder = listed.common_prefixes.iter().any(|path| path.filename() == Some(RECORDS));
        if has_folder && find_volume(store, &folder).await? {
            volumes.push(folder);
        } else {
            // A longer name is no prefix of a volume, and a store may have folders in folders without end.
            let may_be = |path: &Path| path.as_ref().len() <= PREFIX_BYTES_MAX;
            left.extend(listed.common_prefixes.into_iter().filter(may_be));
        }
    }
    volumes.sort();
    Ok(volumes)
}

/// Whether records of a volume are here. A prefix may also have a folder of records for its name.
async fn find_volume(store: &dyn ObjectStore, prefix: &Path) -> Result<bool, RequestFailure> {
    for folder in [MANIFESTS, LOG, TABLES] {
        if find_records(store, prefix, folder).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn find_records(store: &dyn ObjectStore, prefix: &Path, folder: &str) -> Result<bool, RequestFailure> {
    Ok(!list(store, &prefix.clone().join(RECORDS).join(folder)).await?.objects.is_empty())
}

async fn list(store: &dyn ObjectStore, folder: &Path) -> Result<ListResult, RequestFailure> {
    let listed = || store.list_with_delimiter(Some(folder));
    repeated(listed).await.answer.map_err(|error| RequestFailure::of(&error))
}

#[cfg(test)]
mod tests;
