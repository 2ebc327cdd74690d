//! The holders of locks, and their common bounds.
//!
//! Owns: which holders there are; the numbers of ranges and waiting owners, of all files and by group.
//! Does not own: the ranges and the waiters themselves (`ranges`, `queue`), the end of a holder (`table`).
//! Invariants: there are at most [`LOCKS_MAX`] ranges and [`FILE_LOCKS_MAX`] of one file; one group of holders has at
//! most half of each. The same holds for owners that wait: [`WAITERS_MAX`] of all files, and [`FILE_WAITERS_MAX`] of
//! one. A group without holders takes no memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::task::Waker;

use afflux_engine::Nanos;

use super::owner::{HolderId, Lock};
use super::queue::LockQueue;
use crate::locks::index::step;

/// Most locked ranges of all holders together.
pub const LOCKS_MAX: usize = 65_536;
/// Most ranges of one group of holders.
pub const GROUP_LOCKS_MAX: usize = LOCKS_MAX / 2;
/// Most ranges of one file.
pub const FILE_LOCKS_MAX: usize = LOCKS_MAX / 2;
/// Most ranges of one file and one group of holders.
pub const FILE_GROUP_LOCKS_MAX: usize = FILE_LOCKS_MAX / 2;
/// Most owners that wait.
pub(super) const WAITERS_MAX: usize = 16_384;
/// Most owners that wait for bytes of one file.
pub(super) const FILE_WAITERS_MAX: usize = 1024;

/// Most holders that a search for a lapsed one examines.
pub(super) const LAPSED_LOOKS_MAX: usize = 256;

/// A party that holds locks.
pub trait LockHolder: Send + Sync + 'static {
    /// Whether it was silent for so long that it has to give up its locks on conflict.
    fn has_lapsed(&self, now: Nanos) -> bool;

    /// Begins the end of a lapsed holder, since somebody else wants the holder's locks. The front end calls
    /// [`Locks::release_holder`](super::Locks::release_holder) once a later server would know of the end. False for a
    /// holder that has not lapsed. Must not wait, and must not ask for locks.
    fn try_revoke(&self, now: Nanos) -> bool;

    /// Its name for people.
    fn name(&self) -> String;
}

/// A question to the host about a file's locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostQuestion(pub(super) u64);

/// Why somebody gets no lock, or not yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockRefusal {
    /// This lock conflicts: it is held, or an earlier waiter wants it.
    Held(Lock),
    /// This holder has a conflicting lock, and it ends: the caller asks again after its end.
    Ending(HolderId),
    /// Clients of an earlier server may still reclaim their locks: nobody gets a new one.
    Grace,
    /// The host is asked whether a lock of one of its programs conflicts. Until then the owner has the lock, and
    /// [`Locks::finish`](super::Locks::finish) or [`Locks::give_up`](super::Locks::give_up) ends the question.
    Asked(HostQuestion),
    /// The host is asked something else about this file: the caller asks again after that.
    Busy,
    /// The owner of the conflicting lock waits for this one.
    Deadlock,
    /// The owner's group has as many as one may have.
    Full,
    /// All groups together have as many as there may be.
    Crowded,
}

struct Holder {
    it: Arc<dyn LockHolder>,
    group: u64,
    ranges: usize,
    /// Its opens that deny something.
    denying: usize,
    /// The files with its locks, share reservations and waits.
    files: BTreeSet<u64>,
    /// The front end has begun to end this holder.
    is_ending: bool,
    /// Calls that wait for the end of this holder.
    waiting: Vec<Waker>,
}

/// A group that has holders.
#[derive(Default)]
struct Group {
    holders: BTreeSet<HolderId>,
    ranges: usize,
}

#[derive(Default)]
pub(super) struct LockHolders {
    known: BTreeMap<HolderId, Holder>,
    of_groups: BTreeMap<u64, Group>,
    ranges: usize,
    /// Owners of each group that wait.
    waiting: BTreeMap<u64, usize>,
    waiters: usize,
    last: u64,
    /// The search for a lapsed holder goes on behind this one.
    looked_at: HolderId,
}

impl LockHolders {
    /// Makes one known.
    pub(super) fn register(&mut self, it: Arc<dyn LockHolder>, group: u64) -> HolderId {
        self.last += 1;
        let holder = HolderId(self.last);
        self.known.insert(
            holder,
            Holder { it, group, ranges: 0, denying: 0, files: BTreeSet::new(), is_ending: false, waiting: Vec::new() },
        );
        self.of_groups.entry(group).or_default().holders.insert(holder);
        holder
    }

    /// Removes a holder. Returns the wakers of calls that wait for the holder's end.
    pub(super) fn remove(&mut self, holder: HolderId) -> Vec<Waker> {
        let Some(removed) = self.known.remove(&holder) else { return Vec::new() };
        if let Some(of_group) = self.of_groups.get_mut(&removed.group) {
            of_group.holders.remove(&holder);
            if of_group.holders.is_empty() {
                self.of_groups.remove(&removed.group);
            }
        }
        removed.waiting
    }

    /// A holder has locks, share reservations or waits of a file from now on.
    pub(super) fn add_file(&mut self, holder: HolderId, file: u64) {
        if let Some(it) = self.known.get_mut(&holder) {
            it.files.insert(file);
        }
    }

    /// A holder has nothing of a file any more.
    pub(super) fn remove_file(&mut self, holder: HolderId, file: u64) {
        if let Some(it) = self.known.get_mut(&holder) {
            it.files.remove(&file);
        }
    }

    /// A file that a holder may be in.
    pub(super) fn first_file(&self, holder: HolderId) -> Option<u64> {
        self.known.get(&holder)?.files.first().copied()
    }

