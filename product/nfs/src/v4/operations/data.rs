//! READ, READ_PLUS, WRITE, COMMIT, and SEEK, ALLOCATE, DEALLOCATE and COPY (RFC 7862).
//!
//! Owns: their results, the choice of the write verifier, the part of a COPY that one call carries out.
//! Does not own: the cache, durability, the verifier's value, holes and space (the volume and its host); rights by a
//! stateid (`opens`).
//! Invariants: as in version 3, WRITE takes its verifier before it writes, and COMMIT after the sync. So a client never
//! takes lost data for committed. READ, WRITE and COMMIT allocate no memory on data in the cache. READ_PLUS reports one
//! segment of data and no holes, so that its pages go into the reply as those of READ do. A COPY copies at most
//! [`COPIED_BYTES_MAX`], and the client asks for the rest: so it holds its slot for a bounded time, and lets other
//! calls run after each piece. What was copied is in the cache, and durable after a COMMIT.

use std::ops::Range;
use std::sync::Arc;

use afflux_frontend::trace::TracedOperation;
use afflux_volume::{FILE_BYTES_MAX, Inode, Platform, ReadBytes, Reserve, Seek, Share, Use};
use bytes::Bytes;

use crate::limits::{READ_BYTES_MAX, WRITE_BYTES_MAX};
use crate::operations::{Ended, Operations, Stability, Stop, Task};
use crate::status::NfsStatus;
use crate::v4::codec::CopyArgs;
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

/// Bytes that a COPY copies before other calls run.
const PIECE_BYTES: u32 = 64 << 10;
/// Most bytes that one COPY copies.
const COPIED_BYTES_MAX: u64 = 16 << 20;

/// The current file, and as whom the volume is asked: an open has asked for the right already.
fn target<'a, P: Platform>(
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
    let source = match compound.saved()? {
        Object::Inode(inode) => Arc::clone(inode),
        Object::Above => return Err(NfsStatus::Isdir.into()),
    };
    check_regular(source.kind())?;
    let reader = match right_of(compound, from, Share::READ, source.fileid())? {
        Right::OfOpen => on.as_server(),
        Right::OfUser => on.same(),
    };
    let (target, writer) = target(on, compound, to, Share::WRITE)?;
    let size = reader.attributes(&source).await?.size;
    let left = size.checked_sub(from_offset).ok_or(NfsStatus::Inval)?;
    let wanted = if count == 0 { left } else { count.min(left) };
    // A later part must not copy what an earlier one has written.
    if Arc::ptr_eq(&source, &target) && from_offset.abs_diff(to_offset) < wanted {
        return Err(NfsStatus::Inval.into());
    }
    let count = wanted.min(COPIED_BYTES_MAX);
    let sources = from_offset..from_offset + count;
    if to_offset.checked_add(count).is_none_or(|end| end > FILE_BYTES_MAX) {
        return Err(NfsStatus::Fbig.into());
    }
    // As with WRITE: lost data is never taken for committed.
    let verifier = on.volume.write_verifier();
    let copied = copied(&reader, &source, &writer, &target, sources, to_offset).await?;
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

/// Copies piece by piece. An error counts only if nothing was copied before.
async fn copied<P: Platform>(
    reader: &Task<'_, P>,
    source: &Arc<Inode<P>>,
    writer: &Task<'_, P>,
    target: &Arc<Inode<P>>,
    sources: Range<u64>,
    to_offset: u64,
) -> Ended<u64> {
    let len = sources.end - sources.start;
    let mut done = 0;
    while done < len {
        let piece = (len - done).min(PIECE_BYTES.into()) as u32;
        let read = reader.read(source, sources.start + done, piece).await;
        let bytes = match read.map(|read| read.bytes) {
            Ok(ReadBytes::Copied(bytes)) => bytes,
            Ok(ReadBytes::Pages(pages)) => Bytes::from(pages.slices().collect::<Vec<_>>().concat()),
            Err(_) if done > 0 => break,
            Err(stop) => return Err(stop),
        };
        if bytes.is_empty() {
            // Somebody has cut the file off.
            break;
        }
        match writer.write(target, to_offset + done, &bytes, Stability::Unstable).await?.0 {
            NfsStatus::Ok => done += bytes.len() as u64,
            _ if done > 0 => break,
            status => return Err(status.into()),
        }
        writer.volume.engine().platform().preemption_point().await;
    }
    Ok(done)
}
