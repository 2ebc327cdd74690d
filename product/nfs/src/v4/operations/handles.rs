//! Operations that choose the current object by handle, by name or upwards, and operations that report it.
//!
//! Owns: PUTFH, PUTROOTFH, GETFH, SAVEFH, RESTOREFH, LOOKUP, LOOKUPP, SECINFO; the passage between the directory of all
//! exports and the exports.
//! Does not own: that directory (`pseudo_root`), names below an export (the volume).
//! Invariants: a request means the same after all calls (`a_path_means_the_same_after_all_calls`). Only names of
//! exports and names in them lead anywhere, as in MOUNT's paths. The host's paths do not.

use std::sync::Arc;

use afflux_volume::Platform;

use super::super::compound::{Compound, Object};
use super::super::pseudo_root;
use crate::operations::{Ended, Operations, Task};
use crate::status::NfsStatus;
use crate::v4::compound::{check_directory, check_name};
use crate::wire::reply::Draft;
use crate::wire::rpc::FLAVOURS;
use crate::wire::xdr::Field;

/// The path of an export that is the root itself.
const ROOT: &str = "/";

/// PUTFH of an object in memory. False for others.
pub(super) fn try_putfh<P: Platform>(on: &impl Operations<P>, compound: &mut Compound<P>, handle: Field) -> bool {
    let bytes = on.bytes(handle);
    if compound.try_enter_again(bytes) {
        return true;
    }
    let found = on.volume().try_resolve(bytes);
    let is_found = found.is_some();
    found.into_iter().for_each(|inode| compound.enter(Object::Inode(inode)));
    is_found
}

pub(super) async fn putfh<P: Platform>(on: &impl Operations<P>, compound: &mut Compound<P>, handle: Field) -> Ended {
    let object = match on.bytes(handle) == pseudo_root::HANDLE {
        false => Object::Inode(on.resolve(handle).await?),
        true if on.volume().export_root(ROOT).is_some() => return Err(NfsStatus::Stale.into()),
        true => Object::Above,
    };
    compound.enter(object);
    Ok(())
}

pub(super) fn putrootfh<P: Platform>(on: &impl Operations<P>, compound: &mut Compound<P>) {
    let single = on.volume().export_root(ROOT).map(Arc::clone);
    compound.enter(single.map_or(Object::Above, Object::Inode));
}

pub(super) fn getfh<P: Platform>(compound: &Compound<P>, draft: &mut Draft) -> Result<(), NfsStatus> {
    match compound.object()? {
        Object::Above => draft.writer.opaque(pseudo_root::HANDLE),
        Object::Inode(inode) => draft.writer.opaque(inode.handle_bytes()),
    }
    Ok(())
}

pub(super) async fn lookup<P: Platform>(on: &impl Operations<P>, compound: &mut Compound<P>, name: Field) -> Ended {
    let object = found(on, compound, name).await?;
    compound.enter(object);
    Ok(())
}

/// The object with a name in the current directory.
pub(super) async fn found<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    name: Field,
) -> Ended<Object<P>> {
    let directory = match compound.object()? {
        Object::Above => {
            check_name(on.bytes(name))?;
            let path = compound.service.root.find(on.bytes(name));
            let root = path.and_then(|path| on.volume().export_root(path));
            return Ok(Object::Inode(Arc::clone(root.ok_or(NfsStatus::Noent)?)));
        }
        Object::Inode(directory) => directory,
    };
    check_directory(directory.kind())?;
    check_name(on.bytes(name))?;
    Ok(Object::Inode(on.lookup(directory, name).await?.0))
}

pub(super) async fn lookupp<P: Platform>(on: &Task<'_, P>, compound: &mut Compound<P>) -> Ended {
    let parent = parent(on, compound).await?;
    compound.enter(parent);
    Ok(())
}

async fn parent<P: Platform>(on: &Task<'_, P>, compound: &Compound<P>) -> Ended<Object<P>> {
    let Object::Inode(inode) = compound.object()? else { return Err(NfsStatus::Noent.into()) };
    check_directory(inode.kind())?;
    let (found, _) = on.volume.lookup_by(on.caller, inode, b"..").await?;
    // Above an export's root is the directory of all.
    match Arc::ptr_eq(&found, inode) {
        false => Ok(Object::Inode(found)),
        true if on.volume.export_root(ROOT).is_some() => Err(NfsStatus::Noent.into()),
        true => Ok(Object::Above),
    }
}

/// Writes the flavours of credentials. There is no current object afterwards, as the RFC has it.
fn write_flavours<P: Platform>(compound: &mut Compound<P>, draft: &mut Draft) {
    draft.writer.u32(FLAVOURS.len() as u32);
    FLAVOURS.iter().for_each(|&flavour| draft.writer.u32(flavour));
    compound.leave();
}

pub(super) async fn secinfo<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    found(on, compound, name).await?;
    write_flavours(compound, draft);
    Ok(())
}

pub(super) async fn secinfo_no_name<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    of_parent: bool,
) -> Ended {
    compound.object()?;
    if of_parent {
        parent(on, compound).await?;
    }
    write_flavours(compound, draft);
    Ok(())
}
