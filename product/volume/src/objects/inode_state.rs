//! The part of an inode that changes: what the host reported of the object last, and what was reported of it to
//! clients.
//!
//! Owns: both states and the moves from one to the other; the storage that a file is reported to use while some of its
//! data may not be on the host. Also: the unit of a file system's times, which the tree reports or which a time that
//! was set has shown.
//! Does not own: the lock around the state, the engine's file (`inode`); the units of known file systems (the tree).
//! Invariants: our own changes never move times back. The storage reported is never less than the file's data needs,
//! since backup tools take the difference for holes and leave the data out. A figure that is too large lasts until the
//! host is asked again. It never exceeds the whole file in pages, unless the host's figure does. The unit of times only
//! grows.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use afflux_engine::Nanos;

use crate::objects::rights::CachedRights;
use crate::tree::attributes::{Stat, Timestamp};
use crate::tree::directory::Location;

const PAGE_BYTES: u64 = 4096;

/// The part that changes, under the state's lock.
pub(crate) struct InodeState {
    /// The host's attributes as last seen: the baseline for detecting others' changes.
    pub(crate) stat: Stat,
    /// When the host was last asked.
    pub(crate) checked: Nanos,
    /// The times as reported to clients, who get them cut to the file system's unit.
    pub(super) atime: Timestamp,
    pub(super) mtime: Timestamp,
    pub(super) ctime: Timestamp,
    /// The size as last reported to clients.
    pub(super) size: u64,
    /// The writes since `stat`.
    pub(super) usage: ReportedUsage,
    /// The setuid and setgid bits are gone for clients, and the writeback clears them on the host: we may not clear
    /// them there.
    pub(super) unprivileged: bool,
    /// The host's modification time is not the client's; it must be set once the file is clean.
    pub(crate) unsettled: bool,
    /// Something was written since the last sync of the whole file.
    pub(crate) unflushed: bool,
    /// Two changes of names had the host's answers in an unknown order: the host is asked for the links.
    pub(super) links_doubtful: bool,
    /// The object has no name now.
    pub(crate) removed: bool,
    /// Uses that go on also without a name.
    pub(super) references: usize,
    /// The host's answers about callers' rights.
    pub(super) cached_rights: CachedRights,
    /// The last known location, for trees that cannot open identities.
    pub(crate) location: Option<Location>,
}

/// The state of an object right before the host was asked about it.
pub(crate) struct InodeLook {
    pub(super) changes: u64,
    pub(super) usage: UsageMark,
    /// The engine's count of changes, if the file was open.
    pub(crate) written: Option<u64>,
}

/// The host's answer compared with the baseline, if none of our changes was under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostView {
    Same,
    /// Others changed it: its cached bytes are void.
    Foreign,
    /// A change of ours was under way: no comparison is possible.
    Busy,
}

/// The times that a change moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Times {
    /// Only the change time.
    Keep,
    /// A directory's modification time, too.
    Entries,
    /// The times that were set.
    Set {
        /// The access time.
        atime: bool,
        /// The modification time.
        mtime: bool,
    },
}

impl InodeState {
    pub(super) fn has_ended(&self) -> bool {
        self.removed && self.references == 0
    }

    pub(super) fn is_like(&self, stat: &Stat) -> bool {
        (stat.size, stat.mtime, stat.ctime) == (self.stat.size, self.stat.mtime, self.stat.ctime)
    }

    /// Whether the mode bits give the same rights to the same users.
    pub(super) fn has_rights_of(&self, stat: &Stat) -> bool {
        (stat.mode, stat.uid, stat.gid) == (self.stat.mode, self.stat.uid, self.stat.gid)
    }

    /// Takes over what a change of a name moves. Two directories have two locks, so the answers to two changes of one
    /// object's names may come in either order.
    pub(super) fn take_links(&mut self, stat: &Stat) {
        self.links_doubtful |= stat.ctime <= self.stat.ctime;
        self.stat = Stat { links: stat.links, ctime: stat.ctime.max(self.stat.ctime), ..self.stat };
    }

    /// Makes the host's answer after `look` the new baseline.
    pub(super) fn renew(&mut self, stat: Stat, look: &InodeLook) {
        self.stat = stat;
        self.links_doubtful = false;
        self.usage.renewed(look.usage);
    }

    /// Takes the baseline over as others' change.
    pub(super) fn foreign(&mut self) {
        let stat = self.stat;
        self.atime = stat.atime;
        self.mtime = stat.mtime;
        self.ctime = stat.ctime.moved_past(self.ctime);
    }
}

/// The writes, relative to the host's state at its last answer.
#[derive(Default)]
pub(crate) struct ReportedUsage {
    /// Bytes of whole pages in all writes ever made. It only grows, so that answers of the host may come in any order.
    written: u64,
    /// The moment right before the host gave the current figure.
    asked: UsageMark,
}

/// The moment right before the host is asked.
#[derive(Clone, Copy, Default)]
pub(crate) struct UsageMark {
    written: u64,
    unwritten: u64,
}

impl ReportedUsage {
    /// Records a write of these bytes.
    pub(crate) fn wrote(&mut self, range: &Range<u64>) {
        let start = range.start - range.start % PAGE_BYTES;
        self.written = self.written.saturating_add(range.end.next_multiple_of(PAGE_BYTES) - start);
    }

    /// Called before `unwritten` is counted; both come before the question to the host.
    pub(crate) fn mark(&self) -> UsageMark {
        UsageMark { written: self.written, unwritten: 0 }
    }

    /// The host was asked after `mark`: its answer includes earlier writes that were on the host.
    pub(crate) fn renewed(&mut self, mark: UsageMark) {
        self.asked = mark;
    }

    /// The storage to report for a file of `size` bytes, if the host's figure is `used`.
    pub(crate) fn reported_bytes(&self, used: u64, size: u64) -> u64 {
        let since = (self.written - self.asked.written).saturating_add(self.asked.unwritten);
        used.saturating_add(since).min(used.max(size.next_multiple_of(PAGE_BYTES)))
    }
}

impl UsageMark {
    /// Bytes of pages that the host does not have at this moment.
    pub(crate) fn with_unwritten(self, unwritten: u64) -> Self {
        Self { unwritten, ..self }
    }
}

/// The units of file systems: NTFS, network protocols, exFAT, old ext4, FAT.
const UNITS_NS: [u32; 6] = [100, 1_000, 1_000_000, 10_000_000, 1_000_000_000, 2_000_000_000];

#[derive(Debug)]
pub(crate) struct FileTimeUnit(AtomicU32);

impl Default for FileTimeUnit {
    fn default() -> Self {
        Self(AtomicU32::new(1))
    }
}

impl FileTimeUnit {
    pub(crate) fn ns(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, known_ns: u32) {
        if known_ns > self.ns() {
            self.0.fetch_max(known_ns, Ordering::Relaxed);
        }
    }

    /// The host was given a time, and stored another one. A host that limits years, or that sets no times, does not
    /// count as one with a coarser unit.
    pub(crate) fn learn(&self, given: Timestamp, cached: Timestamp) {
        if let Some(unit) = UNITS_NS.iter().find(|unit| given.cut_to(**unit) == cached).filter(|_| cached != given) {
            self.note(*unit);
        }
    }
}

#[cfg(test)]
mod tests;
