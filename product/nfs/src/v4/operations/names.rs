//! CREATE, REMOVE, RENAME, LINK and READLINK.
//!
//! Owns: their results, the refusal of device nodes.
//! Does not own: the directory, its rules for names, and atomicity (the volume); regular files, which OPEN makes.
//! Invariants: a directory's change is the volume's own, with before and after taken under one lock, or it is said not
//! to be.

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Before, Caller, Inode, Kind, Outcome, Platform, SpecialKind, TARGET_BYTES_MAX, VolumeError,
};

use super::super::attributes;
use super::super::codec::{CreateType, Fattr};
use super::super::compound::{Compound, Object};
use super::objects::{check_directory, check_name, write_change};
use super::opens::unchanged;
use crate::operations::{Ended, Operations, Task, consistency_now};
use crate::status::NfsStatus;
use crate::wire::reply::Draft;
use crate::wire::xdr::Field;

pub(super) async fn create<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    kind: CreateType,
    name: Field,
    values: Fattr,
) -> Ended {
    let directory = compound.directory()?;
    check_name(on.bytes(name))?;
    let change = attributes::change(&values, on.record, &compound.known(), attributes::SETTABLE_NEW)?;
    let (caller, place) = (&compound.changing(on.caller), (&directory, on.bytes(name)));
    let Outcome { result, consistency } = match kind {
        CreateType::Dir => on.volume.make_directory_by(caller, place.0, place.1, change).await,
        CreateType::Lnk(target) => {
            let target = on.bytes(target);
            check_target(target)?;
            on.volume.symlink_by(caller, place.0, place.1, target, change).await
        }
        CreateType::Sock => special((on, caller), place, SpecialKind::Socket, change).await?,
        CreateType::Fifo => special((on, caller), place, SpecialKind::Fifo, change).await?,
        CreateType::Blk(major, minor) => {
            special((on, caller), place, SpecialKind::BlockDevice { major, minor }, change).await?
        }
        CreateType::Chr(major, minor) => {
            special((on, caller), place, SpecialKind::CharDevice { major, minor }, change).await?
        }
        CreateType::Other => return Err(NfsStatus::Badtype.into()),
    };
    let (inode, _) = result?;
    let consistency = consistency_now(on, &directory, consistency).await?;
    write_change(&mut draft.writer, &consistency);
    values.which.write(&mut draft.writer);
    compound.enter(Object::Inode(inode));
    Ok(())
}

fn check_target(target: &[u8]) -> Result<(), NfsStatus> {
    match target.len() {
        0 => Err(NfsStatus::Inval),
        len if len > TARGET_BYTES_MAX => Err(NfsStatus::Nametoolong),
        _ => Ok(()),
    }
}

type Made<P> = Outcome<(Arc<Inode<P>>, afflux_volume::Attributes)>;

