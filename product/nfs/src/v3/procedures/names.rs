//! LOOKUP, READLINK, READDIR, READDIRPLUS, and the procedures that make, remove, rename and link names.
//!
//! Owns: their results, the uses of "." and "..", the refusal of device nodes, the number of entries that fit the
//! client's limit.
//! Does not own: the directory, its rules for other names, atomicity, the order of entries and their cookies (the
//! volume).
//! Invariants: a directory's consistency data are the volume's own, with before and after taken under one lock; if
//! there are none, the reply has the current attributes and no "before". A listing is never longer than requested, and
//! never empty before the end: if not one entry fits, the reply is an error. The cookie verifier is constant, since
//! cookies stay valid.

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Attributes, Consistency, CreateHow, DirectoryEntry, Inode, Listing, Outcome, Platform,
    SpecialKind, TARGET_BYTES_MAX, VolumeError,
};

use crate::operations::{Ended, Operations, Task, attributes_if_any, consistency_now};
use crate::status::NfsStatus;
use crate::v3::arguments::{Creation, DirOpArgs, ListingRequest, MadeNode};
use crate::v3::encoding::POST_OP_BYTES;
use crate::v3::permitted::{Procedure, failed};
use crate::wire::reply::Draft;
use crate::wire::xdr::{Field, Writer, opaque_bytes};

type CreateOutcome<P> = Outcome<(Arc<Inode<P>>, Attributes)>;

pub(super) async fn lookup<P: Platform>(on: &impl Operations<P>, call: &mut Procedure<'_, P>, name: Field) -> Ended {
    let (inode, attributes) = match on.lookup(call.object, name).await {
        Ok(found) => found,
        Err(stop) => return failed(on, call, stop).await,
    };
    let of_directory = attributes_if_any(on, call.object).await?;
    let writer = call.draft.status(NfsStatus::Ok);
    writer.opaque(on.volume().handle(&inode).as_bytes());
    writer.post_op(Some(&attributes));
    writer.post_op(of_directory.as_ref());
    Ok(())
}

pub(super) async fn read_link<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>) -> Ended {
    let (target, attributes) = match on.volume.read_link(call.object).await {
        Ok(found) => found,
        Err(error) => return failed(on, call, error.into()).await,
    };
    let writer = call.draft.status(NfsStatus::Ok);
    writer.post_op(Some(&attributes));
    writer.opaque(&target);
    Ok(())
}

/// "." and ".." are in every directory, so that they cannot be made.
fn check_new(name: &[u8]) -> Result<(), NfsStatus> {
    match name {
        b"." | b".." => Err(NfsStatus::Exist),
        _ => Ok(()),
    }
}

/// Writes the results that CREATE, MKDIR, SYMLINK and MKNOD have in common.
async fn made<P: Platform>(
    on: &Task<'_, P>,
    call: &mut Procedure<'_, P>,
    outcome: Result<CreateOutcome<P>, NfsStatus>,
) -> Ended {
    let (result, consistency) = match outcome {
        Ok(Outcome { result, consistency }) => (result.map_err(NfsStatus::from), consistency),
        Err(status) => (Err(status), Consistency::default()),
    };
    let consistency = consistency_now(on, call.object, consistency).await?;
    match result {
        Ok((inode, attributes)) => {
            let writer = call.draft.status(NfsStatus::Ok);
            writer.post_op_handle(on.volume.handle(&inode).as_bytes());
            writer.post_op(Some(&attributes));
            writer.consistency(&consistency);
        }
        Err(status) => call.draft.status(status).consistency(&consistency),
    }
    Ok(())
}

pub(super) async fn create<P: Platform>(
    on: &Task<'_, P>,
    call: &mut Procedure<'_, P>,
    name: &[u8],
    creation: Creation,
) -> Ended {
    let how = match creation {
        Creation::Unchecked(change) => CreateHow::Unchecked(change),
        Creation::Guarded(change) => CreateHow::Guarded(change),
        Creation::Exclusive(verifier) => CreateHow::Exclusive { verifier, attributes: AttributeChange::default() },
    };
    let outcome = match check_new(name) {
        Ok(()) => Ok(on.volume.create_by(on.caller, call.object, name, how).await),
        Err(status) => Err(status),
    };
    made(on, call, outcome).await
}

