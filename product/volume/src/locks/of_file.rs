//! The locks of one file, and the table of all files, which callers and the threads that call the host use together.
//!
//! Owns: a file's entry and its end, the counts of a change, the end of a holder, the file to examine next; the table's
//! lock, the wakes and the calls to the host after its release.
//! Does not own: the rules of ranges, share reservations and queues (their modules), the calls of front ends (`table`,
//! `asking`), the order of calls to the host (`host`).
//! Invariants: a file without locks takes no memory. A lock that the host refuses has changed nothing. Nobody has the
//! table's lock while the host is called.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Waker;

use afflux_engine::Nanos;

use crate::lock::lock;
use crate::locks::holders::{FILE_LOCKS_MAX, LockHolders, LockRefusal};
use crate::locks::host::{CallToHost, HostLocks, OnHost};
use crate::locks::index::step;
use crate::locks::owner::{HolderId, Lock, Span};
use crate::locks::queue::{LockQueue, LockWaker};
use crate::locks::ranges::LockedRanges;
use crate::locks::shares::{Share, ShareRefusal, Shares};

/// Most ranges of a file that programs of the host see. A change may call the host for each range.
const HOST_FILE_LOCKS_MAX: usize = 512;

/// The locks of one file.
#[derive(Default)]
pub(super) struct OfFile {
    pub(super) ranges: LockedRanges,
    pub(super) queue: LockQueue,
    pub(super) shares: Shares,
    pub(super) host: Option<Box<OnHost>>,
    /// Ranges of each group of holders.
    of_groups: BTreeMap<Option<u64>, usize>,
}

impl OfFile {
    /// Whether a holder has or wants something of the file.
    pub(super) fn is_of(&self, holder: HolderId) -> bool {
        self.ranges.has_any_of(holder) || self.shares.has_any_of(holder) || self.queue.holders().any(|it| it == holder)
    }

    /// How many more ranges a holder may have, and the refusal if these are too few.
    pub(super) fn quota(&self, holders: &LockHolders, holder: HolderId) -> (usize, LockRefusal) {
        let own = self.of_groups.get(&holders.group(holder)).copied().unwrap_or_default();
        let (quota, refusal) = holders.quota(self.ranges.len(), own, holder);
        match self.host {
            Some(_) if HOST_FILE_LOCKS_MAX.saturating_sub(self.ranges.len()) < quota => {
                (HOST_FILE_LOCKS_MAX.saturating_sub(self.ranges.len()), LockRefusal::Full)
            }
            _ => (quota, refusal),
        }
    }

    /// Counts the ranges of a holder anew after a change.
    pub(super) fn count(&mut self, holders: &mut LockHolders, holder: HolderId, before: usize) {
        let (group, after) = (holders.group(holder), self.ranges.len());
        let own = self.of_groups.entry(group).or_default();
        *own = (*own + after).saturating_sub(before);
        if *own == 0 {
            self.of_groups.remove(&group);
        }
        holders.count(holder, before, after);
    }

    /// Makes offers to owners that may have waited behind a lock of this owner. The lock has another mode, or is gone.
    pub(super) fn offer_after(&mut self, changed: &Lock, now: Nanos, wakers: &mut Wakers) {
        let may_be_gone = |behind: &Lock| behind.owner == changed.owner && behind.span.is_overlapping(changed.span);
        self.queue.offer_to_waiters(&self.ranges, now, may_be_gone, wakers);
    }

    /// Gives the owner of a question its earlier ranges, but for bytes that the owner has unlocked meanwhile.
    pub(super) fn take_back(&mut self, holders: &mut LockHolders) {
        let Some((wanted, held)) = self.host.as_mut().and_then(|host| host.take_before()) else { return };
        let before = self.ranges.len();
        // As many ranges were within the bound before.
        let _ = self.ranges.unlock(wanted.owner, wanted.span, FILE_LOCKS_MAX);
        for held in held {
            let _ = self.ranges.lock(held, FILE_LOCKS_MAX);
        }
        self.count(holders, wanted.owner.holder, before);
    }
}

/// The locks of all files.
#[derive(Default)]
pub(super) struct LockTable {
    pub(super) files: BTreeMap<u64, Box<OfFile>>,
    /// The files that a tick examines: owners wait, or the locks on the host may end.
    pub(super) due: BTreeSet<u64>,
    /// A tick goes on with this file.
    pub(super) due_from: Option<u64>,
    /// The files with offers to clients elsewhere, by the first end of an offer.
    offers: BTreeSet<(Nanos, u64)>,
    pub(super) holders: LockHolders,
    /// Holders that have ended and still have something of a file.
    ended: VecDeque<HolderId>,
    pub(super) after: AfterRelease,
}

/// The work that is deferred until the table's lock is released.
#[derive(Default)]
pub(super) struct AfterRelease {
    /// Files whose calls to the host are to begin.
    pub(super) calls: Vec<(u64, Arc<dyn HostLocks>)>,
    /// Callers to wake.
    pub(super) woken: Vec<Waker>,
    pub(super) waits: Vec<WaitForProgram>,
    /// Files' locks on the host that have ended. The drop of one is a call to the host.
    pub(super) ended: Vec<OnHost>,
}

