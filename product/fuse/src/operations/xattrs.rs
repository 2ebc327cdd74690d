//! SETXATTR, GETXATTR, LISTXATTR and REMOVEXATTR: extended attributes and access control lists.
//!
//! Owns: the flags of a change, the two steps of a read (the length, then the value).
//! Does not own: rights (the kernel, then the host, by `acting`); the values (the volume, and the host).
//! Invariants: an answer is never longer than the caller's buffer. Root alone sees `trusted.`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_volume::{AttributeChange, Inode, Platform, VolumeError, XattrChange};
use bytes::Bytes;

use crate::abi::{Put, xattr};
use crate::mount::{Mount, Outcome};
use crate::mount_state::BegunChange;
use crate::operations::acting::{ActingRequester, capability};
use crate::operations::synchronous;
use crate::reply::{Errno, ReplyDraft};
use crate::request::{self, RequestHeader};

const SETGID: u32 = 0o2000;
const TRUSTED: &[u8] = b"trusted.";
/// The kernel asks for it at each change of an owner, and at some writes.
const CAPABILITIES: &[u8] = b"security.capability";
/// The access control lists: `system.posix_acl_access` and `system.posix_acl_default`.
const LISTS: &[u8] = b"system.posix_acl_";

/// The value, or its length if that was asked.
fn sized(value: impl Into<Bytes>, size: u32) -> Outcome {
    let value = value.into();
    if size == 0 {
        let mut answer = ReplyDraft::empty();
        answer.head.u32(value.len() as u32);
        answer.head.u32(0);
        return Ok(answer);
    }
    if value.len() > size as usize { Err(Errno::RANGE) } else { Ok(ReplyDraft::bytes(value)) }
}

/// The answer about the capabilities of an object that has none for sure, such as a file that tar makes.
pub(super) fn try_get<P: Platform>(on: &Mount<P>, header: &RequestHeader, name: &[u8]) -> Option<Outcome> {
    let now_ns = || on.volume.engine().platform().now().0;
    let is_plain = name == CAPABILITIES && on.known().is_plain(header.node, now_ns());
    is_plain.then_some(Err(Errno::NO_DATA))
}

pub(super) async fn get<P: Platform>(on: &Mount<P>, header: &RequestHeader, size: u32, name: &[u8]) -> Outcome {
    let inode = on.object(header.node).await?;
    match on.volume.xattr_by(&on.own, &inode, name).await {
        // The kernel asks for the list whenever it checks a right, and refuses the use after any other error.
        Err(VolumeError::NotSupported) if name.starts_with(LISTS) => Err(Errno::NO_DATA),
        value => sized(value?, size),
    }
}

pub(super) async fn list<P: Platform>(on: &Mount<P>, header: &RequestHeader, size: u32) -> Outcome {
    let inode = on.object(header.node).await?;
    let mut names = Vec::new();
    for name in on.volume.xattrs_by(&on.own, &inode).await? {
        if header.uid == 0 || !name.starts_with(TRUSTED) {
            names.extend_from_slice(&name);
            names.push(0);
        }
    }
    sized(names, size)
}

pub(super) async fn set<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    size: u32,
    flags: u32,
    rest: &[u8],
) -> Outcome {
    let extended = on.xattr_extended.load(Ordering::Relaxed);
    let (further, name, value) = request::xattr_value(rest, size, extended).map_err(|_| Errno::INVALID)?;
    let value = Bytes::copy_from_slice(value);
    let change = match flags {
        0 => XattrChange::Set(value),
        xattr::CREATE => XattrChange::Create(value),
        xattr::REPLACE => XattrChange::Replace(value),
        _ => return Err(Errno::INVALID),
    };
    self::change(on, header, name, change).await?;
    if further & xattr::ACL_KILL_SGID != 0 {
        take_setgid(on, header).await?;
    }
    Ok(ReplyDraft::empty())
}

/// The user that sets the list is not in the file's group. Only the kernel knows all groups of that user.
async fn take_setgid<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> Result<(), Errno> {
    let inode = on.object(header.node).await?;
    let mode = on.volume.attributes(&inode).await?.mode;
    if mode & SETGID == 0 {
        return Ok(());
    }
    let without = AttributeChange { mode: Some(mode & 0o7777 & !SETGID), ..AttributeChange::default() };
    on.volume.set_attributes_by(&on.own, &inode, without, None).await.result?;
    on.known().note_unsynced(header.node);
    synchronous::attributes(on, header, &inode).await
}

pub(super) async fn remove<P: Platform>(on: &Mount<P>, header: &RequestHeader, name: &[u8]) -> Outcome {
    change(on, header, name, XattrChange::Remove).await
}

async fn change<P: Platform>(on: &Mount<P>, header: &RequestHeader, name: &[u8], change: XattrChange) -> Outcome {
    let inode = on.object(header.node).await?;
    on.known().note_unsynced(header.node);
    let begun = on.begin_change(header, on.wall_ns(), 0)?;
    let result = change_as_requester(on, header, &begun, &inode, name, change).await;
    on.known().note_changed(header.node);
    begun.ended(&result);
    result?;
    synchronous::attributes(on, header, &inode).await?;
    Ok(ReplyDraft::empty())
}

/// Makes the change as the requester, for whom the host decides.
async fn change_as_requester<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    begun: &BegunChange,
    inode: &Arc<Inode<P>>,
    name: &[u8],
    change: XattrChange,
) -> Result<(), VolumeError> {
    let is_list = name.starts_with(LISTS);
    let group = if is_list { Some(on.volume.attributes(inode).await?.gid) } else { None };
    let right = if is_list { capability::FOWNER } else { capability::DAC_OVERRIDE };
    let mut acting = ActingRequester::in_group(on, header, group).changing(begun);
    loop {
        let result = on.volume.change_xattr_by(acting.caller(), inode, name, change.clone()).await.result;
        if !acting.check_retry_on(&result, inode, right).await {
            return result;
        }
    }
}
