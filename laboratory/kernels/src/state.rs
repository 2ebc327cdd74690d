//! The state of the kernel behind its one lock.
//!
//! Owns: counters, devices, inodes and their lists, the fractions of recent events.
//! Does not own: the steps that tasks take (`fs_writeback`, `writer`).
//! Invariants: a page that is dirty or under writeback is counted once, for the machine and for its device.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use afflux_engine::Device;

use crate::balance::{largest_fraction, period_shift};
use crate::figures::Records;
use crate::flusher::Work;
use crate::inode::{Inode, InodeId, Lists};
use crate::pdflush::Pool;
use crate::proportions::{Global, Local, WHOLE};
use crate::request_queue::{Freed, RequestQueue};
use crate::sysctl::Sysctl;
use crate::vmstat::{BdiStat, View, VmStat};
use crate::wait::WaitQueue;

/// A device (`struct backing_dev_info`).
pub(crate) struct Bdi {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) queue: RequestQueue,
    pub(crate) stat: BdiStat,
    pub(crate) dirty_exceeded: bool,
    pub(crate) completions: Local,
    /// `BDI_pdflush`: a pdflush thread works on the device.
    pub(crate) has_pdflush: bool,
    /// Work for its flusher, and the flusher's sleep.
    pub(crate) work: VecDeque<Work>,
    pub(crate) flusher: WaitQueue,
}

/// The kernel's state.
pub(crate) struct State {
    pub(crate) memory_pages: u64,
    pub(crate) sysctl: Sysctl,
    pub(crate) vm: VmStat,
    pub(crate) bdis: Vec<Bdi>,
    pub(crate) lists: Vec<Lists>,
    pub(crate) inodes: Vec<Inode>,
    pub(crate) vm_completions: Global,
    pub(crate) vm_dirties: Global,
    /// `bdp_ratelimits` of each CPU.
    pub(crate) bdp_ratelimits: Vec<u64>,
    pub(crate) pool: Pool,
    pub(crate) records: Records,
}

impl State {
    /// The counters for a pass about a device, or about none.
    pub(crate) fn view(&self, bdi: Option<usize>) -> View {
        let bdi = bdi.map(|bdi| &self.bdis[bdi]);
        View {
            vm: self.vm,
            bdi: bdi.map_or_else(BdiStat::default, |bdi| bdi.stat),
            writeback_in_progress: bdi.is_some_and(|bdi| bdi.has_pdflush || !bdi.work.is_empty()),
            sysctl: self.sysctl,
            ..View::default()
        }
    }

    fn shift(&self) -> u32 {
        period_shift(self.memory_pages, &self.sysctl)
    }

    /// `__set_page_dirty` for pages of a file, by a writer with this part of the recent dirtying.
    pub(crate) fn set_page_dirty(&mut self, dirties: &mut Local, id: InodeId, pages: Range<u64>, jiffies: u64) {
        let inode = &mut self.inodes[id.0];
        let newly = inode.dirty.insert(pages);
        let (lists, bdi, shift) = (inode.lists, inode.bdi, self.shift());
        self.lists[lists].mark_dirty(&mut self.inodes, id, jiffies);
        self.vm.dirty += newly;
        self.bdis[bdi].stat.reclaimable += newly;
        // Clean pages are evicted for new ones: nothing here uses a page twice.
        let cached = newly.min(self.vm.free);
        self.vm.free -= cached;
        self.vm.inactive_file += cached;
        self.vm_dirties.add(dirties, newly, WHOLE, shift);
        self.records.figures.dirtied += newly;
    }

    /// `clear_page_dirty_for_io` and `set_page_writeback`.
    pub(crate) fn set_page_writeback(&mut self, id: InodeId, pages: Range<u64>) {
        let inode = &mut self.inodes[id.0];
        let count = inode.dirty.remove(pages.clone());
        let bdi = &mut self.bdis[inode.bdi].stat;
        inode.writeback.insert(pages);
        (bdi.reclaimable, bdi.writeback) = (bdi.reclaimable - count, bdi.writeback + count);
        (self.vm.dirty, self.vm.writeback) = (self.vm.dirty - count, self.vm.writeback + count);
    }

    /// `test_clear_page_writeback` for the pages of a request, and the request's end.
    pub(crate) fn end_request(&mut self, id: InodeId, pages: Range<u64>) -> (usize, Freed) {
        let shift = self.shift();
        let inode = &mut self.inodes[id.0];
        let (bdi, count) = (inode.bdi, inode.writeback.remove(pages));
        let device = &mut self.bdis[bdi];
        device.stat.writeback -= count;
        self.vm.writeback -= count;
        self.vm_completions.add(&mut device.completions, count, largest_fraction(&self.sysctl), shift);
        self.records.figures.written += count;
        (bdi, device.queue.freed_request())
    }

    /// Drops the dirty pages of a file unwritten.
    pub(crate) fn truncate(&mut self, id: InodeId) {
        let inode = &mut self.inodes[id.0];
        let dropped = inode.dirty.clear();
        inode.is_dirty = false;
        let (lists, bdi) = (inode.lists, inode.bdi);
        self.vm.dirty -= dropped;
        self.bdis[bdi].stat.reclaimable -= dropped;
        if !self.inodes[id.0].is_syncing {
            self.lists[lists].remove(&mut self.inodes, id);
        }
    }

    /// Counts completions of a device as if it alone had written for a long time.
    pub(crate) fn remember_completions(&mut self, bdi: usize) {
        let (shift, largest) = (self.shift(), largest_fraction(&self.sysctl));
        // Many periods, in steps that end at the ends of half periods.
        for _ in 0..1 << 10 {
            self.vm_completions.add(&mut self.bdis[bdi].completions, 1 << (shift - 4), largest, shift);
        }
    }
}
