//! The promises of a store, found by trying.
//!
//! Owns: the requests of the probe and their reading.
//! Does not own: the use of the result.
//! Invariants: a store is writable only if it refused a second creation and a stale update, and did the right update.

use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutResult, UpdateVersion};

use crate::access::Access;
use crate::failure::Failure;
use crate::wire::Wire;

/// Tries of a request that had no answer.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

const FIRST: &[u8] = b"first";
const SECOND: &[u8] = b"second";
const THIRD: &[u8] = b"third";

/// Tries the store at a name that nobody else uses.
pub(crate) async fn probe(store: &Wire, name: &Path, can_update: bool) -> Result<Access, Failure> {
    let result = promises(store, name, can_update).await;
    // A probe that is left behind costs some bytes and harms nobody.
    let _ = store.delete(name).await;
    result
}

async fn promises(store: &Wire, name: &Path, can_update: bool) -> Result<Access, Failure> {
    let read_only = |why: &str| Ok(Access::ReadOnly { why: why.to_owned() });
    let first = match put(store, name, FIRST, PutMode::Create).await {
        Ok(first) => first,
        Err(Error::NotImplemented { .. }) => return read_only("it knows no conditional creation"),
        // The first of two tries had its effect.
        Err(Error::AlreadyExists { .. }) => head(store, name).await?,
        Err(error) => return Err(Failure::of(&error)),
    };
    match put(store, name, SECOND, PutMode::Create).await {
        Err(Error::AlreadyExists { .. }) => {}
        Ok(_) => return read_only("it makes an object a second time (If-None-Match has no effect)"),
        Err(error) => return Err(Failure::of(&error)),
    }
    if get(store, name).await? != FIRST {
        return read_only("it refused a second creation, but the object has its bytes");
    }
    if !can_update {
        return Ok(Access::ReadWrite);
    }
    let update =
        |tag: &PutResult| PutMode::Update(UpdateVersion { e_tag: tag.e_tag.clone(), version: tag.version.clone() });
    match put(store, name, THIRD, update(&first)).await {
        Ok(_) => {}
        // A try without an answer had its effect: the tag is stale now.
        Err(Error::Precondition { .. }) if get(store, name).await? == THIRD => {}
        Err(Error::Precondition { .. }) => {
            // Ceph 16.2 compares the quotes, too.
            store.send_bare_tags();
            match put(store, name, THIRD, update(&first)).await {
                Ok(_) => {}
                Err(Error::Precondition { .. }) if get(store, name).await? == THIRD => {}
                Err(Error::Precondition { .. }) => {
                    return read_only("it refuses an update with the right tag (If-Match)");
                }
                Err(error) => return Err(Failure::of(&error)),
            }
        }
        Err(Error::NotImplemented { .. }) => return read_only("it knows no conditional update"),
        Err(error) => return Err(Failure::of(&error)),
    }
    match put(store, name, SECOND, update(&first)).await {
        Err(Error::Precondition { .. }) => Ok(Access::ReadWrite),
        Ok(_) => read_only("it updates an object with a stale tag (If-Match has no effect)"),
        Err(error) => Err(Failure::of(&error)),
    }
}

async fn put(store: &Wire, name: &Path, bytes: &'static [u8], mode: PutMode) -> Result<PutResult, Error> {
    repeated(|| {
        let options = PutOptions { mode: mode.clone(), ..PutOptions::default() };
        store.put_opts(name, Bytes::from_static(bytes).into(), options)
    })
    .await
}

async fn head(store: &Wire, name: &Path) -> Result<PutResult, Failure> {
    let meta = repeated(|| store.head(name)).await.map_err(|error| Failure::of(&error))?;
    Ok(PutResult { e_tag: meta.e_tag, version: meta.version, extensions: Default::default() })
}

async fn get(store: &Wire, name: &Path) -> Result<Bytes, Failure> {
    let get = || async { store.get(name).await?.bytes().await };
    repeated(get).await.map_err(|error| Failure::of(&error))
}

/// Repeats a request that failed for a while.
async fn repeated<T, F: Future<Output = Result<T, Error>>>(mut request: impl FnMut() -> F) -> Result<T, Error> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match request().await {
            Err(error @ Error::Generic { .. }) if is_passing(&error) => tokio::time::sleep(pause).await,
            answer => return answer,
        }
        pause *= 2;
    }
    request().await
}

fn is_passing(error: &Error) -> bool {
    matches!(Failure::of(error), Failure::Busy(_) | Failure::Unknown(_))
}
