//! Operations that choose the current object by handle, by name or upwards, and operations that tell of it.
//!
//! Owns: PUTFH, PUTROOTFH, GETFH, SAVEFH, RESTOREFH, LOOKUP, LOOKUPP, SECINFO; the passage between the tree above the
//! exports and the exports.
//! Does not own: that tree (`pseudo_root`), names below an export (the volume).
//! Invariants: a name of an export wins over a path of the host with the same first name. In a single export, which is
//! the root itself, only a client that mounts finds the way to a path of the host: one that has asked for the root, and
//! has used no other name of it since. Other clients do not find the way, so that their programs can make directories
//! of such names, and no program gets below its own directory. The root changes with each beginning of a way, so that
//! its client forgets the way.

use std::sync::Arc;

use afflux_volume::{Caller, Inode, Platform};

use super::super::compound::{Compound, Object};
use super::super::pseudo_root::{BY_PATH, PseudoRoot, Target};
use super::objects::{check_directory, check_name};
use crate::operations::{Ended, Operations, Stop, Task};
use crate::status::Status;
use crate::wire::reply::Draft;
use crate::wire::rpc::FLAVOURS;
use crate::wire::xdr::Field;

/// PUTFH of an object in memory. False for others.
pub(super) fn try_put<P: Platform>(on: &impl Operations<P>, compound: &mut Compound<P>, handle: Field) -> bool {
    let bytes = on.bytes(handle);
    if compound.try_enter_again(bytes) {
        return true;
    }
    let found = on.volume().try_resolve(bytes);
    let is_found = found.is_some();
    found.into_iter().for_each(|inode| compound.enter(Object::Inode(inode)));
    is_found
}

pub(super) async fn put<P: Platform>(on: &impl Operations<P>, compound: &mut Compound<P>, handle: Field) -> Ended {
    let bytes = on.bytes(handle);
    if bytes == BY_PATH {
        let root = single(on, compound).await?.ok_or(Status::BadHandle)?;
        compound.enter(Object::Inode(root));
        compound.is_by_path = true;
        return Ok(());
    }
    let object = match compound.service.root.resolve(bytes) {
        Some(node) => Object::Above(node),
        None => Object::Inode(on.resolve(handle).await?),
    };
    compound.enter(object);
    Ok(())
}

pub(super) async fn put_root<P: Platform>(on: &Task<'_, P>, compound: &mut Compound<P>) -> Ended {
    let object = match single(on, compound).await? {
        None => Object::Above(0),
        Some(root) => {
            if let Some(session) = compound.session() {
                session.begin_walk(compound.now_ns);
                if session.has_missed_way() {
                    // Without a change the client would not ask for the way again.
                    session.note_missed_way(false);
                    root.tell_of_change();
                }
            }
            Object::Inode(root)
        }
    };
    compound.enter(object);
    Ok(())
}

/// The root of the single export, if there is just one.
async fn single<P: Platform>(on: &impl Operations<P>, compound: &Compound<P>) -> Ended<Option<Arc<Inode<P>>>> {
    let service = &compound.service;
    let Some(path) = service.root.single() else { return Ok(None) };
    if let Some(known) = service.single.get().and_then(|handle| on.volume().try_resolve(handle.as_bytes())) {
        return Ok(Some(known));
    }
    let task = on.task()?;
    let root = Box::pin(task.volume.mount_by(&Caller::SERVER, path.as_bytes())).await?;
    service.single.get_or_init(|| task.volume.handle(&root));
    Ok(Some(root))
}

pub(super) fn get<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    draft: &mut Draft,
) -> Result<(), Status> {
    match compound.object()? {
        Object::Above(node) => draft.writer.opaque(&PseudoRoot::handle(*node)),
        Object::Inode(_) if compound.is_by_path => draft.writer.opaque(BY_PATH),
        Object::Inode(inode) => draft.writer.opaque(on.volume().handle(inode).as_bytes()),
    }
    Ok(())
}

pub(super) fn save<P: Platform>(compound: &mut Compound<P>) -> Result<(), Status> {
    compound.saved = Some(compound.object()?.clone());
    compound.saved_stateid = compound.stateid;
    Ok(())
}

pub(super) fn restore<P: Platform>(compound: &mut Compound<P>) -> Result<(), Status> {
    let saved = compound.saved.clone().ok_or(Status::NoFileHandle)?;
    compound.current = Some(saved);
    compound.stateid = compound.saved_stateid;
    Ok(())
}

