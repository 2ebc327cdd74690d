//! Changes of names that an earlier server may have carried out for the same request.
//!
//! Owns: the beginning and the end of such a change in the journal.
//! Does not own: the decision whether a repetition counts as done (the volume), the memory of the earlier server
//! (`kept::changes`), the changes (`names`).
//! Invariants: a change that counts as done is noted so before its answer.

use std::sync::Arc;

use afflux_volume::{Attributes, Inode, Kind, Platform, VolumeError};

use crate::kept::changes::BegunChange;
use crate::mount::Mount;
use crate::request::RequestHeader;

/// A directory and a name in it.
type Name<'a, P> = (&'a Arc<Inode<P>>, &'a [u8]);

/// Begins a change of names.
pub(super) fn begin<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> BegunChange {
    on.begin_change(header, on.wall_ns(), 0)
}

/// Begins a rename, with the number of the object that has the old name.
pub(super) async fn begin_rename<P: Platform>(on: &Mount<P>, header: &RequestHeader, old: Name<'_, P>) -> BegunChange {
    let object = if on.can_outlive() { on.volume.number_of(old).await } else { None };
    on.begin_change(header, on.wall_ns(), object.unwrap_or_default())
}

/// The result of making an object of this kind. A name that an earlier server has made for this request counts as made.
pub(super) async fn made<P: Platform>(
    on: &Mount<P>,
    change: &BegunChange,
    place: Name<'_, P>,
    kind: Kind,
    result: Result<(Arc<Inode<P>>, Attributes), VolumeError>,
) -> Result<(Arc<Inode<P>>, Attributes), VolumeError> {
    let result = on.volume.made_before(change.before, place, kind, result).await;
    change.ended(&result);
    result
}

/// The result of removing or moving a name. If an earlier server has done so for this request, that counts.
pub(super) async fn gone<P: Platform>(
    on: &Mount<P>,
    change: &BegunChange,
    directory: &Arc<Inode<P>>,
    result: Result<(), VolumeError>,
) -> Result<(), VolumeError> {
    let result = on.volume.gone_before(change.before, directory, result).await;
    change.ended(&result);
    result
}
