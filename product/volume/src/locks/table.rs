//! The locks of all files, as front ends ask for them.
//!
//! Owns: the order of the checks of a lock, an unlock and a share reservation; the grace period.
//! Does not own: the files' entries (`of_file`), the rules of ranges, share reservations and queues (their modules),
//! the bounds (`holders`), the answers of the host (`asking`), waiting (`data::locking`).
//! Invariants: the steps of a call do not grow with the tables. A call that needs the locks or the quota of a lapsed
//! holder begins the holder's end. The front end makes that end durable; only then does another get the locks. In the
//! grace period only a reclaim gets a lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::{Poll, Waker};

use afflux_engine::Nanos;

use super::holders::{HostQuestion, LockHolder, LockRefusal};
use super::of_file::{LockTable, WaitForProgram, Wakers};
use super::owner::{HolderId, Lock, LockFamily, LockMode, LockOwner};
use super::queue::LockWaker;
use super::ranges::TooManyRanges;
use super::shares::{Share, ShareRefusal};
use crate::lock::lock;
use crate::locks::host::is_of_program;
use crate::locks::index::step;
use crate::locks::of_file::SharedTable;
use crate::locks::owner::Span;

/// Most waiters, and ranges and share reservations of ended holders, that one round over many files examines, and those
/// of one file more. The world calls for the next round.
const WAITERS_A_LOOK: usize = 256;

/// The locks of a holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldBy {
    /// Number of the holder.
    pub holder: HolderId,
    /// Name of the holder for reports.
    pub name: String,
    /// Count of locked byte ranges.
    pub ranges: usize,
    /// Opens that deny something to others.
    pub denying: usize,
    /// Owners that wait.
    pub waiting: usize,
}

/// All locks of a volume.
#[derive(Default)]
pub struct Locks {
    pub(super) shared: Arc<SharedTable>,
    /// The number of the last question to the host.
    questions: AtomicU64,
    /// Number of opens that deny something.
    denying: AtomicU64,
    /// Clients of an earlier server may reclaim their locks.
    is_in_grace: AtomicBool,
    /// A client of an earlier server may have had an open that denies uses.
    is_denied_in_grace: AtomicBool,
    /// Programs of the host see the locks.
    pub(super) is_on_host: AtomicBool,
}

impl Locks {
    /// Makes a holder known. LockHolders of one group have a bound together.
    pub fn register(&self, it: Arc<dyn LockHolder>, group: u64) -> HolderId {
        lock(&self.shared.table).holders.register(it, group)
    }

    /// A holder is gone, with all that it had. The world goes on with the files for which the call is too short; until
    /// then the holder gives up its locks on conflict as a lapsed one.
    pub fn release_holder(&self, holder: HolderId, now: Nanos) {
        let mut table = lock(&self.shared.table);
        table.begin_end(holder);
        self.look(table, now, |_, _, _| {});
    }

    /// Ends what ended holders have, and examines other files, as far as one round goes.
    fn look(
        &self,
        mut table: MutexGuard<'_, LockTable>,
        now: Nanos,
        others: impl FnOnce(&mut LockTable, &mut usize, &mut Wakers),
    ) {
        let (mut left, mut wakers) = (WAITERS_A_LOOK, Wakers::new());
        let denying = table.end_some(&mut left, now, &mut wakers);
        self.denying.fetch_sub(denying, Ordering::Relaxed);
        others(&mut table, &mut left, &mut wakers);
        self.shared.tell(table.next_look(now));
        self.shared.leave(table, &wakers);
    }

    /// The end of a holder has begun: it gives up its locks on conflict as a lapsed one, and has them until
    /// [`Locks::release_holder`].
    pub fn begin_end(&self, holder: HolderId) {
        lock(&self.shared.table).holders.begin_end(holder);
    }

    /// Whether a holder has ended. If not, the waker is woken at its end.
    pub(crate) fn poll_end(&self, holder: HolderId, waker: &Waker) -> Poll<()> {
        if lock(&self.shared.table).holders.try_wait_for_end(holder, waker) { Poll::Pending } else { Poll::Ready(()) }
    }

    /// From now on nobody gets a lock except through [`Locks::reclaim`]. With `are_denials_missing`, nobody makes a use
    /// of a file without an open, either: a client may reclaim an open that denies it.
    pub fn begin_grace(&self, are_denials_missing: bool) {
        self.is_in_grace.store(true, Ordering::Relaxed);
        self.is_denied_in_grace.store(are_denials_missing, Ordering::Relaxed);
    }