/// A waiter behind a program's lock. The host wakes it.
pub(super) struct WaitForProgram {
    pub(super) host: Arc<dyn HostLocks>,
    pub(super) wanted: Lock,
    pub(super) waker: Arc<dyn LockWaker>,
}

/// Those to wake after the table's lock is released.
pub(super) type Wakers = Vec<Arc<dyn LockWaker>>;

impl LockTable {
    /// Changes a file's entry, which goes if it is empty then.
    pub(super) fn with<T>(&mut self, file: u64, change: impl FnOnce(&mut LockHolders, &mut OfFile) -> T) -> T {
        let of_file = self.files.entry(file).or_default();
        self.holders.uncount_waiters(&of_file.queue);
        let offer_end = of_file.queue.next_end();
        let result = change(&mut self.holders, of_file);
        self.holders.count_waiters(&of_file.queue);
        if let Some(host) = &mut of_file.host {
            self.after.woken.append(&mut host.take_woken());
            self.after.calls.extend(host.begin_calls().map(|host| (file, host)));
        }
        let is_on_host = of_file.host.as_ref().is_some_and(|host| host.is_in_use());
        let is_locked = of_file.ranges.len() > 0 || of_file.queue.len() > 0 || is_on_host;
        if !is_locked {
            self.after.ended.extend(of_file.host.take().map(|host| *host));
        }
        match of_file.queue.len() > 0 || of_file.host.is_some() && of_file.ranges.len() == 0 {
            true => self.due.insert(file),
            false => self.due.remove(&file),
        };
        let end = of_file.queue.next_end();
        if end != offer_end {
            offer_end.into_iter().for_each(|before| _ = self.offers.remove(&(before, file)));
            end.into_iter().for_each(|end| _ = self.offers.insert((end, file)));
        }
        if !is_locked && of_file.shares.is_empty() {
            self.files.remove(&file);
        }
        result
    }

    /// The next file to examine: one with an offer that is over, or the next one of a tick.
    pub(super) fn next_due(&mut self, now: Nanos) -> Option<u64> {
        if let Some((end, file)) = self.offers.first()
            && *end <= now
        {
            return Some(*file);
        }
        let next = self.due.range(self.due_from?..).next().copied();
        self.due_from = next.and_then(|file| file.checked_add(1));
        next
    }

    /// Ends untaken offers of a file, and begins the end of lapsed holders whose locks conflict with a waiter. Returns
    /// the number of waiters, and 1 for the file.
    pub(super) fn look_at(&mut self, file: u64, now: Nanos, wakers: &mut Wakers) -> usize {
        step();
        let queue = self.files.get(&file).map(|it| &it.queue);
        let (waiters, holders) = queue.map(|it| (it.len(), it.holders_in_the_way())).unwrap_or_default();
        for holder in holders {
            self.holders.try_revoke(holder, now);
        }
        self.with(file, |holders, of_file| {
            of_file.queue.expire(now, |holder| holders.is_gone(holder, now), wakers);
            of_file.queue.offer_to_waiters(&of_file.ranges, now, |_| true, wakers);
        });
        waiters + 1
    }

    /// The time for the next round, if there is one to come.
    pub(super) fn next_look(&self, now: Nanos) -> Option<Nanos> {
        let end = self.offers.first().map(|(end, _)| *end);
        if self.due_from.is_some() || !self.ended.is_empty() { Some(now) } else { end }
    }

    /// Forgets a holder's file if the holder has nothing of it any more.
    pub(super) fn settle(&mut self, file: u64, holder: HolderId) {
        if self.files.get(&file).is_none_or(|it| !it.is_of(holder)) {
            self.holders.remove_file(holder, file);
        }
    }

    /// Checks that no share reservation excludes the wanted one.
    pub(super) fn check_shares(
        &self,
        file: u64,
        open: Option<(HolderId, u64)>,
        share: Share,
        now: Nanos,
    ) -> Result<(), ShareRefusal> {
        match self.files.get(&file).and_then(|it| it.shares.conflict(open, share)) {
            None => Ok(()),
            Some(holder) if self.holders.try_revoke(holder, now) => Err(ShareRefusal::Ending(holder)),
            Some(_) => Err(ShareRefusal::Denied),
        }
    }

    /// A holder has ended. [`LockTable::end_some`] ends what it has.
    pub(super) fn begin_end(&mut self, holder: HolderId) {
        self.holders.begin_end(holder);
        self.ended.push_back(holder);
    }

    /// Ends what ended holders have of some files: `left` goes down by the number of ranges, share reservations and
    /// waiters that were examined. Returns how many of the ended opens denied something.
    pub(super) fn end_some(&mut self, left: &mut usize, now: Nanos, wakers: &mut Wakers) -> u64 {
        let mut denying = 0;
        while *left > 0
            && let Some(holder) = self.ended.front().copied()
        {
            let (looks, denied) = match self.holders.first_file(holder) {
                Some(file) => self.end_of(holder, file, *left, now, wakers),
                None => {
                    self.ended.pop_front();
                    self.after.woken.append(&mut self.holders.remove(holder));
                    (1, 0)
                }
            };
            *left = left.saturating_sub(looks);
            denying += denied;
        }
        denying
    }

