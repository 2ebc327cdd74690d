//! The end of objects that have no name.
//!
//! Owns: the task that reaps these objects, and the objects of an earlier writer.
//! Does not own: the removal of their records (`DataCore::reap`).
//! Invariants: one object at a time. An object that cannot be reaped now keeps its mark for the next opening.

use std::future::{Future, poll_fn};
use std::sync::Arc;

use super::data_core::DataCore;
use super::holders::{Due, Holders};
use super::state::ObjectTree;
use crate::error::ObjectVolumeError;
use crate::format::inode::Inode;
use crate::seams::{Durability, Records};

impl<D: DataCore> ObjectTree<D> {
    /// Reaps objects until the tree ends, or the volume is lost to this writer. A task of the world runs it.
    pub fn reaper(&self) -> impl Future<Output = ()> + Send + 'static {
        let (core, holders) = (Arc::clone(&self.core), Arc::clone(&self.holders));
        async move {
            loop {
                let due = poll_fn(|cx| holders.poll_due(cx)).await;
                let done = match due {
                    Due::Nothing => return,
                    Due::Object(ino) => core.reap(ino).await,
                    Due::Marks => read_marks(&*core, &holders).await,
                };
                if let Err(ObjectVolumeError::Records(_) | ObjectVolumeError::Closed) = done {
                    return;
                }
            }
        }
    }
}

async fn read_marks<D: DataCore>(core: &D, holders: &Holders) -> Result<(), ObjectVolumeError> {
    let (from, to) = Inode::unnamed_keys();
    for (key, _) in core.records().scan(from, to, Durability::Applied).await? {
        holders.found_mark(Inode::unnamed(&key)?);
    }
    Ok(())
}
