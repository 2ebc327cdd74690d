//! READ, READ_PLUS, WRITE, COMMIT, and SEEK, ALLOCATE and DEALLOCATE (RFC 7862).
//!
//! Owns: their results, the choice of the write verifier.
//! Does not own: the cache, durability, the verifier's value, holes and space (the volume and its host); rights by a
//! stateid (`opens`).
//! Invariants: as in version 3, WRITE takes its verifier before it writes, and COMMIT after the sync. So a client never
//! takes lost data for committed. READ, WRITE and COMMIT allocate no memory on data in the cache. READ_PLUS reports one
//! segment of data and no holes, so that its pages go into the reply as those of READ do.

use std::ops::Range;
use std::sync::Arc;

use afflux_volume::{FILE_BYTES_MAX, Inode, Platform, Reserve, Seek, Share, Use};

use crate::limits::{READ_BYTES_MAX, WRITE_BYTES_MAX};
use crate::operations::{Ended, Operations, Stability, Stop, Task};
use crate::status::NfsStatus;
use crate::v4::compound::{Compound, Object, check_regular};
use crate::v4::operations::opens::{Right, right_of};
use crate::v4::state::stateids::Stateid;
use crate::wire::reply::{Data, Draft};
use crate::wire::xdr::Field;

fn check_object<P: Platform>(object: &Object<P>) -> Result<(), NfsStatus> {
    match object {
        Object::Above => Err(NfsStatus::Isdir),
        Object::Inode(inode) => check_regular(inode.kind()),
    }
}

pub(super) async fn read<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    offset: u64,
    count: u32,
    in_segments: bool,
) -> Ended {
    check_object(compound.object()?)?;
    let inode = compound.inode()?;
    let right = right_of(compound, stateid, Share::READ, inode.fileid())?;
    if compound.data_remaining == 0 && count > 0 {
        // Earlier READs have taken all that one reply may have.
        return Err(NfsStatus::RepTooBig.into());
    }
    let to_end = FILE_BYTES_MAX.saturating_sub(offset);
    let count = u64::from(count.min(READ_BYTES_MAX).min(compound.data_remaining)).min(to_end) as u32;
    if count == 0 {
        if right == Right::OfUser {
            on.permit(&inode, Use::Read).await?;
        }
        let attributes = on.attributes(&inode).await?;
        draft.writer.bool(offset >= attributes.size);
        // No bytes, or no segments.
        draft.writer.u32(0);
        return Ok(());
    }
    let read = match right {
        Right::OfOpen => on.as_server().read(&inode, offset, count).await?,
        Right::OfUser => on.read(&inode, offset, count).await?,
    };
    let data = Data::from(read.bytes);
    compound.data_remaining = compound.data_remaining.saturating_sub(data.len() as u32);
    draft.writer.bool(read.end_of_file);
    if in_segments && data.len() > 0 {
        // One segment, of data.
        draft.writer.u32(1);
        draft.writer.u32(0);
        draft.writer.u64(offset);
    }
    draft.writer.u32(data.len() as u32);
    draft.data(data);
    Ok(())
}

pub(super) async fn write<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    offset: u64,
    stability: u32,
    data: Field,
) -> Ended {
    check_object(compound.object()?)?;
    let inode = compound.inode()?;
    let stability = Stability::of(stability).ok_or(NfsStatus::Badxdr)?;
    let right = right_of(compound, stateid, Share::WRITE, inode.fileid())?;
    if on.caller().is_read_only() {
        return Err(NfsStatus::Rofs.into());
    }
    let data = on.bytes(data);
    let data = &data[..data.len().min(WRITE_BYTES_MAX as usize)];
    let verifier = on.volume().write_verifier();
    if offset.checked_add(data.len() as u64).is_none_or(|end| end > FILE_BYTES_MAX) {
        return Err(NfsStatus::Fbig.into());
    }
    let status = match right {
        _ if data.is_empty() => {
            if right == Right::OfUser {
                on.permit(&inode, Use::Write).await?;
            }
            NfsStatus::Ok
        }
        Right::OfOpen => on.as_server().write(&inode, offset, data, stability).await?.0,
        Right::OfUser => on.write(&inode, offset, data, stability).await?.0,
    };
    if status != NfsStatus::Ok {
        return Err(Stop::Failed(status));
    }
    draft.writer.u32(data.len() as u32);
    draft.writer.u32(stability as u32);
    draft.writer.raw(&verifier);
    Ok(())
}

pub(super) async fn commit<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    offset: u64,
    count: u32,
) -> Ended {
    check_object(compound.object()?)?;
    let inode = compound.inode()?;
    // No file has bytes behind the largest offset.
    if offset < FILE_BYTES_MAX {
        let len = u64::from(count).min(FILE_BYTES_MAX - offset);
        on.commit(&inode, offset, len).await?;
    }
    draft.writer.raw(&on.volume().write_verifier());
    Ok(())
}

/// The current file, and as whom the volume is asked: an open has asked for the right already.
pub(super) fn target<'a, P: Platform>(
    on: &Task<'a, P>,
    compound: &Compound<P>,
    stateid: Stateid,
    access: u8,
) -> Result<(Arc<Inode<P>>, Task<'a, P>), NfsStatus> {
    let inode = compound.inode()?;
    check_regular(inode.kind())?;
    let by = match right_of(compound, stateid, access, inode.fileid())? {
        Right::OfOpen => on.as_server(),
        Right::OfUser => on.same(),
    };
    if access == Share::WRITE && on.caller.is_read_only() {
        return Err(NfsStatus::Rofs);
    }
    Ok((inode, by))
}

fn range(offset: u64, len: u64) -> Result<Range<u64>, NfsStatus> {
    let end = offset.checked_add(len).filter(|end| *end <= FILE_BYTES_MAX).ok_or(NfsStatus::Fbig)?;
    if len == 0 { Err(NfsStatus::Inval) } else { Ok(offset..end) }
}

pub(super) async fn seek<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    offset: u64,
    what: u32,
) -> Ended {
    let (inode, by) = target(on, compound, stateid, Share::READ)?;
    let wanted = match what {
        0 => Seek::Data,
        1 => Seek::Hole,
        _ => return Err(NfsStatus::UnionNotsupp.into()),
    };
    let size = by.attributes(&inode).await?.size;
    if offset >= size {
        return Err(NfsStatus::Nxio.into());
    }
    let found = match on.volume.seek_by(by.caller, &inode, offset, wanted).await {
        Ok(found) => found,
        // No data follows.
        Err(afflux_volume::VolumeError::PastData { .. }) => size,
        Err(error) => return Err(error.into()),
    };
    draft.writer.bool(found >= size);
    draft.writer.u64(found);
    Ok(())
}

pub(super) async fn allocate<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    stateid: Stateid,
    offset: u64,
    len: u64,
) -> Ended {
    let (inode, by) = target(on, compound, stateid, Share::WRITE)?;
    let how = Reserve { zeros: false, grows: true };
    on.volume.reserve_by(by.caller, &inode, range(offset, len)?, how).await.result?;
    Ok(on.volume.commit_by(by.caller, None, &inode, offset, len).await.result?)
}

pub(super) async fn deallocate<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    stateid: Stateid,
    offset: u64,
    len: u64,
) -> Ended {
    let (inode, by) = target(on, compound, stateid, Share::WRITE)?;
    on.volume.punch_by(by.caller, &inode, range(offset, len)?).await.result?;
    Ok(on.volume.commit_by(by.caller, None, &inode, offset, len).await.result?)
}