pub(super) async fn lookup<P: Platform>(on: &impl Operations<P>, compound: &mut Compound<P>, name: Field) -> Ended {
    let object = found(on, compound, name).await?;
    // A path of one name leads from the root to itself. Linux enters no directory below itself: it gets another handle.
    let is_same = match (compound.object()?, &object) {
        (Object::Inode(from), Object::Inode(to)) => Arc::ptr_eq(from, to),
        _ => false,
    };
    compound.enter(object);
    compound.is_by_path = is_same;
    Ok(())
}

/// The object with a name in the current directory.
pub(super) async fn found<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    name: Field,
) -> Ended<Object<P>> {
    let directory = match compound.object()? {
        Object::Above(node) => {
            check_name(on.bytes(name))?;
            if compound.service.root.single().is_some() && compound.walker().is_none() {
                return Err(Status::Stale.into());
            }
            return above(on, compound, *node, on.bytes(name)).await?.ok_or(Stop::Failed(Status::NotFound));
        }
        Object::Inode(directory) => directory,
    };
    check_directory(directory.kind())?;
    check_name(on.bytes(name))?;
    let found = match on.lookup(directory, name).await {
        Ok((inode, _)) => Ok(Object::Inode(inode)),
        Err(Stop::Failed(Status::NotFound)) if may_be_way(compound, directory) => {
            match above(on, compound, 0, on.bytes(name)).await? {
                Some(way) => {
                    // The client keeps the name as one of this directory, until it sees a change.
                    directory.tell_of_change();
                    return Ok(way);
                }
                None => Err(Stop::Failed(Status::NotFound)),
            }
        }
        Err(Stop::Failed(Status::NotFound)) => {
            note_missed_way(compound, directory, on.bytes(name));
            Err(Stop::Failed(Status::NotFound))
        }
        Err(Stop::WouldWait) => return Err(Stop::WouldWait),
        Err(stop) => Err(stop),
    };
    compound.uses(directory);
    found
}

/// A client that is not on its way is told that the way's first name is none.
fn note_missed_way<P: Platform>(compound: &Compound<P>, directory: &Inode<P>, name: &[u8]) {
    if let Some(session) = compound.session()
        && compound.service.root.find(0, name).is_some()
        && compound.is_root(directory)
    {
        session.note_missed_way(true);
    }
}

/// Whether the way to a path of the host may begin in a directory.
fn may_be_way<P: Platform>(compound: &Compound<P>, directory: &Inode<P>) -> bool {
    !compound.is_by_path
        && compound.walker().is_some_and(|it| it.may_begin_way(compound.now_ns))
        && compound.is_root(directory)
}

/// The object with a name above the exports.
async fn above<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    node: u32,
    name: &[u8],
) -> Ended<Option<Object<P>>> {
    match compound.service.root.find(node, name) {
        None => Ok(None),
        Some(Target::Directory(node)) => Ok(Some(Object::Above(*node))),
        Some(Target::Export(path)) => {
            let task = on.task()?;
            let root = Box::pin(task.volume.mount_by(&Caller::SERVER, path.as_bytes())).await?;
            compound.walker().filter(|_| node != 0).into_iter().for_each(|it| it.arrive(compound.now_ns));
            Ok(Some(Object::Inode(root)))
        }
    }
}

pub(super) async fn lookup_parent<P: Platform>(on: &Task<'_, P>, compound: &mut Compound<P>) -> Ended {
    let parent = parent(on, compound).await?;
    compound.enter(parent);
    Ok(())
}

async fn parent<P: Platform>(on: &Task<'_, P>, compound: &Compound<P>) -> Ended<Object<P>> {
    let root = &compound.service.root;
    let inode = match compound.object()? {
        Object::Above(node) => return Ok(root.parent(*node).map(Object::Above).ok_or(Status::NotFound)?),
        Object::Inode(inode) => inode,
    };
    check_directory(inode.kind())?;
    let (found, _) = on.volume.lookup_by(on.caller, inode, b"..").await?;
    // Above an export's root is the root of all.
    match Arc::ptr_eq(&found, inode) {
        false => Ok(Object::Inode(found)),
        true if root.single().is_some() => Err(Status::NotFound.into()),
        true => Ok(Object::Above(0)),
    }
}

/// Writes the flavours of credentials. There is no current object afterwards, as the RFC has it.
fn write_flavours<P: Platform>(compound: &mut Compound<P>, draft: &mut Draft) {
    draft.writer.u32(FLAVOURS.len() as u32);
    FLAVOURS.iter().for_each(|&flavour| draft.writer.u32(flavour));
    compound.current = None;
}

pub(super) async fn security<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    found(on, compound, name).await?;
    write_flavours(compound, draft);
    Ok(())
}

pub(super) async fn security_of_current<P: Platform>(
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
