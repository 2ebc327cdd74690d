//! Inodes with their dirty pages, and the lists on which writeback finds them.
//!
//! A list's head is its youngest end. The lists belong to a superblock until 2.6.31 (`s_dirty`, `s_io`, `s_more_io`),
//! and to a device's flusher from 2.6.32 on (`b_dirty`, `b_io`, `b_more_io`).
//!
//! Owns: the pages' two tags, the lists and the moves between them. Does not own: writing (`fs_writeback`).
//! Invariants: an inode is on one list at most. `s_dirty` is in the order of `dirtied_when`.

use std::collections::VecDeque;
use std::ops::Range;

use afflux_engine::Backing;

use crate::ranges::Ranges;

/// Names an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeId(pub(crate) usize);

/// A list of inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Dirty,
    Io,
    MoreIo,
}

/// A file in memory.
pub(crate) struct Inode {
    /// The lists of its superblock or its device.
    pub(crate) lists: usize,
    pub(crate) bdi: usize,
    pub(crate) backing: Backing,
    /// Pages tagged dirty.
    pub(crate) dirty: Ranges,
    /// Pages tagged as under writeback.
    pub(crate) writeback: Ranges,
    /// The page at which cyclic writeback goes on.
    pub(crate) writeback_index: u64,
    /// The tick at which it became dirty.
    pub(crate) dirtied_when: u64,
    /// `I_DIRTY_PAGES`.
    pub(crate) is_dirty: bool,
    /// `I_SYNC`: a task writes it back.
    pub(crate) is_syncing: bool,
    on: Option<On>,
}

impl Inode {
    pub(crate) fn new(lists: usize, bdi: usize, backing: Backing) -> Self {
        Self {
            lists,
            bdi,
            backing,
            dirty: Ranges::default(),
            writeback: Ranges::default(),
            writeback_index: 0,
            dirtied_when: 0,
            is_dirty: false,
            is_syncing: false,
            on: None,
        }
    }

    /// The next piece in a range that is dirty and not under writeback, or the dirty piece that is under writeback.
    pub(crate) fn next_dirty(&self, within: Range<u64>) -> Next {
        let Some(piece) = self.dirty.first_in(within) else { return Next::None };
        match self.writeback.first_in(piece.clone()) {
            Some(busy) if busy.start == piece.start => Next::UnderWriteback(busy),
            Some(busy) => Next::Pages(piece.start..busy.start),
            None => Next::Pages(piece),
        }
    }
}

/// A find of [`Inode::next_dirty`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    None,
    Pages(Range<u64>),
    UnderWriteback(Range<u64>),
}

/// The lists of a superblock or a device.
#[derive(Default)]
pub(crate) struct Lists {
    dirty: VecDeque<InodeId>,
    io: VecDeque<InodeId>,
    more_io: VecDeque<InodeId>,
}

impl Lists {
    fn list(&mut self, on: On) -> &mut VecDeque<InodeId> {
        match on {
            On::Dirty => &mut self.dirty,
            On::Io => &mut self.io,
            On::MoreIo => &mut self.more_io,
        }
    }

    /// The next inode to write: the oldest of `s_io`.
    pub(crate) fn next(&self) -> Option<InodeId> {
        self.io.back().copied()
    }

    /// Whether `s_io` is empty.
    pub(crate) fn has_no_io(&self) -> bool {
        self.io.is_empty()
    }

    /// The oldest inode that gave up its slice.
    pub(crate) fn oldest_more_io(&self) -> Option<InodeId> {
        self.more_io.back().copied()
    }

    /// Takes the inode off its list (the kernel moves a clean inode to `inode_in_use`).
    pub(crate) fn remove(&mut self, inodes: &mut [Inode], id: InodeId) {
        if let Some(on) = inodes[id.0].on.take() {
            self.list(on).retain(|other| *other != id);
        }
    }

    fn move_to_head(&mut self, inodes: &mut [Inode], id: InodeId, on: On) {
        self.remove(inodes, id);
        self.list(on).push_front(id);
        inodes[id.0].on = Some(on);
    }

    /// `__mark_inode_dirty`. While a task writes the inode, only its state changes.
    pub(crate) fn mark_dirty(&mut self, inodes: &mut [Inode], id: InodeId, jiffies: u64) {
        let inode = &mut inodes[id.0];
        let was_dirty = std::mem::replace(&mut inode.is_dirty, true);
        if !was_dirty && !inode.is_syncing {
            inode.dirtied_when = jiffies;
            self.move_to_head(inodes, id, On::Dirty);
        }
    }

    /// Puts the inode at the young end of `s_dirty`. Its age starts anew if the youngest inode there is younger.
    pub(crate) fn redirty_tail(&mut self, inodes: &mut [Inode], id: InodeId, jiffies: u64) {
        let youngest = self.dirty.front().map(|youngest| inodes[youngest.0].dirtied_when);
        if youngest.is_some_and(|youngest| inodes[id.0].dirtied_when < youngest) {
            inodes[id.0].dirtied_when = jiffies;
        }
        self.move_to_head(inodes, id, On::Dirty);
    }

    /// Puts the inode on `s_more_io`, for the next filling of `s_io`.
    pub(crate) fn requeue_io(&mut self, inodes: &mut [Inode], id: InodeId) {
        self.move_to_head(inodes, id, On::MoreIo);
    }

    /// Fills `s_io`: `s_more_io` joins its old end, and inodes of `s_dirty` its young end, the oldest first. With a
    /// tick, only inodes that became dirty by then.
    pub(crate) fn queue_io(&mut self, inodes: &mut [Inode], older_than_this: Option<u64>) {
        for id in std::mem::take(&mut self.more_io) {
            inodes[id.0].on = Some(On::Io);
            self.io.push_back(id);
        }
        while let Some(id) = self.dirty.back().copied() {
            if older_than_this.is_some_and(|tick| inodes[id.0].dirtied_when > tick) {
                break;
            }
            self.dirty.pop_back();
            inodes[id.0].on = Some(On::Io);
            self.io.push_front(id);
        }
    }

    /// Whether any inode is on a list (`sb_has_dirty_inodes`).
    pub(crate) fn has_dirty(&self) -> bool {
        !(self.dirty.is_empty() && self.io.is_empty() && self.more_io.is_empty())
    }
}

#[cfg(test)]
mod tests;
