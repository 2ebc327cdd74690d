//! GETXATTR, SETXATTR, LISTXATTRS and REMOVEXATTR (RFC 8276).
//!
//! Owns: their results, the part of a list that one call returns.
//! Does not own: the attributes and the rights to them (the host, by the volume), the switch (a knob).
//! Invariants: without the switch none of them is supported. Clients name the attributes of users alone, so no other
//! kind of the host is reachable.

use std::sync::Arc;

use afflux_volume::{Inode, Outcome, Platform, XattrChange};
use bytes::Bytes;

use super::super::compound::{Compound, Object};
use super::objects::write_change;
use crate::operations::{Ended, Operations, Task, consistency_now};
use crate::status::NfsStatus;
use crate::wire::reply::Draft;
use crate::wire::xdr::{Field, opaque_bytes};

/// The beginning of the host's name, which clients leave out.
const OF_USER: &[u8] = b"user.";

/// The current object, if it may have attributes.
fn target<P: Platform>(compound: &Compound<P>) -> Result<Arc<Inode<P>>, NfsStatus> {
    match compound.object()? {
        Object::Inode(inode) if compound.has_xattrs() => Ok(Arc::clone(inode)),
        _ => Err(NfsStatus::Notsupp),
    }
}

fn host_name(name: &[u8]) -> Result<Vec<u8>, NfsStatus> {
    if name.is_empty() { Err(NfsStatus::Inval) } else { Ok([OF_USER, name].concat()) }
}

pub(super) async fn getxattr<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    let inode = target(compound)?;
    let value = on.volume.xattr_by(on.caller, &inode, &host_name(on.bytes(name))?).await?;
    // The connection has less memory for a reply at times.
    compound.data_remaining = compound.data_remaining.checked_sub(value.len() as u32).ok_or(NfsStatus::Delay)?;
    draft.writer.opaque(&value);
    Ok(())
}

pub(super) async fn setxattr<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    how: u32,
    name: Field,
    value: Field,
) -> Ended {
    let value = Bytes::copy_from_slice(on.bytes(value));
    let change = match how {
        0 => XattrChange::Set(value),
        1 => XattrChange::Create(value),
        _ => XattrChange::Replace(value),
    };
    self::change(on, compound, draft, name, change).await
}

pub(super) async fn removexattr<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    change(on, compound, draft, name, XattrChange::Remove).await
}

async fn change<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    name: Field,
    change: XattrChange,
) -> Ended {
    let inode = target(compound)?;
    let name = host_name(on.bytes(name))?;
    let caller = compound.changing(on.caller);
    let Outcome { result, consistency } = on.volume.change_xattr_by(&caller, &inode, &name, change).await;
    result?;
    write_change(&mut draft.writer, &consistency_now(on, &inode, consistency).await?);
    Ok(())
}

/// Lists names in their order. A cookie is the number of names before it.
pub(super) async fn listxattrs<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    cookie: u64,
    bytes_max: u32,
) -> Ended {
    /// The cookie, the number of names, and whether they are the last.
    const HEAD_BYTES: usize = 8 + 4 + 4;
    let inode = target(compound)?;
    let all = on.volume.xattrs_by(on.caller, &inode).await?;
    let mut names: Vec<&[u8]> = all.iter().filter_map(|name| name.strip_prefix(OF_USER)).collect();
    names.sort_unstable();
    let first = usize::try_from(cookie).ok().filter(|first| *first <= names.len()).ok_or(NfsStatus::BadCookie)?;
    let mut room =
        (bytes_max.min(compound.data_remaining) as usize).checked_sub(HEAD_BYTES).ok_or(NfsStatus::Toosmall)?;
    let fits = |name: &&&[u8]| {
        let left = room.checked_sub(opaque_bytes(name.len()));
        room = left.unwrap_or(room);
        left.is_some()
    };
    let listed = names[first..].iter().take_while(fits).count();
    let end = first + listed;
    if listed == 0 && end < names.len() {
        return Err(NfsStatus::Toosmall.into());
    }
    let start = draft.writer.len();
    draft.writer.u64(end as u64);
    draft.writer.u32(listed as u32);
    names[first..end].iter().for_each(|name| draft.writer.opaque(name));
    draft.writer.bool(end == names.len());
    compound.data_remaining = compound.data_remaining.saturating_sub((draft.writer.len() - start) as u32);
    Ok(())
}
