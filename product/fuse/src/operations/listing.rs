//! OPENDIR, READDIR and READDIRPLUS.
//!
//! Owns: the number of entries that fit the kernel's limit.
//! Does not own: the order of entries and their cookies (the volume).
//! Invariants: a listing is never longer than requested. An entry with a node counts one lookup of it, "." and ".." do
//! not.

use std::sync::Arc;

use afflux_volume::{DirectoryEntry, Inode, Kind, Platform};

use crate::limits::{DATA_BYTES_MAX, NAME_BYTES_USUAL};
use crate::mount::{Mount, Outcome};
use crate::operations::acting;
use crate::reply::{self, ENTRY_OUT_BYTES, Errno, ReplyDraft, Validity};
use crate::request::{OpenExtent, RequestHeader};
use crate::wire::Put;

fn opened<P: Platform>(on: &Mount<P>, header: &RequestHeader, inode: &Arc<Inode<P>>) -> Outcome {
    if inode.kind() != Kind::Directory {
        return Err(Errno::NOT_DIRECTORY);
    }
    let mut answer = ReplyDraft::empty();
    let fh = on.open(header, (header.node, 0), on.volume.hold(inode)?)?;
    answer.granted.file = Some(fh);
    answer.head.u64(fh);
    // The kernel keeps no listings: they would miss the changes of others.
    answer.head.u64(0);
    Ok(answer)
}

pub(super) fn try_open<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> Option<Outcome> {
    if acting::is_doubtful(on, header) {
        return None;
    }
    Some(opened(on, header, &on.try_object(header.node)?))
}

pub(super) async fn open<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> Outcome {
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
        // Without room for a node, the kernel looks the name up when it needs it.
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
