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

use super::data_core::DataCore;
use super::holders::{Due, Holders};
use super::state::ObjectTree;
use crate::error::ObjectVolumeError;
use crate::format::inode::Inode;
use crate::seams::{Durability, Records};

/// Most objects that are reaped at once: each may take some round trips.
const REAPED_AT_ONCE: usize = 64;

/// The next event of the reaper.
enum Step {
    Due(Due),
    Done(Result<(), ObjectVolumeError>),
}

impl<D: DataCore> ObjectTree<D> {
    /// Reaps objects until the tree ends, or the volume is lost to this writer. A task of the world runs it.
    pub fn reaper(&self) -> impl Future<Output = ()> + Send + 'static {
        let (core, holders) = (Arc::clone(&self.core), Arc::clone(&self.holders));
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
                        reaping.push(reap(&*core, &holders, ino));
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

async fn reap<D: DataCore>(core: &D, holders: &Holders, ino: u64) -> Result<(), ObjectVolumeError> {
    let done = core.reap(ino).await;
    holders.reaped(ino);
    done
}

async fn read_marks<D: DataCore>(core: &D, holders: &Holders) -> Result<(), ObjectVolumeError> {
    let (from, to) = Inode::unnamed_keys();
    for (key, _) in core.records().scan(from, to, Durability::Applied).await? {
        holders.found_mark(Inode::unnamed(&key)?);
    }
    Ok(())
}
