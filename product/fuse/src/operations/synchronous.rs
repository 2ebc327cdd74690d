//! Changes that are durable before their answer.
//!
//! The kernel leaves O_SYNC, O_DSYNC and the mount's flags `sync` and `dirsync` to the server. A WRITE says by its own
//! flags that it is synchronous. Other requests say nothing: the flags of the open file, or those of the mount, decide.
//!
//! Owns: which request is synchronous, and the sync that it then needs.
//! Does not own: the syncs of a program (`data`), the flags of a mount ([`crate::Requesters`]), durability (the
//! volume).
//! Invariants: the answer to a synchronous change comes after its bytes, its names and its attributes are on the
//! medium, also if the kernel sends the request to a later server again. Other changes wait for nothing here. O_DSYNC
//! has the effect of O_SYNC: attributes cost no sync unless a call of their own has changed them.

use std::sync::Arc;

use afflux_volume::{Inode, Platform};

use crate::abi::UNIQUE_RESENT;
use crate::mount::{Mount, SyncedChanges};
use crate::open_files::OpenFile;
use crate::reply::Errno;
use crate::request::RequestHeader;

/// Makes written bytes of a file durable, with what else changed about it here.
pub(super) async fn bytes<P: Platform>(on: &Mount<P>, file: &OpenFile<P>, offset: u64, len: u64) -> Result<(), Errno> {
    on.volume.commit_by(&on.own, Some(&file.client), &file.inode, offset, len).await.result?;
    object(on, file.node, &file.inode).await
}

/// As [`bytes()`], for a range that an open file has changed by a request without flags. It does nothing unless the
/// open or the mount is synchronous.
pub(super) async fn range<P: Platform>(on: &Mount<P>, file: &OpenFile<P>, offset: u64, len: u64) -> Result<(), Errno> {
    if file.is_synchronous || on.synced_changes() == SyncedChanges::All {
        bytes(on, file, offset, len).await?;
    }
    Ok(())
}

/// Makes a new size durable, if the open that set it or the mount is synchronous.
pub(super) async fn size<P: Platform>(on: &Mount<P>, inode: &Arc<Inode<P>>, is_synchronous: bool) -> Result<(), Errno> {
    if is_synchronous || on.synced_changes() == SyncedChanges::All {
        on.volume.commit_by(&on.own, None, inode, 0, 0).await.result?;
        on.volume.sync_object(inode).await?;
    }
    Ok(())
}

/// Makes attributes that a request has changed durable, on a synchronous mount.
pub(super) async fn attributes<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    inode: &Arc<Inode<P>>,
) -> Result<(), Errno> {
    if on.synced_changes() == SyncedChanges::All && needs_sync(on, header) {
        object(on, header.node, inode).await?;
    }
    Ok(())
}

/// Makes names durable that a request has changed in these directories, if the mount has names synchronous.
pub(super) async fn names<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    directories: &[(u64, &Arc<Inode<P>>)],
) -> Result<(), Errno> {
    if on.synced_changes() >= SyncedChanges::Names && needs_sync(on, header) {
        for (node, directory) in directories {
            object(on, *node, directory).await?;
        }
    }
    Ok(())
}

/// Whether the change is durable only after a sync. What an earlier server has begun for a request may need one, too.
fn needs_sync<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> bool {
    !on.volume.are_names_durable() || header.unique & UNIQUE_RESENT != 0
}

/// Makes names and attributes durable that were changed here. They stay noted until a sync has succeeded, so each sync
/// that comes meanwhile makes them durable, too.
pub(super) async fn object<P: Platform>(on: &Mount<P>, node: u64, inode: &Arc<Inode<P>>) -> Result<(), Errno> {
    let unsynced = on.known().unsynced(node);
    if let Some(change) = unsynced {
        on.volume.sync_object(inode).await?;
        on.known().note_synced(node, change);
    }
    Ok(())
}