pub(super) async fn make_directory<P: Platform>(
    on: &Task<'_, P>,
    call: &mut Procedure<'_, P>,
    name: &[u8],
    change: AttributeChange,
) -> Ended {
    let outcome = match check_new(name) {
        Ok(()) => Ok(on.volume.make_directory_by(on.caller, call.object, name, change).await),
        Err(status) => Err(status),
    };
    made(on, call, outcome).await
}

pub(super) async fn symlink<P: Platform>(
    on: &Task<'_, P>,
    call: &mut Procedure<'_, P>,
    name: &[u8],
    change: AttributeChange,
    target: &[u8],
) -> Ended {
    let checked = match target.len() {
        0 => Err(NfsStatus::Inval),
        len if len > TARGET_BYTES_MAX => Err(NfsStatus::Nametoolong),
        _ => check_new(name),
    };
    let outcome = match checked {
        Ok(()) => Ok(on.volume.symlink_by(on.caller, call.object, name, target, change).await),
        Err(status) => Err(status),
    };
    made(on, call, outcome).await
}

pub(super) async fn make_node<P: Platform>(
    on: &Task<'_, P>,
    call: &mut Procedure<'_, P>,
    name: &[u8],
    node: MadeNode,
) -> Ended {
    let outcome = match (check_new(name), node) {
        (_, MadeNode::OtherKind) => Err(NfsStatus::Badtype),
        (Err(status), _) => Err(status),
        // A node of the host's disk, made by a server that root runs, would bypass every permission for users who can
        // open files on the host. If the caller is known, the host checks its rights.
        (Ok(()), MadeNode::Special(SpecialKind::CharDevice { .. } | SpecialKind::BlockDevice { .. }, _))
            if on.caller.credentials().is_none() =>
        {
            Err(NfsStatus::Perm)
        }
        (Ok(()), MadeNode::Special(kind, change)) => {
            Ok(on.volume.make_special_by(on.caller, call.object, name, kind, change).await)
        }
    };
    made(on, call, outcome).await
}

/// Writes the status of a removal and its directory's consistency data.
async fn removed<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>, outcome: Outcome<()>) -> Ended {
    let consistency = consistency_now(on, call.object, outcome.consistency).await?;
    call.draft.status(outcome.result.into()).consistency(&consistency);
    Ok(())
}

pub(super) async fn remove<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>, name: &[u8]) -> Ended {
    let outcome = on.volume.remove_by(on.caller, call.object, name).await;
    removed(on, call, outcome).await
}

pub(super) async fn remove_directory<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>, name: &[u8]) -> Ended {
    let refused = |error| Outcome { result: Err(error), consistency: Consistency::default() };
    // As RFC 1813 has it (section 3.3.13).
    let outcome = match name {
        b"." => refused(VolumeError::Invalid { what: "\".\" cannot be removed" }),
        b".." => refused(VolumeError::Exists),
        name => on.volume.remove_directory_by(on.caller, call.object, name).await,
    };
    removed(on, call, outcome).await
}

pub(super) async fn rename<P: Platform>(
    on: &Task<'_, P>,
    call: &mut Procedure<'_, P>,
    from: &[u8],
    to: DirOpArgs,
) -> Ended {
    let target = on.volume.resolve(on.bytes(to.directory)).await?;
    let (outcome, of_target) = on.volume.rename_by(on.caller, call.object, from, &target, on.bytes(to.name)).await;
    let of_source = consistency_now(on, call.object, outcome.consistency).await?;
    let of_target = consistency_now(on, &target, of_target).await?;
    let writer = call.draft.status(outcome.result.into());
    writer.consistency(&of_source);
    writer.consistency(&of_target);
    Ok(())
}

