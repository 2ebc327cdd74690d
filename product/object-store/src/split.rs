//! Volumes whose database stands at two prefixes.
//!
//! Earlier versions gave the volume's prefix to the database. The database encodes some characters in paths of its log
//! and its tables, such as `~` and `ü`. It leaves the paths of its manifests as they are. So these objects are below
//! another prefix than the volume.
//!
//! Owns: the other prefix, the move of the objects.
//! Does not own: volumes with other prefixes, to which nothing here sends a request.
//! Invariants: writers of an earlier version are fenced before the first copy. An object is removed after the mark that
//! all copies are there. A move that was cut off goes on with the next writer.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use slatedb::Db;
use slatedb::config::{FlushOptions, FlushType};

use crate::address::{Address, MANIFESTS, RECORDS, StoreAddress};
use crate::error::StoreError;
use crate::failure::{RequestFailure, advice, of_records};
use crate::probe::repeated;
use crate::records::{Sum, of_flush};
use crate::site::Site;
use crate::wire::Wire;

/// An object of this name says that the whole database is below the volume's prefix.
const MARK: &str = "records/whole";
const COPIES: usize = 16;

/// Where an earlier version put the log and the tables, if elsewhere than the rest.
pub(crate) fn other_folder(address: &Address) -> Option<Path> {
    // A directory's names are decoded again.
    if matches!(address.store, StoreAddress::Directory(_) | StoreAddress::Memory) {
        return None;
    }
    let folder = address.path(RECORDS);
    Some(encoded(&folder)).filter(|other| *other != folder)
}

/// The path that the database made of a path.
pub(crate) fn encoded(path: &Path) -> Path {
    Path::from(path.as_ref())
}

/// Whether the log and the tables are still there.
pub(crate) async fn check_split(wire: &Wire, address: &Address) -> Result<bool, RequestFailure> {
    let Some(folder) = other_folder(address) else { return Ok(false) };
    if check_mark(wire, address).await? || !find_any(wire, &folder).await? {
        return Ok(false);
    }
    if check_other_volume(wire, &folder).await? {
        let why = format!("{folder} may have a part of this volume and has another volume; move that one away first");
        return Err(RequestFailure::Refused(why));
    }
    Ok(true)
}

/// Whether a volume has this very folder.
async fn check_other_volume(wire: &Wire, folder: &Path) -> Result<bool, RequestFailure> {
    find_any(wire, &folder.clone().join(MANIFESTS)).await
}

async fn check_mark(wire: &Wire, address: &Address) -> Result<bool, RequestFailure> {
    let mark = address.path(MARK);
    match repeated(|| wire.head(&mark)).await.answer {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(RequestFailure::of(&error)),
    }
}

async fn find_any(wire: &Wire, folder: &Path) -> Result<bool, RequestFailure> {
    let first = || async { wire.list(Some(folder)).next().await.transpose() };
    Ok(repeated(first).await.answer.map_err(|error| RequestFailure::of(&error))?.is_some())
}

/// Moves the objects of a writer's volume, if there are any elsewhere.
pub(crate) async fn mend(site: &Arc<Site>) -> Result<(), StoreError> {
    let Some(folder) = other_folder(&site.address) else { return Ok(()) };
    if site.is_split() {
        let (wire, address) = (Arc::clone(&site.wire), site.address.clone());
        let settled = site.threads.run(async move { settle(wire, &address).await });
        let settled = settled.await.map_err(|_| StoreError::Threads { why: "they ended".to_owned() })?;
        settled.map_err(|error| of_records(&site.url, &site.address, &error))?;
    }
    let copies = {
        let (site, is_split) = (Arc::clone(site), site.is_split());
        async move { carry(&site.wire, &site.address, &folder, is_split).await }
    };
    let carried = site.threads.run(copies).await.map_err(|_| StoreError::Threads { why: "they ended".to_owned() })?;
    carried.map_err(|failure| advice(&site.url, &site.address, failure))?;
    site.set_split(false);
    Ok(())
}

/// Fences every writer that knows the database at the two locations, and puts its log into tables.
async fn settle(wire: Arc<Wire>, address: &Address) -> Result<(), slatedb::Error> {
    let store: Arc<dyn ObjectStore> = wire;
    let db = Db::builder(address.path(RECORDS), store).with_settings(of_flush()).with_merge_operator(Arc::new(Sum));
    let db = db.build().await?;
    db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    db.close().await
}

/// Copies the objects, unless that was done, and removes those at the old location.
async fn carry(wire: &Wire, address: &Address, from: &Path, is_split: bool) -> Result<(), RequestFailure> {
    if is_split {
        let copies: Vec<_> =
            listed(wire, from).await?.into_iter().map(|object| copy(wire, address, from, object)).collect();
        stream::iter(copies).buffer_unordered(COPIES).try_collect::<()>().await?;
    }
    if !check_mark(wire, address).await? {
        let mark = address.path(MARK);
        repeated(|| wire.put(&mark, "whole\n".into())).await.answer.map_err(|error| RequestFailure::of(&error))?;
    }
    if check_other_volume(wire, from).await? {
        return Ok(());
    }
    for object in listed(wire, from).await? {
        match repeated(|| wire.delete(&object)).await.answer {
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(RequestFailure::of(&error)),
        }
    }
    Ok(())
}

async fn listed(wire: &Wire, folder: &Path) -> Result<Vec<Path>, RequestFailure> {
    let all = || wire.list(Some(folder)).map_ok(|meta| meta.location).try_collect();
    repeated(all).await.answer.map_err(|error| RequestFailure::of(&error))
}

async fn copy(wire: &Wire, address: &Address, from: &Path, object: Path) -> Result<(), RequestFailure> {
    let folder = address.path(RECORDS);
    let Some(rest) = object.prefix_match(from) else { return Ok(()) };
    let to: Path = folder.parts().chain(rest).collect();
    match repeated(|| wire.copy(&object, &to)).await.answer {
        // The database removed it as garbage.
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(RequestFailure::of(&error)),
    }
}
