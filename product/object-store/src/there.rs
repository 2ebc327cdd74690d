//! What is at the location of a volume before it is opened.
//!
//! Owns: the check, the names of foreign objects for people.
//! Does not own: the opening.
//! Invariants: a location counts as empty only if a listing found nothing there but objects of probes, and no folder
//! around it is a volume. A list of volumes would not show a volume inside another, and a user who removes the outer
//! one would remove both.

use futures_util::{StreamExt, TryStreamExt};
use object_store::{ObjectStore, path::Path};

use crate::address::{Address, MANIFESTS, PROBES, RECORDS};
use crate::error::StoreError;
use crate::failure::RequestFailure;
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
    /// Nothing, in the folder of this volume.
    Inside(Path),
}

/// Checks the location of a volume.
pub(crate) async fn look(wire: &Wire, address: &Address) -> Result<There, RequestFailure> {
    let has_manifest = || check_volume(wire, &address.prefix);
    if has_manifest().await? {
        return Ok(There::Volume);
    }
    let is_foreign = |path: &Path| {
        let name = path.prefix_match(&address.prefix).and_then(|mut parts| parts.next());
        name.is_none_or(|name| name.as_ref() != PROBES)
    };
    let names = first(wire, &address.prefix, NAMED_MAX, is_foreign).await?;
    Ok(match names.is_empty() {
        true => around(wire, &address.prefix).await?.map_or(There::Nothing, There::Inside),
        // Another server may have made the volume meanwhile.
        false if has_manifest().await? => There::Volume,
        false => There::Objects(names),
    })
}

async fn check_volume(wire: &Wire, prefix: &Path) -> Result<bool, RequestFailure> {
    let manifests = prefix.clone().join(RECORDS).join(MANIFESTS);
    // A volume may have the name of this folder.
    let is_manifest = |path: &Path| path.parts_count() == manifests.parts_count() + 1;
    Ok(!first(wire, &manifests, 1, is_manifest).await?.is_empty())
}

/// The volume in whose folder the prefix is. Keys for this prefix alone may not read there.
async fn around(wire: &Wire, prefix: &Path) -> Result<Option<Path>, RequestFailure> {
    for parts in 0..prefix.parts_count() {
        let folder = prefix.parts().take(parts).collect();
        match check_volume(wire, &folder).await {
            Ok(true) => return Ok(Some(folder)),
            Ok(false) | Err(RequestFailure::Denied(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(None)
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

/// The error for a location that has other objects.
pub(crate) fn occupied(url: &str, names: &[String]) -> StoreError {
    StoreError::Occupied { url: url.to_owned(), found: names.join(", ") }
}
