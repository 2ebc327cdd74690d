//! The promises of a store, found by trying.
//!
//! Owns: the requests of the probe and their reading, its two results.
//! Does not own: the use of the result.
//! Invariants: a store is writable only if it refused a second creation and a stale update, did the right update, and
//! lists an object under the name that was written. Creations and updates are tried side by side, with an object each.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::future::try_join;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutResult, UpdateVersion};

use crate::failure::{RequestFailure, TransientFailure};
use crate::wire::Wire;

/// Tries of a request that had no answer.
const TRIES: u32 = 4;
/// Tries of a request to a store that refuses some, because it gets too many.
const TRIES_IF_BUSY: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(1600);

const FIRST: &[u8] = b"first";
const SECOND: &[u8] = b"second";
const THIRD: &[u8] = b"third";

/// A promise that the store broke.
type Broken = String;

const NO_TAG: &str = "it gives an object no tag (ETag), by which an update would name it";

/// Tries creations at the first name and updates at the second. Nobody else uses these names. The store removes the
/// objects later, and no caller waits for that. An object that stays costs some bytes and harms nobody.
pub(crate) async fn probe(store: &Arc<Wire>, names: [Path; 2], can_update: bool) -> Result<AllowedUse, RequestFailure> {
    let [created, updated] = names;
    let updates = async { if can_update { updates(store, &updated).await } else { Ok(None) } };
    let tried = try_join(creations(store, &created), updates).await;
    let store = Arc::clone(store);
    tokio::spawn(async move {
        drop(store.delete(&created).await);
        if can_update {
            drop(store.delete(&updated).await);
        }
    });
    Ok(match tried? {
        (None, None) => AllowedUse::ReadWrite,
        (Some(broken), _) | (None, Some(broken)) => AllowedUse::ReadOnly { why: broken },
    })
}

/// Creates an object twice.
async fn creations(store: &Wire, name: &Path) -> Result<Option<Broken>, RequestFailure> {
    match put(store, name, FIRST, PutMode::Create).await.answer {
        // The first of two tries may have had its effect.
        Ok(_) | Err(Error::AlreadyExists { .. }) => {}
        Err(error) => return refused(store, name, "If-None-Match", &error).await,
    }
    match put(store, name, SECOND, PutMode::Create).await.answer {
        Err(Error::AlreadyExists { .. }) => {}
        Ok(_) => return broken("it makes an object a second time (If-None-Match has no effect)"),
        Err(error) => return refused(store, name, "If-None-Match", &error).await,
    }
    if get(store, name).await? != FIRST {
        return broken("it refused a second creation, but the object has its bytes");
    }
    match find_listed(store, name).await? {
        true => Ok(None),
        false => broken("it does not list an object under its name; take a prefix of letters and digits"),
    }
}

fn broken(promise: &str) -> Result<Option<Broken>, RequestFailure> {
    Ok(Some(promise.to_owned()))
}

/// The promise behind a failed request with a condition: the store takes the same object without one.
async fn refused(store: &Wire, name: &Path, condition: &str, error: &Error) -> Result<Option<Broken>, RequestFailure> {
    if RequestFailure::is_without_tag(error) {
        return broken(NO_TAG);
    }
    let failure = RequestFailure::of(error);
    let (RequestFailure::Refused(why) | RequestFailure::Denied(why)) = &failure else { return Err(failure) };
    match put(store, name, FIRST, PutMode::Overwrite).await.answer {
        Ok(_) => Ok(Some(format!("it refuses a request with {condition} ({why})"))),
        Err(_) => Err(failure),
    }
}

/// Whether the store lists the object in the object's folder.
async fn find_listed(store: &Wire, name: &Path) -> Result<bool, RequestFailure> {
    let folder: Path = name.parts().take(name.parts_count().saturating_sub(1)).collect();
    let listed = || async {
        let mut names = store.list(Some(&folder));
        while let Some(found) = names.try_next().await? {
            if found.location == *name {
                return Ok(true);
            }
        }
        Ok(false)
    };
    repeated(listed).await.answer.map_err(|error| RequestFailure::of(&error))
}

