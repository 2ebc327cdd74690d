//! One call's changes: the batch, and the inodes in memory that follow it.
//!
//! Owns: the records of a change, times of changed objects, the answer's durability.
//! Does not own: the rules of a call.
//! Invariants: memory changes after the records have taken the batch, under the same lock. The change time of an object
//! only grows.

use std::sync::Arc;

use afflux_volume::{Stable, Timestamp, TreeResult, VolumeError};

use super::cache::Slot;
use super::read::ReadView;
use super::state::{ObjectTree, Order, written};
use crate::format::records::Body;
use crate::format::tree::{Content, Entry, FILES_KEY, InodeRecord};
use crate::seams::{Batch, RecordChange, RecordDatabase, Sequence};
use crate::tree::state::DataCore;

/// The changes of one call.
#[derive(Default)]
pub(super) struct Edit {
    batch: Batch,
    inodes: Vec<(Arc<Slot>, InodeRecord)>,
    unnamed: Vec<u64>,
    /// Objects that get their first name.
    named: Vec<u64>,
}

impl Edit {
    pub(super) fn inode(&mut self, slot: &Arc<Slot>, inode: InodeRecord) {
        self.batch.push(RecordChange::Put(InodeRecord::key(slot.ino), inode.encode()));
        self.inodes.push((Arc::clone(slot), inode));
    }

    pub(super) fn name(&mut self, directory: u64, name: &[u8], ino: u64, inode: &InodeRecord) {
        self.batch.push(RecordChange::Put(Entry::key(directory, name), Entry::value(ino, inode.kind())));
    }

    pub(super) fn remove_name(&mut self, directory: u64, name: &[u8]) {
        self.batch.push(RecordChange::Remove(Entry::key(directory, name)));
    }

    /// A record besides inodes and names.
    pub(super) fn record(&mut self, change: RecordChange) {
        self.batch.push(change);
    }

    pub(super) fn count_files(&mut self, by: i64) {
        self.batch.push(RecordChange::Add(FILES_KEY.to_vec(), by));
    }

    /// Marks a new object that has no name. It is no file of the volume yet.
    pub(super) fn nameless(&mut self, ino: u64) {
        self.batch.push(RecordChange::Put(InodeRecord::unnamed_key(ino), Vec::new()));
    }

    /// Gives an object its first name: the mark goes.
    pub(super) fn first_name(&mut self, ino: u64) {
        self.batch.push(RecordChange::Remove(InodeRecord::unnamed_key(ino)));
        self.count_files(1);
        self.named.push(ino);
    }

    /// Takes one name from an object; with the last name, marks it.
    pub(super) fn unlink(&mut self, view: &ReadView, mut inode: InodeRecord, now: Timestamp) -> InodeRecord {
        inode.links = match inode.content {
            Content::Directory { .. } => 0,
            _ => inode.links.saturating_sub(1),
        };
        inode.touch(now, &view.body);
        if inode.links == 0 {
            self.batch.push(RecordChange::Put(InodeRecord::unnamed_key(view.slot.ino), Vec::new()));
            self.count_files(-1);
            self.unnamed.push(view.slot.ino);
        }
        self.inode(&view.slot, inode.clone());
        inode
    }
}

impl InodeRecord {
    /// Moves the change time on; returns it.
    pub(super) fn touch(&mut self, now: Timestamp, body: &Body) -> Timestamp {
        self.changed = now.moved_past(self.changed.max(written(body)));
        self.changes += 1;
        self.changed
    }

    /// A directory has more entries, or fewer.
    pub(super) fn entries_changed(&mut self, now: Timestamp, by: i64) {
        let now = self.touch(now, &Body::default());
        (self.modified, self.modified_set) = (now, now);
        if let Content::Directory { entries, .. } = &mut self.content {
            *entries = entries.saturating_add_signed(by);
        }
    }
}

impl<D: DataCore> ObjectTree<D> {
    /// Gives a call's batch to the records.
    pub(super) fn apply(&self, order: &mut Order, edit: Edit) -> Result<Sequence, VolumeError> {
        order.last = self.core.records().apply(edit.batch)?;
        (order.told, order.wanted) = (order.last, order.last);
        for (slot, inode) in edit.inodes {
            slot.set(inode);
        }
        for ino in edit.named {
            self.held_nodes.name(ino);
        }
        for ino in edit.unnamed {
            self.held_nodes.unname(ino);
        }
        Ok(order.last)
    }

    /// The end of a call that may have to be durable.
    pub(super) fn stable(&self, sequence: Sequence, durable: bool) -> Stable {
        if !durable {
            return Stable::not_begun();
        }
        let (core, waits) = (Arc::clone(&self.core), !self.options.async_metadata);
        Stable::begun(TreeResult::by(async move {
            if waits {
                core.records().durable(sequence).await?;
            }
            Ok(core.wait_to_answer().await?)
        }))
    }

    /// The newest change of names or attributes that a caller wanted.
    pub fn last_change(&self) -> Sequence {
        self.order().wanted
    }

    /// Makes all earlier changes of the tree durable.
    pub(super) async fn sync(&self) -> Result<(), VolumeError> {
        let last = self.order().last;
        Ok(self.core.records().durable(last).await?)
    }
}