    /// The end of a holder has begun.
    pub(super) fn begin_end(&mut self, holder: HolderId) {
        if let Some(it) = self.known.get_mut(&holder) {
            it.is_ending = true;
        }
    }

    /// Begins the end of a lapsed holder. False for one that has not lapsed.
    pub(super) fn try_revoke(&self, holder: HolderId, now: Nanos) -> bool {
        self.known.get(&holder).is_some_and(|it| it.is_ending || it.it.try_revoke(now))
    }

    /// Notes a call that waits for the end of a holder. False if the holder has ended.
    pub(super) fn try_wait_for_end(&mut self, holder: HolderId, waker: &Waker) -> bool {
        let Some(it) = self.known.get_mut(&holder) else { return false };
        if !it.waiting.iter().any(|known| known.will_wake(waker)) {
            it.waiting.push(waker.clone());
        }
        true
    }

    /// All holders, with the counts of their ranges and of their denying opens.
    pub(super) fn all(&self) -> impl Iterator<Item = (HolderId, &Arc<dyn LockHolder>, (usize, usize))> {
        self.known.iter().map(|(holder, it)| (*holder, &it.it, (it.ranges, it.denying)))
    }

    /// Number of a holder's ranges.
    pub(super) fn ranges_of(&self, holder: HolderId) -> usize {
        self.known.get(&holder).map_or(0, |it| it.ranges)
    }

    /// An open of a holder denies something from now on, or did before.
    pub(super) fn count_denying(&mut self, holder: HolderId, before: bool, after: bool) {
        if let Some(it) = self.known.get_mut(&holder) {
            it.denying = (it.denying + usize::from(after)).saturating_sub(usize::from(before));
        }
    }

    pub(super) fn is_gone(&self, holder: HolderId, now: Nanos) -> bool {
        self.known.get(&holder).is_none_or(|it| it.is_ending || it.it.has_lapsed(now))
    }

    pub(super) fn group(&self, holder: HolderId) -> Option<u64> {
        self.known.get(&holder).map(|it| it.group)
    }

    /// How many more ranges of a file and a holder there may be, and the refusal if these are too few. The file has
    /// `of_file` ranges, and `own_of_file` of the holder's group.
    pub(super) fn quota(&self, of_file: usize, own_of_file: usize, holder: HolderId) -> (usize, LockRefusal) {
        let group = self.group(holder);
        let of_group = group.and_then(|group| self.of_groups.get(&group)).map_or(0, |of_group| of_group.ranges);
        let own = GROUP_LOCKS_MAX.saturating_sub(of_group).min(FILE_GROUP_LOCKS_MAX.saturating_sub(own_of_file));
        let all = LOCKS_MAX.saturating_sub(self.ranges).min(FILE_LOCKS_MAX.saturating_sub(of_file));
        if own <= all { (own, LockRefusal::Full) } else { (all, LockRefusal::Crowded) }
    }

    /// A lapsed holder with ranges, of the holder's own group if that is full. A call examines some holders, and the
    /// next call goes on behind them.
    pub(super) fn lapsed(&mut self, holder: HolderId, refusal: LockRefusal, now: Nanos) -> Option<HolderId> {
        let (behind, until) = ((Bound::Excluded(self.looked_at), Bound::Unbounded), ..=self.looked_at);
        let looks: Vec<HolderId> = match self.group(holder).and_then(|group| self.of_groups.get(&group)) {
            Some(of_group) if refusal != LockRefusal::Crowded => {
                let all = of_group.holders.range(behind).chain(of_group.holders.range(until));
                all.take(LAPSED_LOOKS_MAX).copied().collect()
            }
            _ => {
                let all = self.known.range(behind).chain(self.known.range(until));
                all.take(LAPSED_LOOKS_MAX).map(|(id, _)| *id).collect()
            }
        };
        self.looked_at = looks.last().copied().unwrap_or_default();
        looks.into_iter().inspect(|_| step()).find(|id| {
            let is_one = |it: &Holder| it.ranges > 0 && (it.is_ending || it.it.has_lapsed(now));
            *id != holder && self.known.get(id).is_some_and(is_one)
        })
    }

    /// Whether one more owner of a group may wait for bytes of a file. One group has half of the capacity, of the file
    /// and of all.
    pub(super) fn may_wait(&self, queue: &LockQueue, group: u64) -> bool {
        let of_file = queue.groups().filter(|other| *other == group).count();
        // The file's waiters are not among those of the others while it is changed.
        let of_group = of_file + self.waiting.get(&group).copied().unwrap_or_default();
        let (own, all) = (of_file < FILE_WAITERS_MAX / 2, queue.len() < FILE_WAITERS_MAX);
        own && all && of_group < WAITERS_MAX / 2 && self.waiters + queue.len() < WAITERS_MAX
    }

    /// Counts a file's waiters again, after they were subtracted for a change.
    pub(super) fn count_waiters(&mut self, queue: &LockQueue) {
        self.waiters += queue.len();
        queue.groups().for_each(|group| *self.waiting.entry(group).or_default() += 1);
    }

    /// Takes a file's waiters out of the count.
    pub(super) fn uncount_waiters(&mut self, queue: &LockQueue) {
        self.waiters -= queue.len();
        for group in queue.groups() {
            let count = self.waiting.entry(group).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.waiting.remove(&group);
            }
        }
    }

    /// Counts the ranges of a holder anew after a change.
    pub(super) fn count(&mut self, holder: HolderId, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.ranges = self.ranges + after - before;
        let Some(it) = self.known.get_mut(&holder) else { return };
        it.ranges = it.ranges + after - before;
        if let Some(of_group) = self.of_groups.get_mut(&it.group) {
            of_group.ranges = of_group.ranges + after - before;
        }
    }
}