/// Updates an object with its tag, and then with the same tag.
async fn updates(store: &Wire, name: &Path) -> Result<Option<Broken>, RequestFailure> {
    let first = match put(store, name, FIRST, PutMode::Create).await.answer {
        Ok(first) => first,
        // The first of two tries had its effect.
        Err(Error::AlreadyExists { .. }) => head(store, name).await?,
        Err(error) => return refused(store, name, "If-None-Match", &error).await,
    };
    let Some(tag) = &first.e_tag else { return broken(NO_TAG) };
    let update = || PutMode::Update(UpdateVersion { e_tag: first.e_tag.clone(), version: first.version.clone() });
    let mut updated_once = updated(store, name, update()).await;
    if matches!(updated_once, Ok(false)) {
        // Ceph 16.2 compares the quotes, too.
        store.send_bare_tags();
        updated_once = updated(store, name, update()).await;
    }
    match updated_once {
        Ok(true) => {}
        Ok(false) if tag.starts_with("W/") => {
            return broken("its tags are weak, and no update can name one (If-Match)");
        }
        Ok(false) => return broken("it refuses an update with the right tag (If-Match)"),
        Err(error) => return refused(store, name, "If-Match", &error).await,
    }
    match put(store, name, SECOND, update()).await.answer {
        Err(Error::Precondition { .. }) => Ok(None),
        Ok(_) => broken("it updates an object with a stale tag (If-Match has no effect)"),
        Err(error) => refused(store, name, "If-Match", &error).await,
    }
}

/// Whether the right update had its effect.
async fn updated(store: &Wire, name: &Path, mode: PutMode) -> Result<bool, Error> {
    let put = put(store, name, THIRD, mode).await;
    match put.answer {
        Ok(_) => Ok(true),
        // A try without an answer may have had its effect: then the tag is stale for the next.
        Err(Error::Precondition { .. }) if put.was_repeated => {
            Ok(repeated(|| async { store.get(name).await?.bytes().await }).await.answer? == THIRD)
        }
        Err(Error::Precondition { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn put(store: &Wire, name: &Path, bytes: &'static [u8], mode: PutMode) -> ProbeAnswer<PutResult> {
    repeated(|| {
        let options = PutOptions { mode: mode.clone(), ..PutOptions::default() };
        store.put_opts(name, Bytes::from_static(bytes).into(), options)
    })
    .await
}

async fn head(store: &Wire, name: &Path) -> Result<PutResult, RequestFailure> {
    let meta = repeated(|| store.head(name)).await.answer.map_err(|error| RequestFailure::of(&error))?;
    Ok(PutResult { e_tag: meta.e_tag, version: meta.version, extensions: Default::default() })
}

async fn get(store: &Wire, name: &Path) -> Result<Bytes, RequestFailure> {
    let get = || async { store.get(name).await?.bytes().await };
    repeated(get).await.answer.map_err(|error| RequestFailure::of(&error))
}

/// The last answer to a request.
pub(crate) struct ProbeAnswer<T> {
    pub(crate) answer: Result<T, Error>,
    was_repeated: bool,
}

/// Repeats a request that failed for a while.
pub(crate) async fn repeated<T, F: Future<Output = Result<T, Error>>>(
    mut request: impl FnMut() -> F,
) -> ProbeAnswer<T> {
    let mut pause = FIRST_PAUSE;
    for at in 0.. {
        match request().await {
            Err(error @ Error::Generic { .. }) if at + 1 < tries_of(&error) => tokio::time::sleep(pause).await,
            answer => return ProbeAnswer { answer, was_repeated: at > 0 },
        }
        pause = LONGEST_PAUSE.min(pause * 2);
    }
    unreachable!("the last try returns")
}

/// The number of tries of a request with this error.
fn tries_of(error: &Error) -> u32 {
    // Another try would find the object of this one.
    if RequestFailure::is_without_tag(error) {
        return 1;
    }
    match RequestFailure::of(error) {
        // Without an answer, the store may not be there at all.
        RequestFailure::Busy(TransientFailure::ByStore(_)) => TRIES_IF_BUSY,
        RequestFailure::Busy(_) | RequestFailure::Unknown(_) | RequestFailure::NoBucket => TRIES,
        _ => 1,
    }
}

/// The uses of a store that its promises allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedUse {
    /// The store fulfils the promises that a writer needs.
    ReadWrite,
    /// A writer could lose data here.
    ReadOnly {
        /// The promise that the store broke.
        why: String,
    },
}
