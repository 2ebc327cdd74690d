//! LOOKUP, READLINK, and the procedures that make, remove, rename and link names.
//!
//! Owns: their results, the uses of "." and "..", the refusal of device nodes.
//! Does not own: the directory, its rules for other names, and atomicity (the volume).
//! Invariants: a directory's consistency data are the volume's own, with before and after taken under one lock; if
//! there are none, the reply has the current attributes and no "before".

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Attributes, Caller, Consistency, CreateHow, Inode, Outcome, Platform, SpecialKind,
    TARGET_BYTES_MAX, Use, Volume, VolumeError,
};
use bytes::Bytes;

use super::{attributes_now, consistency_now, resolve};
use crate::arguments::{Creation, Handle, Node, Place};
use crate::batch::Batch;
use crate::limits::HANDLE_BYTES_MAX;
use crate::reply::{Draft, Reply};
use crate::status::Status;
use crate::xdr::Reader;

type Made<P> = Outcome<(Arc<Inode<P>>, Attributes)>;

/// Answers a LOOKUP into `batch` if that takes no waiting; otherwise does nothing.
pub(crate) fn try_lookup<P: Platform>(
    volume: &Volume<P>,
    caller: &Caller,
    xid: u32,
    arguments: &[u8],
    batch: &mut Batch,
) -> Option<()> {
    let mut reader = Reader::new(arguments);
    let directory = volume.try_resolve(reader.opaque(HANDLE_BYTES_MAX).ok()?)?;
    let name = reader.opaque(afflux_volume::NAME_BYTES_MAX).ok()?;
    if volume.allows(&directory, caller, Use::Search) != Some(true) {
        return None;
    }
    let (inode, attributes) = volume.try_lookup(&directory, name)?;
    let of_directory = volume.try_attributes(&directory)?;
    let start = batch.writer.len();
    batch.writer.accept(xid);
    batch.writer.u32(Status::Ok.code());
    batch.writer.opaque(volume.handle(&inode).as_bytes());
    batch.writer.post_op(Some(&attributes));
    batch.writer.post_op(Some(&of_directory));
    batch.writer.end_record(start, 0);
    Some(())
}

pub(super) async fn lookup<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    mut draft: Draft,
    place: Place,
) -> Reply {
    let volume = &*volume;
    let directory = match resolve(volume, &place.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 1),
    };
    let found = volume.lookup_by(&caller, &directory, &place.name).await;
    let of_directory = attributes_now(volume, &directory).await;
    match found {
        Ok((inode, attributes)) => {
            let writer = draft.status(Status::Ok);
            writer.opaque(volume.handle(&inode).as_bytes());
            writer.post_op(Some(&attributes));
            writer.post_op(of_directory.as_ref());
        }
        Err(error) => draft.status(error.into()).post_op(of_directory.as_ref()),
    }
    draft.finish()
}

pub(super) async fn read_link<P: Platform>(volume: Arc<Volume<P>>, mut draft: Draft, object: Handle) -> Reply {
    let inode = match resolve(&volume, &object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 1),
    };
    match volume.read_link(&inode).await {
        Ok((target, attributes)) => {
            let writer = draft.status(Status::Ok);
            writer.post_op(Some(&attributes));
            writer.opaque(&target);
        }
        Err(error) => {
            let attributes = attributes_now(&volume, &inode).await;
            draft.status(error.into()).post_op(attributes.as_ref());
        }
    }
    draft.finish()
}

/// "." and ".." are in every directory, so that they cannot be made.
fn check_new(name: &[u8]) -> Result<(), Status> {
    match name {
        b"." | b".." => Err(Status::Exists),
        _ => Ok(()),
    }
}

/// The results that CREATE, MKDIR, SYMLINK and MKNOD share.
async fn made<P: Platform>(
    volume: &Volume<P>,
    mut draft: Draft,
    directory: &Arc<Inode<P>>,
    outcome: Result<Made<P>, Status>,
) -> Reply {
    let (result, consistency) = match outcome {
        Ok(outcome) => (outcome.result.map_err(Status::from), outcome.consistency),
        Err(status) => (Err(status), Consistency::default()),
    };
    let consistency = consistency_now(volume, directory, consistency).await;
    match result {
        Ok((inode, attributes)) => {
            let writer = draft.status(Status::Ok);
            writer.post_op_handle(volume.handle(&inode).as_bytes());
            writer.post_op(Some(&attributes));
            writer.consistency(&consistency);
        }
        Err(status) => draft.status(status).consistency(&consistency),
    }
    draft.finish()
}

pub(super) async fn create<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    draft: Draft,
    place: Place,
    creation: Creation,
) -> Reply {
    let volume = &*volume;
    let directory = match resolve(volume, &place.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 2),
    };
    let how = match creation {
        Creation::Unchecked(change) => CreateHow::Unchecked(change),
        Creation::Guarded(change) => CreateHow::Guarded(change),
        Creation::Exclusive(verifier) => CreateHow::Exclusive { verifier },
    };
    let outcome = match check_new(&place.name) {
        Ok(()) => Ok(volume.create_by(&caller, &directory, &place.name, how).await),
        Err(status) => Err(status),
    };
    made(volume, draft, &directory, outcome).await
}

