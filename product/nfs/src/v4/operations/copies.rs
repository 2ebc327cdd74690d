//! COPY and CLONE (RFC 7862) within this server.
//!
//! Owns: their results, the part of a COPY that one call carries out.
//! Does not own: shared blocks, the cache, the moved pieces, durability (the volume); rights by a stateid (`opens`).
//! Invariants: a CLONE shares all bytes or changes none, and is durable when it is answered: it has no verifier. A COPY
//! that cannot share blocks moves at most [`COPIED_BYTES_MAX`], and the client asks for the rest. So it holds its slot
//! for a bounded time. The copied bytes are durable after a COMMIT.

use std::sync::Arc;

use afflux_frontend::trace::TracedOperation;
use afflux_volume::{CloneSide, FILE_BYTES_MAX, Inode, Platform, Share};

use crate::operations::{Ended, Operations, Stability, Task};
use crate::status::NfsStatus;
use crate::v4::codec::{CloneArgs, CopyArgs};
use crate::v4::compound::{Compound, Object, check_regular};
use crate::v4::operations::data::target;
use crate::v4::operations::opens::{Right, right_of};
use crate::v4::state::stateids::Stateid;
use crate::wire::reply::Draft;

/// Most bytes that one COPY moves.
const COPIED_BYTES_MAX: u64 = 16 << 20;

/// The saved file, and the user whose rights count: an open has asked for the right already.
fn source<'a, P: Platform>(
    on: &Task<'a, P>,
    compound: &Compound<P>,
    stateid: Stateid,
) -> Result<(Arc<Inode<P>>, Task<'a, P>), NfsStatus> {
    let inode = match compound.saved()? {
        Object::Inode(inode) => Arc::clone(inode),
        Object::Above => return Err(NfsStatus::Isdir),
    };
    check_regular(inode.kind())?;
    let by = match right_of(compound, stateid, Share::READ, inode.fileid())? {
        Right::OfOpen => on.as_server(),
        Right::OfUser => on.same(),
    };
    Ok((inode, by))
}

pub(super) async fn clone<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    CloneArgs { from, to, from_offset, to_offset, count }: CloneArgs,
) -> Ended {
    let (source, reader) = source(on, compound, from)?;
    let (target, writer) = target(on, compound, to, Share::WRITE)?;
    let from = CloneSide { caller: reader.caller, inode: &source, offset: from_offset };
    let to = CloneSide { caller: writer.caller, inode: &target, offset: to_offset };
    on.volume.clone_by(from, to, count).await.result?;
    Ok(on.volume.commit_by(writer.caller, None, &target, to_offset, count).await.result?)
}

pub(super) async fn copy<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    arguments: CopyArgs,
) -> Ended {
    let CopyArgs { from, to, from_offset, to_offset, count, is_between_servers } = arguments;
    if is_between_servers {
        return Err(NfsStatus::Notsupp.into());
    }
    let (source, reader) = source(on, compound, from)?;
    let (target, writer) = target(on, compound, to, Share::WRITE)?;
    let size = reader.attributes(&source).await?.size;
    let left = size.checked_sub(from_offset).ok_or(NfsStatus::Inval)?;
    let wanted = if count == 0 { left } else { count.min(left) };
    // A later part must not copy what an earlier one has written.
    if Arc::ptr_eq(&source, &target) && from_offset.abs_diff(to_offset) < wanted {
        return Err(NfsStatus::Inval.into());
    }
    if to_offset.checked_add(wanted).is_none_or(|end| end > FILE_BYTES_MAX) {
        return Err(NfsStatus::Fbig.into());
    }
    // As with WRITE: lost data is never taken for committed.
    let verifier = on.volume.write_verifier();
    let from = CloneSide { caller: reader.caller, inode: &source, offset: from_offset };
    let to = CloneSide { caller: writer.caller, inode: &target, offset: to_offset };
    let copied = on.volume.copy_by(from, to, on.client, wanted, COPIED_BYTES_MAX).await?;
    compound.record_of(&source, TracedOperation::Read, from_offset, copied, false);
    compound.record_of(&target, TracedOperation::Write, to_offset, copied, false);
    // No later call reports the end, which is now.
    draft.writer.u32(0);
    draft.writer.u64(copied);
    draft.writer.u32(Stability::Unstable as u32);
    draft.writer.raw(&verifier);
    // In order, and done.
    draft.writer.bool(true);
    draft.writer.bool(true);
    Ok(())
}
