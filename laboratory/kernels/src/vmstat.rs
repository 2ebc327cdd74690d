//! The counters of the machine and of its devices, and the tally of a law's reads of them.
//!
//! Owns: the counters by the kernel's names, a snapshot of them for one pass. Does not own: the counting (`state`).
//! Invariants: a law that reads a counter twice is counted twice, since its kernel reads the counter twice.

use std::cell::Cell;

use crate::sysctl::Sysctl;

/// Names a counter of the machine (`enum zone_stat_item`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    FreePages,
    ActiveAnon,
    InactiveAnon,
    ActiveFile,
    InactiveFile,
    /// Dirty pages, without pages under writeback.
    FileDirty,
    Writeback,
    /// Pages under writeback through a copy.
    WritebackTemp,
    /// Pages written to a server and not committed there.
    UnstableNfs,
}

/// The machine's counts, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmStat {
    /// Free pages.
    pub free: u64,
    /// Pages of files.
    pub inactive_file: u64,
    /// Dirty pages, without pages under writeback.
    pub dirty: u64,
    /// Pages under writeback.
    pub writeback: u64,
}

/// A device's counts (`bdi_stat`), in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BdiStat {
    /// `BDI_RECLAIMABLE`: dirty pages, without pages under writeback.
    pub(crate) reclaimable: u64,
    /// `BDI_WRITEBACK`.
    pub(crate) writeback: u64,
}

/// A law's reads of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reads {
    /// Reads of the machine's counters (`global_page_state`).
    pub global: u64,
    /// The part of these that read dirty, writeback or unstable pages.
    pub dirty: u64,
    /// Reads of a device's counters (`bdi_stat`).
    pub device: u64,
    /// The part of the global reads whose counter is always 0 here.
    pub absent: u64,
}

impl Reads {
    /// Adds other reads.
    pub fn add(&mut self, more: Self) {
        self.global += more.global;
        self.dirty += more.dirty;
        self.device += more.device;
        self.absent += more.absent;
    }
}

/// Everything that a pass of a law may read. Reads are tallied.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) vm: VmStat,
    pub(crate) bdi: BdiStat,
    /// Whether a thread of the kernel writes the device back (`writeback_in_progress`).
    pub(crate) writeback_in_progress: bool,
    pub(crate) sysctl: Sysctl,
    pub(crate) reads: Cell<Reads>,
}

impl View {
    pub(crate) fn global_page_state(&self, item: Item) -> u64 {
        // The value, whether it counts dirty pages, and whether no experiment has pages of this kind.
        let (value, dirty, absent) = match item {
            Item::FreePages => (self.vm.free, 0, 0),
            Item::InactiveFile => (self.vm.inactive_file, 0, 0),
            Item::ActiveFile => (0, 0, 0),
            Item::ActiveAnon | Item::InactiveAnon => (0, 0, 1),
            Item::FileDirty => (self.vm.dirty, 1, 0),
            Item::Writeback => (self.vm.writeback, 1, 0),
            Item::WritebackTemp | Item::UnstableNfs => (0, 1, 1),
        };
        self.tally(Reads { global: 1, dirty, device: 0, absent });
        value
    }

    /// `determine_dirtyable_memory`: free, anonymous and file pages, plus 1: five reads.
    pub(crate) fn dirtyable(&self) -> u64 {
        self.global_page_state(Item::FreePages)
            + self.global_page_state(Item::ActiveAnon)
            + self.global_page_state(Item::InactiveAnon)
            + self.global_page_state(Item::ActiveFile)
            + self.global_page_state(Item::InactiveFile)
            + 1
    }

    pub(crate) fn bdi_reclaimable(&self) -> u64 {
        self.tally(Reads { device: 1, ..Reads::default() });
        self.bdi.reclaimable
    }

    pub(crate) fn bdi_writeback(&self) -> u64 {
        self.tally(Reads { device: 1, ..Reads::default() });
        self.bdi.writeback
    }

    fn tally(&self, more: Reads) {
        let mut reads = self.reads.get();
        reads.add(more);
        self.reads.set(reads);
    }
}

#[cfg(test)]
mod tests;