    /// Ends `most` ranges and share reservations that a holder has of a file. The last ones end its waits, too. Returns
    /// the number of entries examined, and how many of the opens denied something.
    fn end_of(&mut self, holder: HolderId, file: u64, most: usize, now: Nanos, wakers: &mut Wakers) -> (usize, u64) {
        let (looks, denied, is_out) = self.with(file, |holders, of_file| {
            let before = of_file.ranges.len();
            of_file.host.iter_mut().for_each(|host| host.give_up_of(holder));
            let released = of_file.ranges.release(holder, most);
            let (shares, denied) = of_file.shares.release(holder, most - released);
            if released > 0 {
                of_file.host.iter_mut().for_each(|host| host.note(None, Span::WHOLE));
            }
            of_file.count(holders, holder, before);
            let looks = 1 + released + shares;
            if of_file.ranges.has_any_of(holder) || of_file.shares.has_any_of(holder) {
                return (looks, denied, false);
            }
            of_file.queue.leave_all(|wanted, _| wanted.owner.holder == holder);
            of_file.queue.offer_to_waiters(&of_file.ranges, now, |behind| behind.owner.holder == holder, wakers);
            (looks + of_file.queue.len(), denied, true)
        });
        if is_out {
            self.holders.remove_file(holder, file);
        }
        (looks, denied)
    }
}

/// The table with its lock, and the world's call for ends of offers.
#[derive(Default)]
pub(super) struct SharedTable {
    pub(super) table: Mutex<LockTable>,
    /// Gets the time when offers end.
    pub(super) on_offers: OnceLock<Box<dyn Fn(Nanos) + Send + Sync>>,
}

impl SharedTable {
    /// Has the world call again when the offers of a file end.
    pub(super) fn tell_end_of_offers(&self, table: &LockTable, file: u64) {
        self.tell(table.files.get(&file).and_then(|it| it.queue.next_end()));
    }

    /// Has the world call again at this time.
    pub(super) fn tell(&self, at: Option<Nanos>) {
        if let (Some(at), Some(told)) = (at, self.on_offers.get()) {
            told(at);
        }
    }

    /// Releases the table's lock, then wakes, and has threads call the host. A waiter is in its queue before the host
    /// may wake it.
    pub(super) fn leave(self: &Arc<Self>, mut table: MutexGuard<'_, LockTable>, wakers: &Wakers) {
        let AfterRelease { calls, woken, waits, ended } = std::mem::take(&mut table.after);
        drop(table);
        drop(ended);
        wakers.iter().for_each(|waker| waker.wake());
        woken.into_iter().for_each(Waker::wake);
        for WaitForProgram { host, wanted, waker } in waits {
            host.wake_when_free(wanted.span, wanted.mode, waker);
        }
        for (file, host) in calls {
            let work = HostCalls { shared: Arc::clone(self), file, host: Some(Arc::clone(&host)) };
            host.start(Box::new(move || work.make_all()));
        }
    }
}

/// The calls to the host for one file.
struct HostCalls {
    shared: Arc<SharedTable>,
    file: u64,
    /// None once all calls are made.
    host: Option<Arc<dyn HostLocks>>,
}

impl HostCalls {
    fn make_all(mut self) {
        while let Some((call, host)) = self.next() {
            let result = call.make(&*host);
            drop(host);
            self.note(&call, result);
        }
    }

    fn next(&mut self) -> Option<(CallToHost, Arc<dyn HostLocks>)> {
        let (shared, place) = (Arc::clone(&self.shared), &mut self.host);
        let mut table = lock(&shared.table);
        let next = table.with(self.file, |_, of_file| {
            let call = of_file.host.as_mut().and_then(|host| host.next_call(&of_file.ranges));
            let Some(call) = call else {
                // The file's part on the host may end now.
                *place = None;
                return None;
            };
            place.clone().map(|host| (call, host))
        });
        shared.leave(table, &Wakers::new());
        next
    }

    fn note(&self, call: &CallToHost, result: Result<(), LockRefusal>) {
        let mut table = lock(&self.shared.table);
        table.with(self.file, |holders, of_file| {
            let Some(host) = &mut of_file.host else { return };
            host.called(call, result);
            if host.is_refused() {
                of_file.take_back(holders);
            }
        });
        self.shared.leave(table, &Wakers::new());
    }
}

impl Drop for HostCalls {
    fn drop(&mut self) {
        if self.host.take().is_none() {
            return;
        }
        let mut table = lock(&self.shared.table);
        table.with(self.file, |holders, of_file| {
            of_file.take_back(holders);
            of_file.host.iter_mut().for_each(|host| host.lose_calls());
        });
        self.shared.leave(table, &Wakers::new());
    }
}