async fn special<P: Platform>(
    (on, caller): (&Task<'_, P>, &Caller),
    (directory, name): (&Arc<Inode<P>>, &[u8]),
    kind: SpecialKind,
    change: AttributeChange,
) -> Result<Made<P>, NfsStatus> {
    let is_device = matches!(kind, SpecialKind::BlockDevice { .. } | SpecialKind::CharDevice { .. });
    // A node of the host's disk, made by a server that root runs, would bypass every permission for users who can open
    // files on the host. If the caller is known, the host checks its rights.
    if is_device && on.caller.credentials().is_none() {
        return Err(NfsStatus::Perm);
    }
    Ok(on.volume.make_special_by(caller, directory, name, kind, change).await)
}

pub(super) async fn readlink<P: Platform>(on: &Task<'_, P>, compound: &mut Compound<P>, draft: &mut Draft) -> Ended {
    let inode = match compound.object()? {
        Object::Above => return Err(NfsStatus::Inval.into()),
        Object::Inode(inode) => inode,
    };
    let read = on.volume.read_link(inode).await;
    match read {
        Ok((target, _)) => {
            // The target counts among the bytes of data for which the reply has room.
            compound.data_remaining =
                compound.data_remaining.checked_sub(target.len() as u32).ok_or(NfsStatus::Delay)?;
            draft.writer.opaque(&target);
        }
        Err(VolumeError::Invalid { .. }) => return Err(NfsStatus::WrongType.into()),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub(super) async fn remove<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    let directory = compound.directory()?;
    check_name(on.bytes(name))?;
    let (caller, name) = (&compound.changing(on.caller), on.bytes(name));
    let removed = on.volume.remove_by(caller, &directory, name).await;
    // One operation removes both, and the host tells which it is.
    let Outcome { result, consistency } = match removed.result {
        Err(VolumeError::IsDirectory | VolumeError::NotPermitted) if find_directory(on, &directory, name).await => {
            on.volume.remove_directory_by(caller, &directory, name).await
        }
        _ => removed,
    };
    result?;
    let consistency = consistency_now(on, &directory, consistency).await?;
    write_change(&mut draft.writer, &consistency);
    Ok(())
}

async fn find_directory<P: Platform>(on: &Task<'_, P>, directory: &Arc<Inode<P>>, name: &[u8]) -> bool {
    let found = on.volume.lookup_by(on.caller, directory, name).await;
    found.is_ok_and(|(inode, _)| inode.kind() == Kind::Directory)
}

pub(super) async fn rename<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    from: Field,
    to: Field,
) -> Ended {
    let target = compound.directory()?;
    let source = saved_directory(compound)?;
    check_name(on.bytes(from))?;
    check_name(on.bytes(to))?;
    let is_done = matches!(compound.before(), Before::Done { .. });
    if !is_done && check_same(on, (&source, on.bytes(from)), (&target, on.bytes(to))).await {
        // Both names are the object's: nothing is done.
        for directory in [&source, &target] {
            let present = consistency_now(on, directory, Default::default()).await?;
            write_change(&mut draft.writer, &unchanged(present));
        }
        return Ok(());
    }
    let caller = compound.changing(on.caller);
    let (Outcome { result, consistency }, of_target) =
        on.volume.rename_by(&caller, &source, on.bytes(from), &target, on.bytes(to)).await;
    match result {
        // A directory in the place of a file, or the other way round.
        Err(VolumeError::IsDirectory | VolumeError::NotDirectory) => return Err(NfsStatus::Exist.into()),
        Err(VolumeError::NotEmpty) => return Err(NfsStatus::Exist.into()),
        result => result?,
    }
    let of_source = consistency_now(on, &source, consistency).await?;
    let of_target = consistency_now(on, &target, of_target).await?;
    write_change(&mut draft.writer, &of_source);
    write_change(&mut draft.writer, &of_target);
    Ok(())
}

/// Whether two names are one object's.
async fn check_same<P: Platform>(
    on: &Task<'_, P>,
    one: (&Arc<Inode<P>>, &[u8]),
    other: (&Arc<Inode<P>>, &[u8]),
) -> bool {
    let found = async |(directory, name)| on.volume.lookup_by(on.caller, directory, name).await.ok();
    match (found(one).await, found(other).await) {
        (Some((one, _)), Some((other, _))) => one.fileid() == other.fileid(),
        _ => false,
    }
}

fn saved_directory<P: Platform>(compound: &Compound<P>) -> Result<Arc<Inode<P>>, NfsStatus> {
    match compound.saved()? {
        Object::Above => Err(NfsStatus::Rofs),
        Object::Inode(inode) => check_directory(inode.kind()).map(|()| Arc::clone(inode)),
    }
}

pub(super) async fn link<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    let directory = compound.directory()?;
    let inode = match compound.saved()? {
        Object::Above => return Err(NfsStatus::Isdir.into()),
        Object::Inode(inode) => Arc::clone(inode),
    };
    if inode.kind() == Kind::Directory {
        return Err(NfsStatus::Isdir.into());
    }
    check_name(on.bytes(name))?;
    let caller = compound.changing(on.caller);
    let Outcome { result, consistency } = on.volume.link_by(&caller, &inode, &directory, on.bytes(name)).await;
    result?;
    let consistency = consistency_now(on, &directory, consistency).await?;
    write_change(&mut draft.writer, &consistency);
    Ok(())
}