pub(super) async fn link<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>, diropargs: DirOpArgs) -> Ended {
    let (directory, name) = (on.volume.resolve(on.bytes(diropargs.directory)).await?, on.bytes(diropargs.name));
    let (result, consistency) = match check_new(name) {
        Err(status) => (Err(status), Consistency::default()),
        Ok(()) => {
            let Outcome { result, consistency } = on.volume.link_by(on.caller, call.object, &directory, name).await;
            (result.map_err(NfsStatus::from), consistency)
        }
    };
    let consistency = consistency_now(on, &directory, consistency).await?;
    let (status, attributes) = match result {
        Ok(attributes) => (NfsStatus::Ok, Some(attributes)),
        Err(status) => (status, attributes_if_any(on, call.object).await?),
    };
    let writer = call.draft.status(status);
    writer.post_op(attributes.as_ref());
    writer.consistency(&consistency);
    Ok(())
}

const VERIFIER: [u8; 8] = [0; 8];
/// The words after the last entry: no further entry, and whether this was the end.
const TRAILER_BYTES: usize = 4 + 4;
/// Bytes of a listing without entries: the directory's attributes, the verifier, the trailer.
const FRAME_BYTES: usize = POST_OP_BYTES + VERIFIER.len() + TRAILER_BYTES;
/// Assumed length of a name, to guess how many entries fit. Entries beyond that are read in vain, and each costs a call
/// to the host if attributes are requested.
const NAME_BYTES_USUAL: usize = 12;
const HANDLE_BYTES_USUAL: usize = 40;

/// The bytes of an entry that count for `dircount`: file number, name, cookie.
const fn directory_bytes(name_len: usize) -> usize {
    8 + opaque_bytes(name_len) + 8
}

fn entries_max(request: &ListingRequest) -> usize {
    let room = (request.result_bytes_max as usize).saturating_sub(FRAME_BYTES);
    let mut entry = 4 + directory_bytes(NAME_BYTES_USUAL);
    if request.with_attributes {
        entry += POST_OP_BYTES + 4 + opaque_bytes(HANDLE_BYTES_USUAL);
    }
    let by_names = request.directory_bytes_max as usize / directory_bytes(NAME_BYTES_USUAL);
    (room / entry).min(by_names).max(1)
}

pub(super) async fn list<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>, request: ListingRequest) -> Ended {
    let most = entries_max(&request);
    let listed = on.volume.list_by(on.caller, call.object, request.cookie, most, request.with_attributes).await;
    let listing = match listed {
        Ok(listing) => listing,
        Err(error) => return failed(on, call, error.into()).await,
    };
    if let Err(status) = fill(call.draft, &request, &listing) {
        call.draft.status(status).post_op(Some(&listing.directory));
    }
    Ok(())
}

/// Writes status and results; an error if not one entry fits.
fn fill(draft: &mut Draft, request: &ListingRequest, listing: &Listing) -> Result<(), NfsStatus> {
    let start = draft.writer.len();
    let writer = draft.status(NfsStatus::Ok);
    let results_at = writer.len();
    writer.post_op(Some(&listing.directory));
    writer.raw(&VERIFIER);
    let mut names_left = request.directory_bytes_max as usize;
    let mut written = 0;
    for entry in &listing.entries {
        let before = writer.len();
        write_entry(writer, entry, request.with_attributes);
        let results = writer.len() - results_at + TRAILER_BYTES;
        let names = directory_bytes(entry.name.len());
        if results > request.result_bytes_max as usize || names > names_left {
            writer.truncate(before);
            break;
        }
        names_left -= names;
        written += 1;
    }
    let too_small = FRAME_BYTES > request.result_bytes_max as usize;
    if too_small || (written == 0 && !listing.entries.is_empty()) {
        writer.truncate(start);
        return Err(NfsStatus::Toosmall);
    }
    writer.bool(false);
    writer.bool(listing.end && written == listing.entries.len());
    Ok(())
}

fn write_entry(writer: &mut Writer, entry: &DirectoryEntry, with_attributes: bool) {
    writer.bool(true);
    writer.u64(entry.fileid);
    writer.opaque(&entry.name);
    writer.u64(entry.cookie);
    if !with_attributes {
        return;
    }
    match &entry.object {
        Some((handle, attributes)) => {
            writer.post_op(Some(attributes));
            writer.post_op_handle(handle.as_bytes());
        }
        None => {
            writer.post_op(None);
            writer.bool(false);
        }
    }
}