pub(super) async fn make_directory<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    draft: Draft,
    place: Place,
    change: AttributeChange,
) -> Reply {
    let volume = &*volume;
    let directory = match resolve(volume, &place.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 2),
    };
    let outcome = match check_new(&place.name) {
        Ok(()) => Ok(volume.make_directory_by(&caller, &directory, &place.name, change).await),
        Err(status) => Err(status),
    };
    made(volume, draft, &directory, outcome).await
}

pub(super) async fn symlink<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    draft: Draft,
    place: Place,
    change: AttributeChange,
    target: Bytes,
) -> Reply {
    let volume = &*volume;
    let directory = match resolve(volume, &place.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 2),
    };
    let checked = match target.len() {
        0 => Err(Status::Invalid),
        len if len > TARGET_BYTES_MAX => Err(Status::NameTooLong),
        _ => check_new(&place.name),
    };
    let outcome = match checked {
        Ok(()) => Ok(volume.symlink_by(&caller, &directory, &place.name, &target, change).await),
        Err(status) => Err(status),
    };
    made(volume, draft, &directory, outcome).await
}

pub(super) async fn make_node<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    draft: Draft,
    place: Place,
    node: Node,
) -> Reply {
    let volume = &*volume;
    let directory = match resolve(volume, &place.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 2),
    };
    let outcome = match (check_new(&place.name), node) {
        (_, Node::OtherKind) => Err(Status::BadType),
        (Err(status), _) => Err(status),
        // A node of the host's disk, made by a server that root runs, would bypass every permission for users who can
        // open files on the host. If the caller is known, the host checks its rights.
        (Ok(()), Node::Special(SpecialKind::CharDevice { .. } | SpecialKind::BlockDevice { .. }, _))
            if caller.credentials().is_none() =>
        {
            Err(Status::NotPermitted)
        }
        (Ok(()), Node::Special(kind, change)) => {
            Ok(volume.make_special_by(&caller, &directory, &place.name, kind, change).await)
        }
    };
    made(volume, draft, &directory, outcome).await
}

/// Replies with a status and one directory's consistency data.
async fn changed<P: Platform>(
    volume: &Volume<P>,
    mut draft: Draft,
    directory: &Arc<Inode<P>>,
    outcome: Outcome<()>,
) -> Reply {
    let consistency = consistency_now(volume, directory, outcome.consistency).await;
    let status = outcome.result.map_or_else(Status::from, |()| Status::Ok);
    draft.status(status).consistency(&consistency);
    draft.finish()
}

pub(super) async fn remove<P: Platform>(volume: Arc<Volume<P>>, caller: Caller, draft: Draft, place: Place) -> Reply {
    let volume = &*volume;
    let directory = match resolve(volume, &place.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 2),
    };
    let outcome = volume.remove_by(&caller, &directory, &place.name).await;
    changed(volume, draft, &directory, outcome).await
}

pub(super) async fn remove_directory<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    draft: Draft,
    place: Place,
) -> Reply {
    let volume = &*volume;
    let directory = match resolve(volume, &place.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 2),
    };
    let refused = |error| Outcome { result: Err(error), consistency: Consistency::default() };
    // As in RFC 1813 (section 3.3.13).
    let outcome = match &place.name[..] {
        b"." => refused(VolumeError::Invalid { what: "\".\" cannot be removed" }),
        b".." => refused(VolumeError::Exists),
        name => volume.remove_directory_by(&caller, &directory, name).await,
    };
    changed(volume, draft, &directory, outcome).await
}

pub(super) async fn rename<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    mut draft: Draft,
    from: Place,
    to: Place,
) -> Reply {
    let volume = &*volume;
    let source = match resolve(volume, &from.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 4),
    };
    let target = match resolve(volume, &to.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 4),
    };
    let (outcome, of_target) = volume.rename_by(&caller, &source, &from.name, &target, &to.name).await;
    let of_source = consistency_now(volume, &source, outcome.consistency).await;
    let of_target = consistency_now(volume, &target, of_target).await;
    let writer = draft.status(outcome.result.map_or_else(Status::from, |()| Status::Ok));
    writer.consistency(&of_source);
    writer.consistency(&of_target);
    draft.finish()
}

pub(super) async fn link<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    mut draft: Draft,
    object: Handle,
    place: Place,
) -> Reply {
    let volume = &*volume;
    let inode = match resolve(volume, &object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 3),
    };
    let directory = match resolve(volume, &place.directory).await {
        Ok(directory) => directory,
        Err(status) => return draft.failed(status, 3),
    };
    let (result, consistency) = match check_new(&place.name) {
        Err(status) => (Err(status), Consistency::default()),
        Ok(()) => {
            let outcome = volume.link_by(&caller, &inode, &directory, &place.name).await;
            (outcome.result.map_err(Status::from), outcome.consistency)
        }
    };
    let consistency = consistency_now(volume, &directory, consistency).await;
    let (status, attributes) = match result {
        Ok(attributes) => (Status::Ok, Some(attributes)),
        Err(status) => (status, attributes_now(volume, &inode).await),
    };
    let writer = draft.status(status);
    writer.post_op(attributes.as_ref());
    writer.consistency(&consistency);
    draft.finish()
}
