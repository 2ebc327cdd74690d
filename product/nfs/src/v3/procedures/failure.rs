//! Failures that procedures have in common.
//!
//! Owns: the body of a failed call with one object's attributes, the refusal of data operations on other kinds of
//! objects.
//! Does not own: the status that a procedure may return (`permitted`).
//! Invariants: a failure carries the object's attributes if they can be had.

use std::sync::Arc;

use afflux_volume::{Inode, Kind, Platform};

use crate::operations::{Ended, Operations, Stop, attributes_if_any};
use crate::status::NfsStatus;
use crate::wire::reply::Draft;

/// Writes the results of a call that failed and has an object's attributes for that.
pub(super) async fn failed<P: Platform>(
    on: &impl Operations<P>,
    draft: &mut Draft,
    inode: &Arc<Inode<P>>,
    stop: Stop,
) -> Ended {
    let Stop::Failed(status) = stop else { return Err(stop) };
    let attributes = attributes_if_any(on, inode).await?;
    draft.status(status).post_op(attributes.as_ref());
    Ok(())
}

/// Refuses data operations on objects that are not regular files, as Linux servers do.
pub(super) fn check_regular(kind: Kind) -> Result<(), NfsStatus> {
    match kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(NfsStatus::Isdir),
        _ => Err(NfsStatus::Inval),
    }
}
