//! GETATTR, SETATTR and STATFS.
//!
//! Owns: the change that SETATTR's fields stand for.
//! Does not own: rights, which the kernel has checked; the values (the volume).
//! Invariants: changes are noted for the next fsync.

use std::sync::Arc;

use afflux_volume::{AttributeChange, Attributes, Inode, NAME_BYTES_MAX, Platform, SetTime, Timestamp};

use crate::abi::set;
use crate::limits::PAGE_BYTES;
use crate::mount::{Mount, Outcome};
use crate::reply::{self, Answer, Errno};
use crate::request::{Header, SetAttributes};
use crate::wire::Put;

fn told<P: Platform>(on: &Mount<P>, attributes: &Attributes) -> Answer {
    let mut answer = Answer::empty();
    reply::attributes_out(&mut answer.head, attributes, on.validity());
    answer
}

pub(super) fn try_get<P: Platform>(on: &Mount<P>, header: &Header, fh: Option<u64>) -> Option<Outcome> {
    let inode = match fh {
        Some(fh) => match on.opened(fh) {
            Ok(file) => Arc::clone(&file.inode),
            Err(errno) => return Some(Err(errno)),
        },
        None => on.try_object(header.node)?,
    };
    let attributes = on.volume.try_attributes(&inode)?;
    Some(Ok(told(on, &attributes)))
}

async fn object<P: Platform>(on: &Mount<P>, header: &Header, fh: Option<u64>) -> Result<Arc<Inode<P>>, Errno> {
    match fh {
        Some(fh) => Ok(Arc::clone(&on.opened(fh)?.inode)),
        None => on.object(header.node).await,
    }
}

pub(super) async fn get<P: Platform>(on: &Mount<P>, header: &Header, fh: Option<u64>) -> Outcome {
    let inode = object(on, header, fh).await?;
    let attributes = on.volume.attributes(&inode).await?;
    Ok(told(on, &attributes))
}

pub(super) async fn set<P: Platform>(on: &Mount<P>, header: &Header, wanted: SetAttributes) -> Outcome {
    let inode = object(on, header, (wanted.valid & set::FH != 0).then_some(wanted.fh)).await?;
    on.known().note_unsynced(header.node, true);
    let outcome = on.volume.set_attributes_by(&on.own, &inode, change(&wanted), None).await;
    outcome.result?;
    let attributes = match outcome.consistency.after {
        Some(after) => after,
        None => on.volume.attributes(&inode).await?,
    };
    Ok(told(on, &attributes))
}

fn change(wanted: &SetAttributes) -> AttributeChange {
    let has = |bit| wanted.valid & bit != 0;
    let time = |bit, now, (seconds, nanos): (u64, u32)| match (has(bit), has(now)) {
        (false, _) => SetTime::Keep,
        (true, true) => SetTime::ServerNow,
        (true, false) => SetTime::To(Timestamp { seconds: seconds as i64, nanos }),
    };
    AttributeChange {
        mode: has(set::MODE).then_some(wanted.mode & 0o7777),
        uid: has(set::UID).then_some(wanted.uid),
        gid: has(set::GID).then_some(wanted.gid),
        size: has(set::SIZE).then_some(wanted.size),
        atime: time(set::ATIME, set::ATIME_NOW, wanted.atime),
        mtime: time(set::MTIME, set::MTIME_NOW, wanted.mtime),
    }
}

pub(super) async fn space<P: Platform>(on: &Mount<P>, header: &Header) -> Outcome {
    let inode = on.object(header.node).await?;
    let (space, _) = on.volume.space(&inode).await?;
    let mut answer = Answer::empty();
    let head = &mut answer.head;
    let block_bytes = PAGE_BYTES as u64;
    for bytes in [space.total_bytes, space.free_bytes, space.available_bytes] {
        head.u64(bytes / block_bytes);
    }
    head.u64(space.total_files);
    head.u64(space.free_files);
    head.u32(PAGE_BYTES as u32);
    head.u32(NAME_BYTES_MAX as u32);
    head.u32(PAGE_BYTES as u32);
    (0..7).for_each(|_| head.u32(0));
    Ok(answer)
}
