//! Changes of names that an earlier server may have carried out for the same request.
//!
//! Owns: the decision whether a repetition that fails counts as done.
//! Does not own: the memory of the earlier server (`kept::journal`), the changes (`names`).
//! Invariants: a program that has its directory for itself sees no error of a change that succeeded. A request that no
//! earlier server has begun is judged by its own outcome alone.

use std::sync::Arc;

use afflux_volume::{Attributes, Inode, Kind, Platform, VolumeError, handle_number};

use crate::kept::journal::{Before, Change};
use crate::mount::Mount;
use crate::request::Header;

/// The host's clock of files may be behind its wall clock by one tick, which is 10 ms at most.
const TICK_NS: u64 = 10_000_000;

/// A directory and a name in it.
type Name<'a, P> = (&'a Arc<Inode<P>>, &'a [u8]);

/// Begins a change of names.
pub(super) fn begin<'a, P: Platform>(on: &'a Mount<P>, header: &Header) -> Change<'a> {
    on.begin_change(header, on.wall_ns(), 0)
}

/// Begins a rename, with the number of the object that has the old name.
pub(super) async fn begin_rename<'a, P: Platform>(on: &'a Mount<P>, header: &Header, old: Name<'_, P>) -> Change<'a> {
    let object = if on.can_outlive() { named(on, old).await } else { None };
    on.begin_change(header, on.wall_ns(), object.unwrap_or_default())
}

/// The number of the object with a name.
async fn named<P: Platform>(on: &Mount<P>, (directory, name): Name<'_, P>) -> Option<u64> {
    let found = match on.volume.try_lookup(directory, name) {
        Some(found) => found,
        None => on.volume.lookup(directory, name).await.ok()?,
    };
    handle_number(on.volume.handle(&found.0).as_bytes())
}

/// Whether an earlier server has carried out a rename: the object has the new name. After an exchange both names are
/// there, so an error would not tell.
pub(super) async fn is_renamed<P: Platform>(on: &Mount<P>, change: &Change<'_>, new: Name<'_, P>) -> bool {
    match change.before {
        Before::Nothing => false,
        Before::Done => true,
        Before::Begun { object, .. } => object != 0 && named(on, new).await == Some(object),
    }
}

/// Whether the change was done, or has been begun and its directory has changed since.
async fn may_be_done<P: Platform>(on: &Mount<P>, change: &Change<'_>, directory: &Arc<Inode<P>>) -> bool {
    match change.before {
        Before::Nothing => false,
        Before::Done => true,
        Before::Begun { value, .. } => {
            let since = i128::from(value.saturating_sub(TICK_NS));
            on.volume.attributes(directory).await.is_ok_and(|found| found.ctime.as_nanos() >= since)
        }
    }
}

/// The result of making an object of this kind. A name that an earlier server has made for this request counts as made.
pub(super) async fn made<P: Platform>(
    on: &Mount<P>,
    change: &mut Change<'_>,
    (directory, name): Name<'_, P>,
    kind: Kind,
    result: Result<(Arc<Inode<P>>, Attributes), VolumeError>,
) -> Result<(Arc<Inode<P>>, Attributes), VolumeError> {
    let result = match result {
        Err(VolumeError::Exists) if may_be_done(on, change, directory).await => {
            let found = on.volume.lookup(directory, name).await?;
            if found.0.kind() == kind { Ok(found) } else { Err(VolumeError::Exists) }
        }
        result => result,
    };
    if result.is_ok() {
        change.done();
    }
    result
}

/// The result of removing or moving a name. If an earlier server has done so for this request, that counts.
pub(super) async fn gone<P: Platform>(
    on: &Mount<P>,
    change: &mut Change<'_>,
    directory: &Arc<Inode<P>>,
    result: Result<(), VolumeError>,
) -> Result<(), VolumeError> {
    let result = match result {
        Err(VolumeError::NotFound) if may_be_done(on, change, directory).await => Ok(()),
        result => result,
    };
    if result.is_ok() {
        change.done();
    }
    result
}
