//! GETATTR, SETATTR and STATFS.
//!
//! Owns: the change that SETATTR's fields mean.
//! Does not own: rights (the kernel, then the host, by `acting`); the values (the volume).
//! Invariants: changes are noted for the next fsync.

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Attributes, Inode, Kind, NAME_BYTES_MAX, Platform, SetTime, Timestamp, VolumeError,
};

use crate::abi::{Put, set};
use crate::limits::PAGE_BYTES;
use crate::mount::{Mount, Outcome};
use crate::operations::acting::{ActingRequester, capability, is_doubtful};
use crate::operations::synchronous;
use crate::reply::{self, Errno, ReplyDraft};
use crate::request::{RequestHeader, SetAttributes};

/// The mode bits that give a program its file's owner or group.
const PRIVILEGES: u32 = 0o6000;
const SETGID: u32 = 0o2000;

fn told<P: Platform>(on: &Mount<P>, attributes: &Attributes) -> ReplyDraft {
    let mut answer = ReplyDraft::empty();
    reply::attributes_out(&mut answer.head, attributes, on.validity());
    answer
}

pub(super) fn try_get<P: Platform>(on: &Mount<P>, header: &RequestHeader, fh: Option<u64>) -> Option<Outcome> {
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

async fn object<P: Platform>(on: &Mount<P>, header: &RequestHeader, fh: Option<u64>) -> Result<Arc<Inode<P>>, Errno> {
    match fh {
        Some(fh) => Ok(Arc::clone(&on.opened(fh)?.inode)),
        None => on.object(header.node).await,
    }
}

pub(super) async fn get<P: Platform>(on: &Mount<P>, header: &RequestHeader, fh: Option<u64>) -> Outcome {
    let inode = object(on, header, fh).await?;
    let attributes = on.volume.attributes(&inode).await?;
    Ok(told(on, &attributes))
}

pub(super) async fn set<P: Platform>(on: &Mount<P>, header: &RequestHeader, wanted: SetAttributes) -> Outcome {
    let fh = (wanted.valid & set::FH != 0).then_some(wanted.fh);
    let inode = object(on, header, fh).await?;
    on.known().note_unsynced(header.node);
    let change = change(&wanted);
    if change.size.is_some() {
        super::locks::check_cut(on, &inode)?;
    }
    let after = match fh {
        // Who has the file open for writing may set its size.
        Some(_) => {
            let outcome = on.volume.set_attributes_by(&on.own, &inode, change, None).await;
            outcome.result.map(|()| outcome.consistency.after)?
        }
        None if change == AttributeChange::default() => take_privileges(on, header, &inode).await?,
        None => set_as_requester(on, header, &inode, change).await?,
    };
    if change.size.is_some() {
        let is_synchronous = match fh {
            Some(fh) => on.opened(fh)?.is_synchronous,
            None => false,
        };
        synchronous::size(on, &inode, is_synchronous).await?;
    } else {
        synchronous::attributes(on, header, &inode).await?;
    }
    let attributes = match after {
        Some(after) => after,
        None => on.volume.attributes(&inode).await?,
    };
    Ok(told(on, &attributes))
}

/// Makes the change as the requester, for whom the host decides. Returns the attributes after it, if they are known.
async fn set_as_requester<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    inode: &Arc<Inode<P>>,
    change: AttributeChange,
) -> Result<Option<Attributes>, VolumeError> {
    if is_doubtful(on, header) {
        on.volume.look_again(inode).await?;
    }
    let gives_setgid = change.mode.is_some_and(|mode| mode & SETGID != 0);
    let group = if gives_setgid { Some(on.volume.attributes(inode).await?.gid) } else { None };
    let mut acting = ActingRequester::in_group(on, header, group);
    loop {
        let outcome = on.volume.set_attributes_by(acting.caller(), inode, change, None).await;
        if !acting.check_retry_on(&outcome.result, inode, rights_to(&change)).await {
            return outcome.result.map(|()| outcome.consistency.after);
        }
    }
}

/// The capabilities of which one gives the right to a change.
fn rights_to(change: &AttributeChange) -> u64 {
    match change {
        AttributeChange { size: Some(_), .. } => capability::DAC_OVERRIDE,
        AttributeChange { uid: None, gid: None, .. } => capability::FOWNER | capability::DAC_OVERRIDE,
        _ => capability::CHOWN,
    }
}

/// SETATTR without a field: chown(-1, -1), or a call on an open file that is about to change bytes without WRITE. The
/// host takes the setuid and setgid bits, and from the owner alone. The call on an open file takes them itself.
async fn take_privileges<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    inode: &Arc<Inode<P>>,
) -> Result<Option<Attributes>, VolumeError> {
    let found = on.volume.attributes(inode).await?;
    if inode.kind() != Kind::Regular || found.mode & PRIVILEGES == 0 {
        return Ok(Some(found));
    }
    // A new owner, even if it is the old one, costs these bits.
    let same_group = AttributeChange { gid: Some(found.gid), ..AttributeChange::default() };
    match set_as_requester(on, header, inode, same_group).await {
        Err(VolumeError::NotPermitted) if on.has_opened(header) => Ok(Some(found)),
        taken => taken,
    }
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
        umask: 0,
        uid: has(set::UID).then_some(wanted.uid),
        gid: has(set::GID).then_some(wanted.gid),
        size: has(set::SIZE).then_some(wanted.size),
        atime: time(set::ATIME, set::ATIME_NOW, wanted.atime),
        mtime: time(set::MTIME, set::MTIME_NOW, wanted.mtime),
    }
}

pub(super) async fn space<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> Outcome {
    let inode = on.object(header.node).await?;
    let (space, _) = on.volume.space(&inode).await?;
    let mut answer = ReplyDraft::empty();
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