    /// Ends the grace period. Waiting callers ask again.
    pub fn end_grace(&self, now: Nanos) {
        self.is_denied_in_grace.store(false, Ordering::Relaxed);
        if self.is_in_grace.swap(false, Ordering::Relaxed) {
            self.tick(now);
        }
    }

    /// Whether clients of an earlier server may reclaim their locks.
    pub fn is_in_grace(&self) -> bool {
        self.is_in_grace.load(Ordering::Relaxed)
    }

    /// From now on `told` gets the time at which the world has to call [`Locks::go_on`]. `told` must not wait, and must
    /// not ask for locks.
    pub(crate) fn tell_offers(&self, told: Box<dyn Fn(Nanos) + Send + Sync>) {
        self.shared.on_offers.get_or_init(|| told);
    }

    /// The number of a new question to the host.
    pub(super) fn next_question(&self) -> HostQuestion {
        HostQuestion(self.questions.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes a free lock. A waiter passes earlier waiters only if its owner has a lock of the file already: the earlier
    /// ones may need that lock.
    fn take(
        &self,
        table: &mut LockTable,
        file: u64,
        wanted: Lock,
        waker: Option<&Arc<dyn LockWaker>>,
        now: Nanos,
        wakers: &mut Wakers,
    ) -> Result<(), LockRefusal> {
        if let Some(held) = table.files.get(&file).and_then(|it| it.ranges.conflict(&wanted)) {
            let holder = held.owner.holder;
            let is_ending = table.holders.try_revoke(holder, now);
            return Err(if is_ending { LockRefusal::Ending(holder) } else { LockRefusal::Held(held) });
        }
        let taken = Self::with_quota(table, wanted.owner.holder, now, wakers, |table, wakers| {
            table.with(file, |holders, of_file| {
                of_file.queue.expire(now, |holder| holders.is_gone(holder, now), wakers);
                if !of_file.ranges.has(wanted.owner)
                    && let Some(first) = of_file.queue.before(&wanted, waker)
                {
                    return Err(LockRefusal::Held(*first));
                }
                if of_file.host.as_ref().is_some_and(|host| host.is_asked()) {
                    return Err(LockRefusal::Busy);
                }
                let before = of_file.ranges.len();
                let changed = of_file.host.is_some().then(|| of_file.ranges.changed_by(&wanted));
                let (quota, refusal) = of_file.quota(holders, wanted.owner.holder);
                of_file.ranges.lock(wanted, quota).map_err(|TooManyRanges| refusal)?;
                of_file.count(holders, wanted.owner.holder, before);
                holders.add_file(wanted.owner.holder, file);
                if let Some(host) = &mut of_file.host {
                    let number = self.next_question();
                    host.ask(number, wanted, changed);
                    return Err(LockRefusal::Asked(number));
                }
                if let Some(waker) = waker {
                    of_file.queue.leave(&wanted, waker);
                }
                of_file.offer_after(&wanted, now, wakers);
                Ok(())
            })
        });
        self.shared.tell_end_of_offers(table, file);
        taken
    }

    /// Makes a change. If it lacks quota, the end of a lapsed holder begins.
    fn with_quota(
        table: &mut LockTable,
        holder: HolderId,
        now: Nanos,
        wakers: &mut Wakers,
        change: impl FnOnce(&mut LockTable, &mut Wakers) -> Result<(), LockRefusal>,
    ) -> Result<(), LockRefusal> {
        let refusal = match change(table, wakers) {
            Err(refusal @ (LockRefusal::Full | LockRefusal::Crowded)) => refusal,
            result => return result,
        };
        match table.holders.lapsed(holder, refusal, now) {
            Some(lapsed) if table.holders.try_revoke(lapsed, now) => Err(LockRefusal::Ending(lapsed)),
            _ => Err(refusal),
        }
    }

    /// Locks bytes, unless a lock or a waiter conflicts. Where the host takes part, the answer is a question at first.
    pub fn lock(&self, file: u64, wanted: Lock, now: Nanos) -> Result<(), LockRefusal> {
        if self.is_in_grace() { Err(LockRefusal::Grace) } else { self.reclaim(file, wanted, now) }
    }

    /// As [`Locks::lock`], also in the grace period: the owner had the lock of an earlier server.
    pub fn reclaim(&self, file: u64, wanted: Lock, now: Nanos) -> Result<(), LockRefusal> {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.shared.table);
        let result = self.take(&mut table, file, wanted, None, now, &mut wakers);
        self.shared.leave(table, &wakers);
        result
    }

    /// Locks bytes that the owner had at an earlier server, which had shown them to programs of the host. The host is
    /// not asked, and sees the lock later.
    pub fn restore(&self, file: u64, wanted: Lock) -> Result<(), LockRefusal> {
        let mut table = lock(&self.shared.table);
        let restored = table.with(file, |holders, of_file| {
            if let Some(held) = of_file.ranges.conflict(&wanted) {
                return Err(LockRefusal::Held(held));
            }
            let (before, (quota, refusal)) = (of_file.ranges.len(), of_file.quota(holders, wanted.owner.holder));
            of_file.ranges.lock(wanted, quota).map_err(|TooManyRanges| refusal)?;
            of_file.count(holders, wanted.owner.holder, before);
            holders.add_file(wanted.owner.holder, file);
            of_file.host.iter_mut().for_each(|host| host.note(None, wanted.span));
            Ok(())
        });
        self.shared.leave(table, &Wakers::new());
        restored
    }

    /// As [`Locks::lock`], but a refused owner waits, and is woken when it may ask again. An owner that asks again
    /// keeps its position in the queue. A client elsewhere waits neither for the end of a holder nor for that of the
    /// grace period.
    pub fn lock_or_wait(
        &self,
        file: u64,
        wanted: Lock,
        waker: &Arc<dyn LockWaker>,
        now: Nanos,
    ) -> Result<(), LockRefusal> {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.shared.table);
        let mut result = match self.is_in_grace() {
            true => Err(LockRefusal::Grace),
            false => self.take(&mut table, file, wanted, Some(waker), now, &mut wakers),
        };
        result = Self::or_wait(&mut table, file, wanted, waker, result);
        self.shared.leave(table, &wakers);
        result
    }

