//! GETATTR, SETATTR, VERIFY, NVERIFY, ACCESS, and extended attributes: GETXATTR, SETXATTR, LISTXATTRS, REMOVEXATTR (RFC
//! 8276).
//!
//! Owns: their results, the fraction of a list that one call returns.
//! Does not own: the form of attributes (`v4::attributes`), rights and extended attributes (the host, by the volume),
//! the switch for these (a knob).
//! Invariants: ACCESS grants only rights that the client asked for. An open with the right to write may change the
//! size, also after a change of the file's mode. A SETATTR that fails names the attributes that it has set. A SETATTR
//! that an earlier server has carried out sets nothing again. Without the switch no operation on extended attributes is
//! supported. Clients name the attributes of users alone, so no other kind of the host is reachable but the access
//! control lists, as attributes of their own.

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Attributes, Before, Inode, Kind, Nanos, Outcome, Platform, Share, VolumeError, XattrChange,
};
use bytes::Bytes;

use crate::operations::{self, Ended, Operations, Task, consistency_now};
use crate::status::NfsStatus;
use crate::v4::attributes::{self, NEEDS_ACLS, OF_HOST, OfHost, Shown, ShownAcls, number as n};
use crate::v4::codec::{Bitmap, Fattr};
use crate::v4::compound::{Compound, Object, check_regular, write_change};
use crate::v4::operations::opens::{Right, right_of};
use crate::v4::operations::requested::{requested_change, set_acls};
use crate::v4::posix_acls;
use crate::v4::state::stateids::Stateid;
use crate::wire::reply::Draft;
use crate::wire::xdr::{Field, Writer, opaque_bytes};

/// GETATTR of an object whose attributes are in memory. False for others.
pub(super) fn try_getattr<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    asked: &Bitmap,
) -> bool {
    let Ok(Object::Inode(inode)) = compound.object() else { return false };
    if asked.needs_host() || attributes::check_asked(asked).is_err() {
        return false;
    }
    let found = match on.task() {
        // A call that has waited reads the clock again.
        Ok(_) => on.volume().try_attributes(inode),
        Err(_) => on.volume().try_attributes_at(inode, Nanos(compound.now_ns)),
    };
    found.iter().for_each(|found| show(compound, draft, asked, inode, found, Looked::default()));
    found.is_some()
}

pub(super) async fn getattr<P: Platform>(
    on: &impl Operations<P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    asked: &Bitmap,
) -> Ended {
    attributes::check_asked(asked)?;
    match compound.object()? {
        Object::Above => {
            let found = compound.service.root.attributes();
            attributes::write(&mut draft.writer, asked, &Shown::above(&found), &compound.known());
        }
        Object::Inode(inode) => {
            let found = on.attributes(inode).await?;
            let of_host = if asked.has_any(OF_HOST) { Some(of_host(on.task()?, inode).await?) } else { None };
            let acls = match asked.has_any(NEEDS_ACLS) && compound.known().has(n::ACL_TRUEFORM) {
                true => Some(shown_acls(on.task()?, inode, asked, &found).await?),
                false => None,
            };
            show(compound, draft, asked, inode, &found, Looked { of_host: of_host.as_ref(), acls: acls.as_ref() });
            let bytes = acls.map_or(0, |acls| acls.access.len() + acls.default.len()) as u32;
            // The connection has less memory for a reply at times.
            compound.data_remaining = compound.data_remaining.checked_sub(bytes).ok_or(NfsStatus::Delay)?;
        }
    }
    Ok(())
}

/// The host's answers about an object.
#[derive(Default)]
struct Looked<'a> {
    of_host: Option<&'a OfHost>,
    acls: Option<&'a ShownAcls>,
}

/// Writes the attributes of an object below an export.
#[inline]
fn show<P: Platform>(
    compound: &Compound<P>,
    draft: &mut Draft,
    asked: &Bitmap,
    inode: &Inode<P>,
    attributes: &Attributes,
    Looked { of_host, acls }: Looked<'_>,
) {
    let (mounted_on, time_unit_ns) = (attributes.fileid, inode.time_unit_ns());
    let shown = Shown { handle: inode.handle_bytes(), attributes, mounted_on, time_unit_ns, of_host, acls };
    attributes::write(&mut draft.writer, asked, &shown, &compound.known());
}

/// The attributes that only the host knows, in memory of their own.
pub(super) async fn of_host<P: Platform>(on: &Task<'_, P>, inode: &Arc<Inode<P>>) -> Ended<OfHost> {
    let asked = async {
        let (space, _) = on.volume.space(inode).await?;
        let (limits, _) = on.volume.path_limits(inode).await?;
        Ok(OfHost { space, limits, file_bytes_max: on.volume.file_bytes_max(inode).await })
    };
    Box::pin(asked).await
}

