//! LOOKUP, the operations that change names, OPENDIR, READDIR and READDIRPLUS.
//!
//! Owns: the answer with a node for each found or made object, the number of entries that fit the kernel's limit.
//! Does not own: the user that a change is made as (`acting`), the order of a change's steps, the order of entries and
//! their cookies (the volume).
//! Invariants: an answer or an entry with a node counts one lookup of it, "." and ".." do not. New objects belong to
//! the requesting user from their first moment. Names are removed, moved and given as the requesting user, who may be
//! refused what the kernel has granted. Changes are noted for the next fsync. A listing is never longer than requested.

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Attributes, Caller, CreateHow, DirectoryEntry, Held, Inode, Kind, NAME_BYTES_MAX, Platform,
    RenameHow, SpecialKind, Use, VolumeError,
};

use crate::abi::{Put, kind, o};
use crate::limits::{DATA_BYTES_MAX, NAME_BYTES_USUAL};
use crate::mount::{Mount, Outcome};
use crate::mount_state::BegunChange;
use crate::operations::acting::{self, ActingRequester};
use crate::operations::locks::{self, CutReservation};
use crate::operations::{data, synchronous};
use crate::reply::{self, ENTRY_OUT_BYTES, Errno, ReplyDraft, Validity, device_parts};
use crate::request::{Mode, OpenExtent, RequestHeader, is_synchronous};

/// A request: its header, and its whole message.
type Request<'a> = (&'a RequestHeader, &'a [u8]);

/// The answer with an object's node, and that node.
fn entry<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    inode: &Inode<P>,
    attributes: &Attributes,
) -> Result<(ReplyDraft, u64), Errno> {
    let node = on.look_up(header.unique, on.volume.handle(inode)).ok_or(Errno::TOO_MANY_FILES)?;
    let mut answer = ReplyDraft::empty();
    answer.granted.node = Some(node);
    reply::entry_out(&mut answer.head, node, attributes, on.validity_in(header.node));
    Ok((answer, node))
}

/// The answer about a new object in the directory of a request.
async fn made<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    directory: &Arc<Inode<P>>,
    result: Result<(Arc<Inode<P>>, Attributes), VolumeError>,
) -> Outcome {
    let (inode, attributes) = result?;
    note_changed(on, &[header.node]);
    synchronous::names(on, header, &[(header.node, directory)]).await?;
    let (answer, node) = entry(on, header, &inode, &attributes)?;
    note_changed(on, &[node]);
    on.note_made(node);
    Ok(answer)
}

/// Begins a change of names.
fn begin<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> Result<BegunChange, Errno> {
    on.begin_change(header, on.wall_ns(), 0)
}

fn note_changed<P: Platform>(on: &Mount<P>, changed: &[u64]) {
    let mut nodes = on.known();
    for node in changed {
        nodes.note_unsynced(*node);
    }
}

pub(super) fn try_look_up<P: Platform>(on: &Mount<P>, header: &RequestHeader, name: &[u8]) -> Option<Outcome> {
    if name == b"." || name == b".." || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let directory = on.try_object(header.node)?;
    let (inode, attributes) = on.volume.try_lookup(&directory, name)?;
    Some(entry(on, header, &inode, &attributes).map(|(answer, _)| answer))
}

pub(super) async fn look_up<P: Platform>(on: &Mount<P>, header: &RequestHeader, name: &[u8]) -> Outcome {
    let directory = on.object(header.node).await?;
    match (on.volume.lookup(&directory, name).await, on.absent_ns()) {
        (Err(VolumeError::NotFound), Some(valid_ns)) if !on.volume.may_fold_names(&directory) => {
            let mut answer = ReplyDraft::empty();
            reply::absent_out(&mut answer.head, valid_ns);
            Ok(answer)
        }
        (found, _) => {
            let (inode, attributes) = found?;
            Ok(entry(on, header, &inode, &attributes)?.0)
        }
    }
}

pub(super) async fn read_link<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> Outcome {
    let inode = on.object(header.node).await?;
    let (target, _) = on.volume.read_link(&inode).await?;
    Ok(ReplyDraft::bytes(target))
}