    /// A refused owner waits, unless the owner of the conflicting lock waits for it.
    pub(super) fn or_wait(
        table: &mut LockTable,
        file: u64,
        wanted: Lock,
        waker: &Arc<dyn LockWaker>,
        mut result: Result<(), LockRefusal>,
    ) -> Result<(), LockRefusal> {
        if table.files.get(&file).is_some_and(|it| it.queue.is_in_circle(&wanted, &it.ranges)) {
            result = result.map_err(|_| LockRefusal::Deadlock);
        }
        let is_refused = match result {
            Err(LockRefusal::Held(_)) => true,
            Err(LockRefusal::Ending(_) | LockRefusal::Grace) => waker.is_local(),
            _ => false,
        };
        if is_refused {
            let is_behind_program = matches!(&result, Err(LockRefusal::Held(held)) if is_of_program(held));
            let (waits, host) = table.with(file, |holders, it| {
                let group = holders.group(wanted.owner.holder).unwrap_or_default();
                let may_wait = holders.may_wait(&it.queue, group);
                let behind = it.ranges.conflict(&wanted);
                let waits = it.queue.try_wait(wanted, Arc::clone(waker), group, behind, may_wait);
                let host = it.host.as_ref().filter(|_| is_behind_program);
                (waits, host.map(|host| Arc::clone(host.get())))
            });
            if waits {
                table.holders.add_file(wanted.owner.holder, file);
                let wait = host.map(|host| WaitForProgram { host, wanted, waker: Arc::clone(waker) });
                table.after.waits.extend(wait);
            }
            if !waits && waker.is_local() {
                // Nobody would wake it.
                result = Err(LockRefusal::Full);
            }
        }
        result
    }

    /// An owner that has waited at an earlier server goes on waiting, behind the present waiters. The next
    /// [`Locks::tick`] makes offers.
    pub fn wait_again(&self, file: u64, wanted: Lock, waker: Arc<dyn LockWaker>) {
        let mut table = lock(&self.shared.table);
        let waits = table.with(file, |holders, of_file| {
            let group = holders.group(wanted.owner.holder).unwrap_or_default();
            let may_wait = holders.may_wait(&of_file.queue, group);
            of_file.queue.try_wait(wanted, waker, group, None, may_wait)
        });
        if waits {
            table.holders.add_file(wanted.owner.holder, file);
        }
        self.shared.leave(table, &Wakers::new());
    }

    /// An owner elsewhere waits for no bytes of a file any more.
    pub fn stop_waiting(&self, file: u64, owner: LockOwner, now: Nanos) {
        self.stop_waits(file, owner.holder, |wanted, _| wanted.owner == owner, now);
    }

    /// Nobody elsewhere waits with an open any more.
    pub fn stop_waiting_with(&self, file: u64, open: (HolderId, u64), now: Nanos) {
        self.stop_waits(file, open.0, |wanted, with| (wanted.owner.holder, with) == open, now);
    }