/// The requested access control lists. An object without an access list shows the list that its mode means.
pub(super) async fn shown_acls<P: Platform>(
    on: &Task<'_, P>,
    inode: &Arc<Inode<P>>,
    asked: &Bitmap,
    attributes: &Attributes,
) -> Result<ShownAcls, NfsStatus> {
    let (mut access, mut default) = (Writer::default(), Writer::default());
    match on.volume.xattr_by(on.caller, inode, afflux_volume::ACCESS_ACL).await {
        Err(VolumeError::NotSupported) => return Ok(ShownAcls::default()),
        Err(VolumeError::NoAttribute) => posix_acls::write_mode(&mut access, attributes)?,
        list => posix_acls::write_host(&mut access, &list?)?,
    }
    match inode.kind() {
        Kind::Directory => match on.volume.xattr_by(on.caller, inode, afflux_volume::DEFAULT_ACL).await {
            Err(VolumeError::NoAttribute) => default.u32(0),
            list => posix_acls::write_host(&mut default, &list?)?,
        },
        _ => default.u32(0),
    }
    let of = |number, list: Writer| if asked.has(number) { list.into_bytes() } else { Vec::new() };
    let (default, access) = (of(n::POSIX_DEFAULT_ACL, default), of(n::POSIX_ACCESS_ACL, access));
    Ok(ShownAcls { are_supported: true, default, access })
}

pub(super) async fn verify<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    values: Fattr,
    wants_same: bool,
) -> Ended {
    let (record, known) = (on.record, compound.known());
    let is_same = match compound.object()? {
        Object::Above => {
            let found = compound.service.root.attributes();
            attributes::are_same(&values, record, &Shown::above(&found), &known)?
        }
        Object::Inode(inode) => {
            let found = on.attributes(inode).await?;
            let of_host = if values.which.has_any(OF_HOST) { Some(of_host(on, inode).await?) } else { None };
            let handle = on.volume.handle(inode);
            let (handle, time_unit_ns) = (handle.as_bytes(), inode.time_unit_ns());
            let of_host = of_host.as_ref();
            let acls = match values.which.has(n::ACL_TRUEFORM) {
                true => Some(shown_acls(on, inode, &Bitmap::default(), &found).await?),
                false => None,
            };
            let (mounted_on, acls) = (found.fileid, acls.as_ref());
            let shown = Shown { handle, attributes: &found, mounted_on, time_unit_ns, of_host, acls };
            attributes::are_same(&values, record, &shown, &known)?
        }
    };
    match (wants_same, is_same) {
        (true, false) => Err(NfsStatus::NotSame.into()),
        (false, true) => Err(NfsStatus::Same.into()),
        _ => Ok(()),
    }
}

pub(super) async fn access<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    wanted: u32,
) -> Ended {
    let (kind, granted) = match compound.object()? {
        Object::Above => (Kind::Directory, operations::READ | operations::EXECUTE),
        Object::Inode(inode) => (inode.kind(), on.access(inode).await?.0),
    };
    let every = operations::READ | operations::WRITE | operations::EXECUTE;
    let of_xattrs = |rights| if compound.has_xattrs() { operations::allowed_of_xattrs(rights) } else { 0 };
    draft.writer.u32(wanted & (operations::allowed(kind, every) | of_xattrs(every)));
    draft.writer.u32(wanted & (operations::allowed(kind, granted) | of_xattrs(granted)));
    Ok(())
}

pub(super) async fn setattr<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    values: Fattr,
) -> Ended {
    let (change, acls) = requested_change(on, compound, &values, attributes::SETTABLE).await?;
    let inode = match compound.object()? {
        Object::Above => return Err(NfsStatus::Rofs.into()),
        // An open may be from before the export's rules.
        Object::Inode(_) if on.caller.is_read_only() => return Err(NfsStatus::Rofs.into()),
        Object::Inode(inode) => Arc::clone(inode),
    };
    let rest = AttributeChange { size: None, ..change };
    let (has_rest, is_done) = (rest != AttributeChange::default(), matches!(compound.before(), Before::Done { .. }));
    if change.size.is_some() && !is_done {
        check_regular(inode.kind())?;
        let rights = match right_of(compound, stateid, Share::WRITE, inode.fileid())? {
            Right::OfOpen => on.as_server().caller,
            Right::OfUser => on.caller,
        };
        // The last change notes that all are done.
        let caller = if has_rest || !acls.is_empty() { rights.clone() } else { compound.changing(rights) };
        let size = AttributeChange { size: change.size, ..AttributeChange::default() };
        on.volume.set_attributes_by(&caller, &inode, size, None).await.result?;
        // If the rest fails, the client hears of this.
        compound.attributes_set = Bitmap::of(&[n::SIZE]);
    }
    if has_rest || is_done {
        let caller = if acls.is_empty() || is_done { compound.changing(on.caller) } else { on.caller.clone() };
        on.volume.set_attributes_by(&caller, &inode, rest, None).await.result?;
    }
    if !acls.is_empty() && !is_done {
        compound.attributes_set = values.which.without(attributes::OF_ACLS);
        let (set, ended) = set_acls(on, &compound.changing(on.caller), &inode, acls).await;
        compound.attributes_set = compound.attributes_set.with(set);
        ended?;
    }
    compound.attributes_set = Bitmap::default();
    values.which.write(&mut draft.writer);
    Ok(())
}

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
    change_xattr(on, compound, draft, name, change).await
}

pub(super) async fn removexattr<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    change_xattr(on, compound, draft, name, XattrChange::Remove).await
}

async fn change_xattr<P: Platform>(
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
