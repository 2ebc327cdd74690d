//! GETATTR, SETATTR, VERIFY, NVERIFY, ACCESS.
//!
//! Owns: their results.
//! Does not own: the form of attributes (`v4::attributes`), rights (the volume).
//! Invariants: ACCESS grants only rights that the client asked for. An open with the right to write may change the
//! size, also after a change of the file's mode. A SETATTR that fails names the attributes that it has set.
//! A SETATTR that an earlier server has carried out sets nothing again.

use std::sync::Arc;

use afflux_volume::{AttributeChange, Attributes, Before, Inode, Kind, Nanos, Platform, Share};

use super::super::attributes::{self, number as n};
use super::super::codec::{Bitmap, Fattr};
use super::super::compound::{Compound, Object};
use super::super::shown::{self, OfHost, Shown};
use super::super::state::stateids::Stateid;
use super::objects::check_regular;
use super::opens::{Right, right_of};
use crate::access;
use crate::operations::{Ended, Operations, Task};
use crate::status::NfsStatus;
use crate::wire::reply::Draft;

/// GETATTR of an object whose attributes are in memory. False for others.
pub(super) fn try_getattr<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    asked: &Bitmap,
) -> bool {
    let Some(Object::Inode(inode)) = &compound.current else { return false };
    if asked.needs_host() || attributes::check_asked(asked).is_err() {
        return false;
    }
    let found = match on.task() {
        // A call that has waited looks at the clock again.
        Ok(_) => on.volume().try_attributes(inode),
        Err(_) => on.volume().try_attributes_at(inode, Nanos(compound.now_ns)),
    };
    found.iter().for_each(|found| show(compound, draft, asked, (inode, found), None));
    found.is_some()
}

pub(super) async fn getattr<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    asked: &Bitmap,
) -> Ended {
    attributes::check_asked(asked)?;
    match compound.object()? {
        Object::Above => {
            let found = compound.service.root.attributes();
            shown::write(&mut draft.writer, asked, &Shown::above(&found), &compound.known());
        }
        Object::Inode(inode) => {
            let found = on.attributes(inode).await?;
            let of_host = if asked.needs_host() { Some(of_host(on.task()?, inode).await?) } else { None };
            show(compound, draft, asked, (inode, &found), of_host.as_ref());
        }
    }
    Ok(())
}

/// Writes the attributes of an object below an export.
#[inline]
fn show<P: Platform>(
    compound: &Compound<P>,
    draft: &mut Draft,
    asked: &Bitmap,
    (inode, attributes): (&Inode<P>, &Attributes),
    of_host: Option<&OfHost>,
) {
    let (mounted_on, time_unit_ns) = (attributes.fileid, inode.time_unit_ns());
    let shown = Shown { handle: inode.handle_bytes(), attributes, mounted_on, time_unit_ns, of_host };
    shown::write(&mut draft.writer, asked, &shown, &compound.known());
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
            shown::are_same(&values, record, &Shown::above(&found), &known)?
        }
        Object::Inode(inode) => {
            let found = on.attributes(inode).await?;
            let of_host = if values.which.needs_host() { Some(of_host(on, inode).await?) } else { None };
            let handle = on.volume.handle(inode);
            let (handle, time_unit_ns) = (handle.as_bytes(), inode.time_unit_ns());
            let of_host = of_host.as_ref();
            let shown = Shown { handle, attributes: &found, mounted_on: found.fileid, time_unit_ns, of_host };
            shown::are_same(&values, record, &shown, &known)?
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
        Object::Above => (Kind::Directory, access::READ | access::EXECUTE),
        Object::Inode(inode) => (inode.kind(), on.access(inode).await?.0),
    };
    let every = access::READ | access::WRITE | access::EXECUTE;
    let of_xattrs = |rights| if compound.has_xattrs() { access::allowed_of_xattrs(rights) } else { 0 };
    draft.writer.u32(wanted & (access::allowed(kind, every) | of_xattrs(every)));
    draft.writer.u32(wanted & (access::allowed(kind, granted) | of_xattrs(granted)));
    Ok(())
}

pub(super) async fn setattr<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    values: Fattr,
) -> Ended {
    let change = attributes::change(&values, on.record, &compound.known(), attributes::SETTABLE)?;
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
        let caller = if has_rest { rights.clone() } else { compound.changing(rights) };
        let size = AttributeChange { size: change.size, ..AttributeChange::default() };
        on.volume.set_attributes_by(&caller, &inode, size, None).await.result?;
        // If the rest fails, the client hears of this.
        compound.attributes_set = Bitmap::of(&[n::SIZE]);
    }
    if has_rest || is_done {
        on.volume.set_attributes_by(&compound.changing(on.caller), &inode, rest, None).await.result?;
    }
    compound.attributes_set = Bitmap::default();
    values.which.write(&mut draft.writer);
    Ok(())
}
