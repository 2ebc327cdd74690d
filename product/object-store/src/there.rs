//! What is at the place of a volume before it is opened.
//!
//! Owns: the look, the names of foreign objects for people.
//! Does not own: the opening.
//! Invariants: a place counts as empty only if a listing found nothing there but objects of probes.

use futures_util::{StreamExt, TryStreamExt};
use object_store::{ObjectStore, path::Path};

use crate::address::Address;
use crate::error::StoreError;
use crate::failure::RequestFailure;
use crate::folders::{MANIFESTS, PROBES, RECORDS};
use crate::probe::repeated;
use crate::wire::Wire;

/// As many names tell people what is there.
const NAMED_MAX: usize = 3;

#[derive(Debug)]
pub(crate) enum There {
    Volume,
    Nothing,
    /// No volume, but these objects, and maybe more.
    Objects(Vec<String>),
}

/// Looks at the place of a volume.
pub(crate) async fn look(wire: &Wire, address: &Address) -> Result<There, RequestFailure> {
    let manifests = address.path(RECORDS).join(MANIFESTS);
    let has_manifest = || async { Ok(!first(wire, &manifests, 1, |_| true).await?.is_empty()) };
    if has_manifest().await? {
        return Ok(There::Volume);
    }
    let is_foreign = |path: &Path| {
        let name = path.prefix_match(&address.prefix).and_then(|mut parts| parts.next());
        name.is_none_or(|name| name.as_ref() != PROBES)
    };
    let names = first(wire, &address.prefix, NAMED_MAX, is_foreign).await?;
    Ok(match names.is_empty() {
        true => There::Nothing,
        // Another server may have made the volume meanwhile.
        false if has_manifest().await? => There::Volume,
        false => There::Objects(names),
    })
}

/// The first names in a folder.
async fn first(
    wire: &Wire,
    folder: &Path,
    most: usize,
    is_wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<String>, RequestFailure> {
    let listed = || async {
        let found = wire.list(Some(folder)).map_ok(|meta| meta.location);
        let wanted = found.try_filter(|path| std::future::ready(is_wanted(path)));
        wanted.map_ok(|path| path.to_string()).take(most).try_collect().await
    };
    repeated(listed).await.answer.map_err(|error| RequestFailure::of(&error))
}

/// The error for a place that has other objects.
pub(crate) fn occupied(url: &str, names: &[String]) -> StoreError {
    StoreError::Occupied { url: url.to_owned(), found: names.join(", ") }
}
