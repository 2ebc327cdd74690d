//! The end of objects that have no name.
//!
//! Owns: the task that reaps these objects, and the objects of an earlier writer.
//! Does not own: the removal of their records (`DataCore::reap`).
//! Invariants: an object is reaped once at a time. An object that cannot be reaped now keeps its mark for the next
//! opening.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::cache::SlotCache;
use super::data_core::DataCore;
use super::holders::{Due, Holders};
use super::state::ObjectTree;
use super::xattrs::remove_xattrs;
use crate::error::ObjectVolumeError;
use crate::format::inode::InodeRecord;
use crate::open::get;
use crate::pages::next_page;
use crate::seams::{Durability, RecordDatabase};

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
        let (core, holders, cache) = (Arc::clone(&self.core), Arc::clone(&self.holders), Arc::clone(&self.cache));
        async move {
            let mut reaping = FuturesUnordered::new();
            loop {
                let step = |cx: &mut Context<'_>| {
                    if reaping.len() < REAPED_AT_ONCE
                        && let Poll::Ready(due) = holders.poll_due(cx)
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
                        reaping.push(reap(&*core, &holders, &cache, ino));
                        continue;
                    }
                    Step::Due(Due::Marks) => read_marks(&*core, &holders).await,
                    Step::Done(done) => done,
                };
                if done.is_err_and(|error| error.is_loss()) {
                    return;
                }
            }
        }
    }
}

async fn reap<D: DataCore>(core: &D, holders: &Holders, cache: &SlotCache, ino: u64) -> Result<(), ObjectVolumeError> {
    let done = reap_unnamed(core, cache, ino).await;
    holders.reaped(ino);
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

async fn read_marks<D: DataCore>(core: &D, holders: &Holders) -> Result<(), ObjectVolumeError> {
    let (mut from, end) = InodeRecord::unnamed_keys();
    // Marks behind a full queue are read again later.
    while from < end && !holders.has_pending_marks() {
        let found = core.records().scan_first(from, end.clone(), Durability::Applied, MARKS_READ).await?;
        from = next_page(&found, MARKS_READ, &end);
        for (key, _) in found {
            holders.found_mark(InodeRecord::unnamed(&key)?);
        }
    }
    Ok(())
}