    /// Waiting owners of a holder elsewhere leave the queue. Others get offers.
    fn stop_waits(&self, file: u64, holder: HolderId, is_meant: impl Fn(&Lock, u64) -> bool, now: Nanos) {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.shared.table);
        if table.files.get(&file).is_none_or(|it| it.queue.len() == 0) {
            return;
        }
        table.with(file, |_, of_file| {
            of_file.queue.leave_all(is_meant);
            of_file.queue.offer_to_waiters(&of_file.ranges, now, |_| false, &mut wakers);
        });
        table.settle(file, holder);
        self.shared.tell_end_of_offers(&table, file);
        self.shared.leave(table, &wakers);
    }

    /// One does not wait any more.
    pub(crate) fn leave(&self, file: u64, wanted: &Lock, waker: &Arc<dyn LockWaker>, now: Nanos) {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.shared.table);
        table.with(file, |_, of_file| {
            of_file.queue.leave(wanted, waker);
            of_file.queue.offer_to_waiters(&of_file.ranges, now, |_| false, &mut wakers);
        });
        table.settle(file, wanted.owner.holder);
        self.shared.tell_end_of_offers(&table, file);
        self.shared.leave(table, &wakers);
    }

    /// A conflicting lock of another owner.
    pub fn conflict(&self, file: u64, wanted: &Lock, now: Nanos) -> Option<Lock> {
        let table = lock(&self.shared.table);
        // The lock of a lapsed or ended holder conflicts with nobody.
        let is_there = |owner: &LockOwner| !table.holders.is_gone(owner.holder, now);
        table.files.get(&file)?.ranges.conflict_of(wanted, is_there)
    }

    /// Unlocks bytes. If the owner is a client elsewhere and waits for some of them, the wait ends.
    pub fn unlock(&self, file: u64, owner: LockOwner, span: Span, now: Nanos) -> Result<(), LockRefusal> {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.shared.table);
        let result = Self::with_quota(&mut table, owner.holder, now, &mut wakers, |table, wakers| {
            table.with(file, |holders, of_file| {
                of_file.queue.leave_all(|wanted, _| wanted.owner == owner && wanted.span.is_overlapping(span));
                let before = of_file.ranges.len();
                let (quota, refusal) = of_file.quota(holders, owner.holder);
                let had_any = of_file.ranges.has(owner);
                let result = of_file.ranges.unlock(owner, span, quota).map_err(|TooManyRanges| refusal);
                if had_any && result.is_ok() {
                    of_file.host.iter_mut().for_each(|host| host.note(Some(owner), span));
                }
                of_file.count(holders, owner.holder, before);
                let may_be_gone = |behind: &Lock| behind.owner == owner && behind.span.is_overlapping(span);
                of_file.queue.offer_to_waiters(&of_file.ranges, now, may_be_gone, wakers);
                result
            })
        });
        table.settle(file, owner.holder);
        self.shared.tell_end_of_offers(&table, file);
        self.shared.leave(table, &wakers);
        result
    }

    /// Whether an owner has any lock of a file.
    pub fn has(&self, file: u64, owner: LockOwner) -> bool {
        lock(&self.shared.table).files.get(&file).is_some_and(|it| it.ranges.has(owner))
    }

    /// The locks of an owner of a file.
    pub fn ranges_of(&self, file: u64, owner: LockOwner) -> Vec<(Span, LockMode)> {
        let table = lock(&self.shared.table);
        let ranges = table.files.get(&file).into_iter().flat_map(|it| it.ranges.of(owner));
        ranges.map(|held| (held.span, held.mode)).collect()
    }

    /// The number of locks of a holder.
    pub fn count_of_holder(&self, holder: HolderId) -> usize {
        lock(&self.shared.table).holders.ranges_of(holder)
    }

    /// The number of locks of an owner of a file.
    pub fn count_of(&self, file: u64, owner: LockOwner) -> usize {
        lock(&self.shared.table).files.get(&file).map_or(0, |it| it.ranges.count(owner))
    }

    /// Opens a file with a share reservation, or gives an open another one, unless one conflicts.
    pub fn share(&self, file: u64, open: (HolderId, u64), share: Share, now: Nanos) -> Result<(), ShareRefusal> {
        let mut table = lock(&self.shared.table);
        table.check_shares(file, Some(open), share, now)?;
        let before = table.with(file, |_, of_file| of_file.shares.set(open, share));
        table.holders.add_file(open.0, file);
        let denied = before.is_some_and(|share| share.deny != 0);
        table.holders.count_denying(open.0, denied, share.deny != 0);
        self.denying.fetch_add(u64::from(share.deny != 0), Ordering::Relaxed);
        self.denying.fetch_sub(u64::from(denied), Ordering::Relaxed);
        self.shared.leave(table, &Wakers::new());
        Ok(())
    }

    /// Checks that no share reservation excludes the wanted one. An open does not conflict with itself. The end of a
    /// lapsed holder with a conflicting one begins.
    pub fn check_share(
        &self,
        file: u64,
        open: Option<(HolderId, u64)>,
        share: Share,
        now: Nanos,
    ) -> Result<(), ShareRefusal> {
        lock(&self.shared.table).check_shares(file, open, share, now)
    }

    /// As [`Locks::check_share`], for a use of a file without an open of version 4. In the grace period a client may
    /// still reclaim an open that denies such a use.
    pub fn check_use(&self, file: u64, access: u8, now: Nanos) -> Result<(), ShareRefusal> {
        self.check_use_in_grace()?;
        self.check_share(file, None, Share { access, deny: 0 }, now)
    }

    /// Refuses a use of a file without an open while a client may reclaim an open that denies it, or a delegation.
    pub(crate) fn check_use_in_grace(&self) -> Result<(), ShareRefusal> {
        if self.is_denied_in_grace.load(Ordering::Relaxed) { Err(ShareRefusal::Grace) } else { Ok(()) }
    }

    /// The uses that opens of a file make, and the uses that they deny.
    pub(crate) fn uses_of(&self, file: u64) -> Share {
        let table = lock(&self.shared.table);
        table.files.get(&file).map_or(Share { access: 0, deny: 0 }, |it| it.shares.uses())
    }

    /// Whether anybody has an exclusive lock of a file. True also where only the host would know.
    pub(crate) fn has_exclusive(&self, file: u64) -> bool {
        let owner = LockOwner { holder: HolderId(u64::MAX), number: 0, family: LockFamily::Single };
        let any = Lock { owner, span: Span::WHOLE, mode: LockMode::Shared, process: 0 };
        let table = lock(&self.shared.table);
        self.are_on_host() || table.files.get(&file).is_some_and(|it| it.ranges.conflict(&any).is_some())
    }

    /// Ends the share reservation of an open.
    pub fn end_share(&self, file: u64, open: (HolderId, u64)) {
        let mut table = lock(&self.shared.table);
        let ended = table.with(file, |_, of_file| of_file.shares.end(open));
        table.settle(file, open.0);
        if ended.is_some_and(|share| share.deny != 0) {
            self.denying.fetch_sub(1, Ordering::Relaxed);
            table.holders.count_denying(open.0, true, false);
        }
        self.shared.leave(table, &Wakers::new());
    }

    /// Whether any open denies anything of any file, or a client may reclaim such an open.
    pub fn has_denials(&self) -> bool {
        self.denying.load(Ordering::Relaxed) > 0 || self.is_denied_in_grace.load(Ordering::Relaxed)
    }

    /// Called every few seconds: ends untaken offers, and begins the end of lapsed holders where owners wait. The world
    /// goes on with the files for which the call is too short.
    pub fn tick(&self, now: Nanos) {
        lock(&self.shared.table).due_from.get_or_insert(0);
        self.go_on(now);
    }

    /// Called at the time that the world got: ends offers that are over by then, and goes on with the ends of holders
    /// and with a tick.
    pub(crate) fn go_on(&self, now: Nanos) {
        self.look(lock(&self.shared.table), now, |table, left, wakers| {
            while *left > 0
                && let Some(file) = table.next_due(now)
            {
                *left = left.saturating_sub(table.look_at(file, now, wakers));
            }
        });
    }

    /// The locks of each holder that has or wants some.
    pub fn held(&self) -> Vec<HeldBy> {
        let table = lock(&self.shared.table);
        let mut rows: BTreeMap<HolderId, HeldBy> = BTreeMap::new();
        for (holder, it, (ranges, denying)) in table.holders.all() {
            step();
            rows.insert(holder, HeldBy { holder, name: it.name(), ranges, denying, waiting: 0 });
        }
        for queue in table.due.iter().filter_map(|file| table.files.get(file)).map(|of_file| &of_file.queue) {
            for holder in queue.holders() {
                step();
                rows.entry(holder).and_modify(|row| row.waiting += 1);
            }
        }
        rows.into_values().filter(|row| row.ranges + row.denying + row.waiting > 0).collect()
    }
}

#[cfg(test)]
mod tests;