pub(super) async fn symlink<P: Platform>(
    on: &Mount<P>,
    (header, message): Request<'_>,
    name: &[u8],
    target: &[u8],
) -> Outcome {
    let directory = on.object(header.node).await?;
    let change = begin(on, header)?;
    let caller = change.of(on.caller(header, message));
    let outcome = on.volume.symlink_by(&caller, &directory, name, target, AttributeChange::default()).await;
    change.ended(&outcome.result);
    made(on, header, &directory, outcome.result).await
}

/// The attributes of a new object.
fn with_mode(wanted: Mode) -> AttributeChange {
    let Mode { mode, umask } = wanted;
    AttributeChange { mode: Some(mode & 0o7777), umask: umask & 0o777, ..AttributeChange::default() }
}

pub(super) async fn make_directory<P: Platform>(
    on: &Mount<P>,
    (header, message): Request<'_>,
    mode: Mode,
    name: &[u8],
) -> Outcome {
    let directory = on.object(header.node).await?;
    let change = begin(on, header)?;
    let caller = change.of(on.caller(header, message));
    let outcome = on.volume.make_directory_by(&caller, &directory, name, with_mode(mode)).await;
    change.ended(&outcome.result);
    made(on, header, &directory, outcome.result).await
}

pub(super) async fn make_node<P: Platform>(
    on: &Mount<P>,
    (header, message): Request<'_>,
    mode: Mode,
    device: u32,
    name: &[u8],
) -> Outcome {
    let directory = on.object(header.node).await?;
    let (major, minor) = device_parts(device);
    let special = match mode.mode & kind::MASK {
        kind::FIFO => Some(SpecialKind::Fifo),
        kind::SOCKET => Some(SpecialKind::Socket),
        kind::CHAR => Some(SpecialKind::CharDevice { major, minor }),
        kind::BLOCK => Some(SpecialKind::BlockDevice { major, minor }),
        0 | kind::REGULAR => None,
        _ => return Err(Errno::PERMISSION),
    };
    let change = begin(on, header)?;
    let caller = change.of(on.caller(header, message));
    let attributes = with_mode(mode);
    let outcome = match special {
        Some(special) => on.volume.make_special_by(&caller, &directory, name, special, attributes).await,
        None => on.volume.create_by(&caller, &directory, name, CreateHow::Guarded(attributes)).await,
    };
    change.ended(&outcome.result);
    made(on, header, &directory, outcome.result).await
}

/// Makes a file and opens it. The handle writes whatever the mode.
pub(super) async fn create<P: Platform>(
    on: &Mount<P>,
    (header, message): Request<'_>,
    flags: u32,
    mode: Mode,
    name: &[u8],
) -> Outcome {
    let directory = on.object(header.node).await?;
    let change = begin(on, header)?;
    let caller = change.of(on.caller(header, message));
    let how = CreateHow::Guarded(with_mode(mode));
    let result = on.volume.create_by(&caller, &directory, name, how).await.result;
    let is_new = result.is_ok();
    match result {
        // The existing file is the answer.
        Err(VolumeError::Exists) if flags & o::EXCL == 0 => change.stays_begun(),
        ref result => change.ended(result),
    }
    let (inode, attributes, _share) = match result {
        Err(VolumeError::Exists) if flags & o::EXCL == 0 => {
            existing(on, header, &caller, &directory, flags, name).await?
        }
        result => result.map(|(inode, attributes)| (inode, attributes, None))?,
    };
    note_changed(on, &[header.node]);
    synchronous::names(on, header, &[(header.node, &directory)]).await?;
    created(on, header, flags, on.volume.hold(&inode)?, is_new, &attributes)
}

/// The answer about a file that is open, and perhaps new.
fn created<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    flags: u32,
    file: Held<P>,
    is_new: bool,
    attributes: &Attributes,
) -> Outcome {
    let (mut answer, node) = entry(on, header, &file, attributes)?;
    if is_new {
        on.note_made(node);
    }
    let inode = Arc::clone(&file);
    // Without an answer the file does not count as looked up.
    let fh = on.open(header, node, flags, file).inspect_err(|_| on.known().forget(node, 1))?;
    locks::share(on, fh, &inode, flags).inspect_err(|_| on.known().forget(node, 1))?;
    answer.granted.file = Some(fh);
    note_changed(on, &[node]);
    data::open_out(&mut answer.head, fh, data::direct(on, flags));
    Ok(answer)
}

