//! Removing names, and the end of objects that have none.
//!
//! Owns: the rules of a removal; the task that reaps objects without a name, and the objects of an earlier writer.
//! Does not own: which objects are due (`held_nodes`), the removal of their records (`DataCore::reap`).
//! Invariants: a directory with entries retains its name. An object is reaped once at a time. An object that cannot be
//! reaped now retains its mark for the next opening.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_volume::{Change, Removed, VolumeError};
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::error::{DAMAGED, ObjectVolumeError};
use crate::format::records::Body;
use crate::format::tree::InodeRecord;
use crate::open::get;
use crate::seams::{Durability, RecordDatabase, next_page};
use crate::tree::cache::SlotCache;
use crate::tree::edit::Edit;
use crate::tree::held_nodes::{Due, HeldNodes};
use crate::tree::permission;
use crate::tree::read::{ReadView, Used};
use crate::tree::state::{DataCore, ObjectTree};
use crate::tree::xattrs::remove_xattrs;

/// Refuses to remove a directory where another object is wanted, and the reverse.
pub(super) fn check_kind(inode: &InodeRecord, directory_wanted: bool) -> Result<(), VolumeError> {
    match (inode.as_directory(), directory_wanted) {
        (Err(VolumeError::NotDirectory), false) | (Ok(_), true) => Ok(()),
        (Err(error), _) => Err(error),
        (Ok(_), false) => Err(VolumeError::IsDirectory),
    }
}

/// Refuses to remove a directory with entries.
pub(super) fn check_empty(inode: &InodeRecord) -> Result<(), VolumeError> {
    match inode.as_directory() {
        Ok((_, entries)) if entries > 0 => Err(VolumeError::NotEmpty),
        _ => Ok(()),
    }
}

impl<D: DataCore> ObjectTree<D> {
    pub(super) async fn remove(
        &self,
        directory: &Used,
        name: &[u8],
        directory_wanted: bool,
        durable: bool,
    ) -> Result<Removed, VolumeError> {
        loop {
            let (parent, _) = self.directory(directory).await?;
            permission::check_search(parent.current().owned(), directory.user())?;
            let entry = self.entry(directory.ino(), name).await?.ok_or(VolumeError::NotFound)?;
            match self.view(entry.ino).await? {
                Some(view) => {
                    let removed = self.remove_now(directory, &parent, name, &view, directory_wanted, durable)?;
                    if let Some(removed) = removed {
                        return Ok(removed);
                    }
                }
                None if parent.unchanged().is_some() => return Err(DAMAGED),
                None => (),
            }
        }
    }

    /// Removes a name, unless its directory changed since it was read.
    fn remove_now(
        &self,
        directory: &Used,
        parent_view: &ReadView,
        name: &[u8],
        view: &ReadView,
        directory_wanted: bool,
        durable: bool,
    ) -> Result<Option<Removed>, VolumeError> {
        let mut order = self.order();
        let (inode, Some(mut parent)) = (view.current(), parent_view.unchanged()) else { return Ok(None) };
        permission::check_unname(parent.owned(), inode.owned(), directory.user())?;
        check_kind(&inode, directory_wanted)?;
        check_empty(&inode)?;
        let (now, parent_ino, ino) = (self.now(), directory.ino(), view.slot.ino);
        let before = self.stat_of(parent_ino, &parent, Body::default());
        parent.entries_changed(now, -1);
        let after = self.stat_of(parent_ino, &parent, Body::default());
        let mut edit = Edit::default();
        edit.remove_name(parent_ino, name);
        edit.inode(&parent_view.slot, parent);
        let inode = edit.unlink(view, inode, now);
        let sequence = self.apply(&mut order, edit)?;
        let (identity, stat) = (self.identity(ino), self.stat_of(ino, &inode, view.body));
        let stable = self.stable(sequence, durable);
        Ok(Some(Removed { identity, stat, parent: Change { before, after }, stable }))
    }
}

/// Most objects that are reaped at once: each may take some round trips.
const REAPED_AT_ONCE: usize = 64;
/// Marks that one scan reads.
const MARKS_READ: usize = 1_024;

/// The next event of the reaper.
enum Step {
    Due(Due),
    Done(Result<(), ObjectVolumeError>),
}

impl<D: DataCore> ObjectTree<D> {
    /// Reaps objects until the tree ends, or the volume is lost to this writer. A task of the world runs it.
    pub fn reaper(&self) -> impl Future<Output = ()> + Send + 'static {
        let (core, held_nodes, cache) = (Arc::clone(&self.core), Arc::clone(&self.held_nodes), Arc::clone(&self.cache));
        async move {
            let mut reaping = FuturesUnordered::new();
            loop {
                let step = |cx: &mut Context<'_>| {
                    if reaping.len() < REAPED_AT_ONCE
                        && let Poll::Ready(due) = held_nodes.poll_due(cx)
                    {
                        return Poll::Ready(Step::Due(due));
                    }
                    match reaping.poll_next_unpin(cx) {
                        Poll::Ready(Some(done)) => Poll::Ready(Step::Done(done)),
                        _ => Poll::Pending,
                    }
                };
                let done = match poll_fn(step).await {
                    Step::Due(Due::Nothing) => return,
                    Step::Due(Due::Object(ino)) => {
                        reaping.push(reap(&*core, &held_nodes, &cache, ino));
                        continue;
                    }
                    Step::Due(Due::Marks) => read_marks(&*core, &held_nodes).await,
                    Step::Done(done) => done,
                };
                if done.is_err_and(|error| error.is_loss()) {
                    return;
                }
            }
        }
    }
}

async fn reap<D: DataCore>(
    core: &D,
    held_nodes: &HeldNodes,
    cache: &SlotCache,
    ino: u64,
) -> Result<(), ObjectVolumeError> {
    let done = reap_unnamed(core, cache, ino).await;
    held_nodes.reaped(ino);
    done
}

async fn reap_unnamed<D: DataCore>(core: &D, cache: &SlotCache, ino: u64) -> Result<(), ObjectVolumeError> {
    let inode = match cache.slot(ino).inode() {
        Some(inode) => Some(inode),
        None => {
            get(core.records(), &InodeRecord::key(ino)).await?.map(|value| InodeRecord::decode(&value)).transpose()?
        }
    };
    if let Some(inode) = inode {
        // A mark that was read may be older than the object's first name.
        if inode.links > 0 {
            return Ok(());
        }
        if inode.has_xattrs {
            remove_xattrs(core, ino).await?;
        }
    }
    core.reap(ino).await
}

async fn read_marks<D: DataCore>(core: &D, held_nodes: &HeldNodes) -> Result<(), ObjectVolumeError> {
    let (mut from, end) = InodeRecord::unnamed_keys();
    // Marks behind a full queue are read again later.
    while from < end && !held_nodes.has_pending_marks() {
        let found = core.records().scan_first(from, end.clone(), Durability::Applied, MARKS_READ).await?;
        from = next_page(&found, MARKS_READ, &end);
        for (key, _) in found {
            held_nodes.found_mark(InodeRecord::unnamed(&key)?);
        }
    }
    Ok(())
}