/// O_TMPFILE: a file without a name, open. A later LINK of its node gives it one.
pub(super) async fn make_unnamed<P: Platform>(
    on: &Mount<P>,
    (header, message): Request<'_>,
    flags: u32,
    mode: Mode,
) -> Outcome {
    let directory = on.object(header.node).await?;
    let caller = on.caller(header, message);
    let (file, attributes) = on.volume.create_unnamed_by(&caller, &directory, with_mode(mode)).await?;
    created(on, header, flags, file, true, &attributes)
}

/// An existing file with its attributes. If the open truncated the file, the open's share reservation is registered, so
/// no other open can deny it.
type Existing<'a, P> = (Arc<Inode<P>>, Attributes, Option<CutReservation<'a, P>>);

/// The file of that name, which was not there at the kernel's lookup. The kernel has not checked the rights on it.
async fn existing<'a, P: Platform>(
    on: &'a Mount<P>,
    header: &RequestHeader,
    caller: &Caller,
    directory: &Arc<Inode<P>>,
    flags: u32,
    name: &[u8],
) -> Result<Existing<'a, P>, Errno> {
    let (inode, attributes) = on.volume.lookup(directory, name).await?;
    if inode.kind() != Kind::Regular {
        // The kernel looks the name up again, and does what the object's kind demands.
        return Err(Errno::STALE);
    }
    if flags & o::ACCMODE != o::WRONLY {
        on.volume.permit(&inode, caller, Use::Read).await?;
    }
    if flags & o::ACCMODE != o::RDONLY || flags & o::TRUNC != 0 {
        on.volume.permit(&inode, caller, Use::Write).await?;
    }
    if flags & o::TRUNC == 0 {
        return Ok((inode, attributes, None));
    }
    let share = locks::reserve_cut(on, header, &inode, flags)?;
    let empty = AttributeChange { size: Some(0), ..AttributeChange::default() };
    on.volume.set_attributes_by(caller, &inode, empty, None).await.result?;
    synchronous::size(on, &inode, is_synchronous(flags)).await?;
    let attributes = on.volume.attributes(&inode).await?;
    Ok((inode, attributes, Some(share)))
}

pub(super) async fn remove<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    name: &[u8],
    is_directory: bool,
) -> Outcome {
    let directory = on.object(header.node).await?;
    let change = begin(on, header)?;
    let mut acting = ActingRequester::of(on, header).changing(&change);
    let result = loop {
        let outcome = match is_directory {
            true => on.volume.remove_directory_by(acting.caller(), &directory, name).await,
            false => on.volume.remove_by(acting.caller(), &directory, name).await,
        };
        if !acting.check_retry(&outcome.result, &[&directory]).await {
            break outcome.result;
        }
    };
    change.ended(&result);
    result?;
    note_changed(on, &[header.node]);
    synchronous::names(on, header, &[(header.node, &directory)]).await?;
    Ok(ReplyDraft::empty())
}

pub(super) async fn rename<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    name: &[u8],
    to: (u64, &[u8]),
    flags: u32,
) -> Outcome {
    let how = RenameHow::of_flags(flags)?;
    let (from_directory, to_directory) = (on.object(header.node).await?, on.object(to.0).await?);
    // A repetition must not move the object that has the old name now.
    let is_kept = how.has_old_name() && on.can_outlive();
    let moved = if is_kept { on.volume.handle_hash_of((&from_directory, name)).await } else { None };
    let change = on.begin_change(header, on.wall_ns(), moved.unwrap_or_default())?;
    let mut acting = ActingRequester::of(on, header).changing(&change);
    let result = loop {
        let (outcome, _) =
            on.volume.rename_how_by(acting.caller(), &from_directory, name, &to_directory, to.1, how).await;
        if !acting.check_retry(&outcome.result, &[&from_directory, &to_directory]).await {
            break outcome.result;
        }
    };
    change.ended(&result);
    result?;
    note_changed(on, &[header.node, to.0]);
    // The new name first: a crash in between leaves both names, never none.
    synchronous::names(on, header, &[(to.0, &to_directory), (header.node, &from_directory)]).await?;
    Ok(ReplyDraft::empty())
}

pub(super) async fn link<P: Platform>(on: &Mount<P>, header: &RequestHeader, target: u64, name: &[u8]) -> Outcome {
    let (inode, directory) = (on.object(target).await?, on.object(header.node).await?);
    let change = begin(on, header)?;
    let mut acting = ActingRequester::of(on, header).changing(&change);
    let linked = loop {
        let linked = on.volume.link_by(acting.caller(), &inode, &directory, name).await.result;
        if !acting.check_retry(&linked, &[&directory]).await {
            break linked;
        }
    };
    change.ended(&linked);
    let attributes = linked?;
    note_changed(on, &[header.node, target]);
    synchronous::names(on, header, &[(header.node, &directory)]).await?;
    Ok(entry(on, header, &inode, &attributes)?.0)
}

fn opened<P: Platform>(on: &Mount<P>, header: &RequestHeader, inode: &Arc<Inode<P>>) -> Outcome {
    if inode.kind() != Kind::Directory {
        return Err(Errno::NOT_DIRECTORY);
    }
    let mut answer = ReplyDraft::empty();
    let fh = on.open(header, header.node, 0, on.volume.hold(inode)?)?;
    answer.granted.file = Some(fh);
    answer.head.u64(fh);
    // The kernel caches no listings: they would miss the changes of others.
    answer.head.u64(0);
    Ok(answer)
}

pub(super) fn try_open_directory<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> Option<Outcome> {
    if acting::is_doubtful(on, header) {
        return None;
    }
    Some(opened(on, header, &on.try_object(header.node)?))
}

pub(super) async fn open_directory<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> Outcome {
    let inode = on.object(header.node).await?;
    acting::check_open(on, header, &inode, 1).await?;
    opened(on, header, &inode)
}

pub(super) async fn list<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    extent: OpenExtent,
    with_attributes: bool,
) -> Outcome {
    let unique = header.unique;
    let opened = on.opened(extent.fh)?;
    let directory = &opened.inode;
    let room = (extent.size as usize).min(DATA_BYTES_MAX);
    let most = room / reply::entry_bytes(NAME_BYTES_USUAL, with_attributes);
    let listed = on.volume.list_by(&on.own, directory, extent.offset, most, with_attributes).await?;
    let valid = on.validity_of_names(directory);
    let (mut bytes, mut nodes) = (Vec::with_capacity(room), Vec::new());
    for entry in &listed.entries {
        if bytes.len() + reply::entry_bytes(entry.name.len(), with_attributes) > room {
            break;
        }
        nodes.extend(write(on, &mut bytes, entry, with_attributes.then_some((unique, valid))));
    }
    if bytes.is_empty() && !listed.entries.is_empty() {
        return Err(Errno::INVALID);
    }
    let mut answer = ReplyDraft::bytes(bytes);
    answer.granted.listed = nodes;
    Ok(answer)
}

/// Adds an entry, with attributes for the request of this number and their validity. Returns its node, if the kernel
/// gets one.
fn write<P: Platform>(
    on: &Mount<P>,
    bytes: &mut Vec<u8>,
    entry: &DirectoryEntry,
    with_attributes: Option<(u64, Validity)>,
) -> Option<u64> {
    let mut given = None;
    if let Some((unique, valid)) = with_attributes {
        let named = entry.object.as_ref().filter(|_| *entry.name != *b"." && *entry.name != *b"..");
        // Without a slot for a node, the kernel looks the name up when it needs it.
        let known = named.and_then(|(handle, attributes)| Some((on.look_up(unique, *handle)?, attributes)));
        match known {
            Some((node, attributes)) => {
                reply::entry_out(bytes, node, attributes, valid);
                given = Some(node);
            }
            None => bytes.raw(&[0; ENTRY_OUT_BYTES]),
        }
    }
    let kind = entry.object.as_ref().map(|(_, attributes)| attributes.kind);
    reply::directory_entry(bytes, entry.fileid, entry.cookie, kind, &entry.name);
    given
}
