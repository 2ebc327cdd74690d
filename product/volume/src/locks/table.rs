//! The locks of all files.
//!
//! Owns: the table of files, the end of holders.
//! Does not own: the rules of ranges, shares and queues (their modules), the bounds (`holders`), waiting
//! (`data::locking`).
//! Invariants: a file without locks takes no memory. The steps of a call do not grow with the tables. A call that needs
//! the locks or the room of a lapsed holder begins the holder's end. The front end makes that end durable; only then
//! does another get the locks. In the grace period a reclaim is the only way to a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Poll, Waker};

use afflux_engine::Nanos;

use super::holders::{LockHolder, LockHolders, LockRefusal};
use super::host::{HostLocks, HostRefusal, OnHost, is_of_program};
use super::owner::{HolderId, Lock, LockMode, LockOwner};
use super::queue::{LockQueue, LockWaker};
use super::ranges::{LockedRanges, NoRoom};
use super::shares::{Share, ShareRefusal, Shares};
use super::span::Span;
use super::steps::step;
use crate::lock::lock;

/// Most ranges of a file that programs of the host see. A change may call the host for each range.
const HOST_FILE_LOCKS_MAX: usize = 512;

/// Most waiters that a look at many files sees, and those of one file more. The world calls for the next look.
const WAITERS_A_LOOK: usize = 256;

/// The locks of a holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldBy {
    /// Its number.
    pub holder: HolderId,
    /// Its name.
    pub name: String,
    /// Locked ranges.
    pub ranges: usize,
    /// Opens that deny something to others.
    pub denying: usize,
    /// Owners that wait.
    pub waiting: usize,
}

#[derive(Default)]
struct OfFile {
    ranges: LockedRanges,
    queue: LockQueue,
    shares: Shares,
    host: OnHost,
    /// Ranges of each group of holders.
    of_groups: BTreeMap<Option<u64>, usize>,
    /// The first end of a turn of a client elsewhere.
    turn_end: Option<Nanos>,
}

impl OfFile {
    /// Whether a holder has or wants something of the file.
    fn is_of(&self, holder: HolderId) -> bool {
        self.ranges.has_any_of(holder) || self.shares.has_any_of(holder) || self.queue.holders().any(|it| it == holder)
    }

    /// How many more ranges a holder may have, and the refusal if these are too few.
    fn room(&self, holders: &LockHolders, holder: HolderId) -> (usize, LockRefusal) {
        let own = self.of_groups.get(&holders.group(holder)).copied().unwrap_or_default();
        let (room, refusal) = holders.room((self.ranges.len(), own), holder);
        match self.host.get() {
            Some(_) if HOST_FILE_LOCKS_MAX.saturating_sub(self.ranges.len()) < room => {
                (HOST_FILE_LOCKS_MAX.saturating_sub(self.ranges.len()), LockRefusal::Full)
            }
            _ => (room, refusal),
        }
    }

    /// Counts the ranges of a holder anew after a change.
    fn count(&mut self, holders: &mut LockHolders, holder: HolderId, before: usize) {
        let (group, after) = (holders.group(holder), self.ranges.len());
        let own = self.of_groups.entry(group).or_default();
        *own = (*own + after).saturating_sub(before);
        if *own == 0 {
            self.of_groups.remove(&group);
        }
        holders.count(holder, before, after);
    }
}

#[derive(Default)]
struct Table {
    files: BTreeMap<u64, Box<OfFile>>,
    /// The files that a tick looks at: owners wait, or the host's part may end.
    due: BTreeSet<u64>,
    /// A tick goes on with this file.
    due_from: Option<u64>,
    /// The files with turns of clients elsewhere, by the first end of a turn.
    turns: BTreeSet<(Nanos, u64)>,
    holders: LockHolders,
}

/// All locks of a volume.
#[derive(Default)]
pub struct Locks {
    table: Mutex<Table>,
    /// Number of opens that deny something.
    denying: AtomicU64,
    /// Clients of an earlier server may reclaim their locks.
    is_in_grace: AtomicBool,
    /// A client of an earlier server may have had an open that denies uses.
    is_denied_in_grace: AtomicBool,
    /// Programs of the host see the locks.
    is_on_host: AtomicBool,
    /// Is told when turns end.
    on_turns: OnceLock<Box<dyn Fn(Nanos) + Send + Sync>>,
}

/// Those to wake after the table's lock is released.
type Wakers = Vec<Arc<dyn LockWaker>>;

impl Table {
    /// Changes a file's entry, which goes if nothing is left in it.
    fn with<T>(&mut self, file: u64, change: impl FnOnce(&mut LockHolders, &mut OfFile) -> T) -> T {
        let of_file = self.files.entry(file).or_default();
        self.holders.uncount_waiters(&of_file.queue);
        let result = change(&mut self.holders, of_file);
        self.holders.count_waiters(&of_file.queue);
        let is_locked = of_file.ranges.len() > 0 || of_file.queue.len() > 0 || of_file.host.is_in_use();
        if !is_locked {
            of_file.host = OnHost::default();
        }
        match of_file.queue.len() > 0 || of_file.host.get().is_some() && of_file.ranges.len() == 0 {
            true => self.due.insert(file),
            false => self.due.remove(&file),
        };
        let end = of_file.queue.next_end();
        if end != of_file.turn_end {
            of_file.turn_end.into_iter().for_each(|before| _ = self.turns.remove(&(before, file)));
            end.into_iter().for_each(|end| _ = self.turns.insert((end, file)));
            of_file.turn_end = end;
        }
        if !is_locked && of_file.shares.is_empty() {
            self.files.remove(&file);
        }
        result
    }

    /// The next file to look at: one with a turn that is over, or the next one of a tick.
    fn next_due(&mut self, now: Nanos) -> Option<u64> {
        if let Some((end, file)) = self.turns.first()
            && *end <= now
        {
            return Some(*file);
        }
        let next = self.due.range(self.due_from?..).next().copied();
        self.due_from = next.and_then(|file| file.checked_add(1));
        next
    }

    /// Ends untaken turns of a file, and begins the end of lapsed holders in a waiter's way. Returns the number of
    /// waiters, and 1 for the file.
    fn look_at(&mut self, file: u64, now: Nanos, wakers: &mut Wakers) -> usize {
        step();
        let queue = self.files.get(&file).map(|it| &it.queue);
        let (waiters, holders) = queue.map(|it| (it.len(), it.holders_in_the_way())).unwrap_or_default();
        for holder in holders {
            self.holders.try_revoke(holder, now);
        }
        self.with(file, |holders, of_file| {
            of_file.queue.expire(now, |holder| holders.is_gone(holder, now), wakers);
            of_file.queue.give_turns(&of_file.ranges, now, |_| true, wakers);
        });
        waiters + 1
    }

    /// The time for the next look, if there is one to come.
    fn next_look(&self, now: Nanos) -> Option<Nanos> {
        let end = self.turns.first().map(|(end, _)| *end);
        if self.due_from.is_some() { Some(now) } else { end }
    }

    /// Forgets the file of a holder that has left.
    fn settle(&mut self, file: u64, holder: HolderId) {
        if self.files.get(&file).is_none_or(|it| !it.is_of(holder)) {
            self.holders.remove_file(holder, file);
        }
    }

    /// Checks that no share excludes the wanted one.
    fn check_shares(
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

    /// Ends all that a holder has. Returns how many of its opens denied something.
    fn end(&mut self, holder: HolderId, now: Nanos, wakers: &mut Wakers) -> u64 {
        let mut denying = 0;
        for file in self.holders.files(holder) {
            denying += self.with(file, |holders, of_file| {
                let before = of_file.ranges.len();
                if of_file.ranges.release(holder) > 0 {
                    of_file.host.follow(Span::WHOLE, &of_file.ranges);
                }
                of_file.queue.leave_all(|wanted, _| wanted.owner.holder == holder);
                of_file.count(holders, holder, before);
                of_file.queue.give_turns(&of_file.ranges, now, |behind| behind.owner.holder == holder, wakers);
                of_file.shares.release(holder)
            });
            self.settle(file, holder);
        }
        denying
    }
}

impl Locks {
    /// Makes a holder known. LockHolders of one group have a bound together.
    pub fn register(&self, it: Arc<dyn LockHolder>, group: u64) -> HolderId {
        lock(&self.table).holders.register(it, group)
    }

    /// A holder is gone, with all that it had.
    pub fn release_holder(&self, holder: HolderId, now: Nanos) {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.table);
        let denying = table.end(holder, now, &mut wakers);
        self.denying.fetch_sub(denying, Ordering::Relaxed);
        let waiting = table.holders.remove(holder);
        drop(table);
        wake_all(wakers);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The end of a holder has begun: it gives way as one that has lapsed, and has its locks until
    /// [`Locks::release_holder`].
    pub fn begin_end(&self, holder: HolderId) {
        lock(&self.table).holders.begin_end(holder);
    }

    /// Whether a holder has ended. If not, the waker is woken at its end.
    pub(crate) fn poll_end(&self, holder: HolderId, waker: &Waker) -> Poll<()> {
        if lock(&self.table).holders.try_wait_for_end(holder, waker) { Poll::Pending } else { Poll::Ready(()) }
    }

    /// From now on nobody gets a lock but by [`Locks::reclaim`]. With `are_denials_missing`, nobody makes a use of a
    /// file without an open, either: a client may reclaim an open that denies it.
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

    /// The world is told from now on when it has to call [`Locks::go_on`]. The call must not
    /// wait, and must not ask for locks.
    pub(crate) fn tell_turns(&self, told: Box<dyn Fn(Nanos) + Send + Sync>) {
        self.on_turns.get_or_init(|| told);
    }

    /// Has the world look again when the turns of a file end.
    fn tell_end_of_turns(&self, table: &Table, file: u64) {
        self.tell(table.files.get(&file).and_then(|it| it.turn_end));
    }

    fn tell(&self, at: Option<Nanos>) {
        if let (Some(at), Some(told)) = (at, self.on_turns.get()) {
            told(at);
        }
    }

    /// Takes a free lock. A waiter passes earlier waiters only if its owner has a lock of the file already: the earlier
    /// ones may need that lock.
    fn take(
        &self,
        table: &mut Table,
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
        let taken = Self::with_room(table, wanted.owner.holder, now, wakers, |table, wakers| {
            table.with(file, |holders, of_file| {
                of_file.queue.expire(now, |holder| holders.is_gone(holder, now), wakers);
                if !of_file.ranges.has(wanted.owner)
                    && let Some(first) = of_file.queue.before(&wanted, waker)
                {
                    return Err(LockRefusal::Held(*first));
                }
                let before = of_file.ranges.len();
                of_file.host.lock(wanted, &of_file.ranges).map_err(|refusal| match refusal {
                    HostRefusal::Held => LockRefusal::Held(of_file.host.in_the_way(&wanted)),
                    HostRefusal::Failed => LockRefusal::Full,
                })?;
                let (room, refusal) = of_file.room(holders, wanted.owner.holder);
                if of_file.ranges.lock(wanted, room) == Err(NoRoom) {
                    of_file.host.follow(wanted.span, &of_file.ranges);
                    return Err(refusal);
                }
                of_file.count(holders, wanted.owner.holder, before);
                holders.add_file(wanted.owner.holder, file);
                if let Some(waker) = waker {
                    of_file.queue.leave(&wanted, waker);
                }
                // A lock that excludes less than before, or the next of those who share.
                let may_be_gone =
                    |behind: &Lock| behind.owner == wanted.owner && behind.span.is_overlapping(wanted.span);
                of_file.queue.give_turns(&of_file.ranges, now, may_be_gone, wakers);
                Ok(())
            })
        });
        self.tell_end_of_turns(table, file);
        taken
    }

    /// Makes a change. If it lacks room, the end of a lapsed holder begins.
    fn with_room(
        table: &mut Table,
        holder: HolderId,
        now: Nanos,
        wakers: &mut Wakers,
        change: impl FnOnce(&mut Table, &mut Wakers) -> Result<(), LockRefusal>,
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

    /// Locks bytes, unless somebody is in the way.
    pub fn lock(&self, file: u64, wanted: Lock, now: Nanos) -> Result<(), LockRefusal> {
        if self.is_in_grace() { Err(LockRefusal::Grace) } else { self.reclaim(file, wanted, now) }
    }

    /// As [`Locks::lock`], also in the grace period: the owner had the lock of an earlier server.
    pub fn reclaim(&self, file: u64, wanted: Lock, now: Nanos) -> Result<(), LockRefusal> {
        let mut wakers = Wakers::new();
        let result = self.take(&mut lock(&self.table), file, wanted, None, now, &mut wakers);
        wake_all(wakers);
        result
    }

    /// As [`Locks::lock`], but a refused owner waits, and is woken when it may ask again. An owner that asks again
    /// keeps its place in the queue. A client elsewhere waits neither for the end of a holder nor for that of the
    /// grace period.
    pub fn lock_or_wait(
        &self,
        file: u64,
        wanted: Lock,
        waker: &Arc<dyn LockWaker>,
        now: Nanos,
    ) -> Result<(), LockRefusal> {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.table);
        let mut result = match self.is_in_grace() {
            true => Err(LockRefusal::Grace),
            false => self.take(&mut table, file, wanted, Some(waker), now, &mut wakers),
        };
        if table.files.get(&file).is_some_and(|it| it.queue.is_in_circle(&wanted, &it.ranges)) {
            result = result.map_err(|_| LockRefusal::Deadlock);
        }
        let is_refused = match result {
            Err(LockRefusal::Held(_)) => true,
            Err(LockRefusal::Ending(_) | LockRefusal::Grace) => waker.is_local(),
            _ => false,
        };
        if is_refused {
            let waits = table.with(file, |holders, it| {
                let group = holders.group(wanted.owner.holder).unwrap_or_default();
                let has_room = holders.has_room_to_wait(&it.queue, group);
                if let Err(LockRefusal::Held(held)) = &result
                    && is_of_program(held)
                    && let Some(host) = it.host.get()
                {
                    host.wake_when_free(wanted.span, wanted.mode, Arc::clone(waker));
                }
                let behind = it.ranges.conflict(&wanted);
                it.queue.try_wait(wanted, Arc::clone(waker), group, (behind, has_room))
            });
            if waits {
                table.holders.add_file(wanted.owner.holder, file);
            }
            if !waits && waker.is_local() {
                // Nobody would wake it.
                result = Err(LockRefusal::Full);
            }
        }
        drop(table);
        wake_all(wakers);
        result
    }

    /// An owner that has waited at an earlier server goes on waiting, behind those who are here. The next
    /// [`Locks::tick`] gives turns.
    pub fn wait_again(&self, file: u64, wanted: Lock, waker: Arc<dyn LockWaker>) {
        let mut table = lock(&self.table);
        let waits = table.with(file, |holders, of_file| {
            let group = holders.group(wanted.owner.holder).unwrap_or_default();
            let has_room = holders.has_room_to_wait(&of_file.queue, group);
            of_file.queue.try_wait(wanted, waker, group, (None, has_room))
        });
        if waits {
            table.holders.add_file(wanted.owner.holder, file);
        }
    }

    /// An owner elsewhere waits for no bytes of a file any more.
    pub fn stop_waiting(&self, file: u64, owner: LockOwner, now: Nanos) {
        self.stop_waits(file, owner.holder, |wanted, _| wanted.owner == owner, now);
    }

    /// Nobody elsewhere waits with an open any more.
    pub fn stop_waiting_with(&self, file: u64, open: (HolderId, u64), now: Nanos) {
        self.stop_waits(file, open.0, |wanted, with| (wanted.owner.holder, with) == open, now);
    }

    /// Waiting owners of a holder elsewhere leave the queue. Others have their turns.
    fn stop_waits(&self, file: u64, holder: HolderId, is_meant: impl Fn(&Lock, u64) -> bool, now: Nanos) {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.table);
        if table.files.get(&file).is_none_or(|it| it.queue.len() == 0) {
            return;
        }
        table.with(file, |_, of_file| {
            of_file.queue.leave_all(is_meant);
            of_file.queue.give_turns(&of_file.ranges, now, |_| false, &mut wakers);
        });
        table.settle(file, holder);
        self.tell_end_of_turns(&table, file);
        drop(table);
        wake_all(wakers);
    }

    /// One does not wait any more.
    pub(crate) fn leave(&self, file: u64, wanted: &Lock, waker: &Arc<dyn LockWaker>, now: Nanos) {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.table);
        table.with(file, |_, of_file| {
            of_file.queue.leave(wanted, waker);
            of_file.queue.give_turns(&of_file.ranges, now, |_| false, &mut wakers);
        });
        table.settle(file, wanted.owner.holder);
        self.tell_end_of_turns(&table, file);
        drop(table);
        wake_all(wakers);
    }

    /// The lock that is in the way of this one.
    pub fn conflict(&self, file: u64, wanted: &Lock, now: Nanos) -> Option<Lock> {
        let table = lock(&self.table);
        let of_file = table.files.get(&file)?;
        // One that would give way is in nobody's.
        let is_there = |owner: &LockOwner| !table.holders.is_gone(owner.holder, now);
        of_file.ranges.conflict_of(wanted, is_there).or_else(|| of_file.host.conflict(wanted))
    }

    /// From now on programs of the host see the locks: front ends ask for a file's place there before they lock.
    pub fn show_on_host(&self) {
        self.is_on_host.store(true, Ordering::Relaxed);
    }

    /// Whether programs of the host see the locks.
    pub fn are_on_host(&self) -> bool {
        self.is_on_host.load(Ordering::Relaxed)
    }

    /// The place of a file's locks on the host, once it is made.
    pub(crate) fn host_of(&self, file: u64) -> Option<Arc<dyn HostLocks>> {
        lock(&self.table).files.get(&file)?.host.get().cloned()
    }

    /// Gives a file's locks a place on the host. Returns the file's place, the earlier one if it was made before.
    pub(crate) fn host_begins(&self, file: u64, host: Arc<dyn HostLocks>) -> Arc<dyn HostLocks> {
        lock(&self.table).with(file, |_, of_file| match of_file.host.get() {
            Some(known) => Arc::clone(known),
            None => {
                of_file.host.begin(Arc::clone(&host), &of_file.ranges);
                host
            }
        })
    }

    /// Unlocks bytes. One who waits for them elsewhere does not any more.
    pub fn unlock(&self, file: u64, owner: LockOwner, span: Span, now: Nanos) -> Result<(), LockRefusal> {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.table);
        let result = Self::with_room(&mut table, owner.holder, now, &mut wakers, |table, wakers| {
            table.with(file, |holders, of_file| {
                of_file.queue.leave_all(|wanted, _| wanted.owner == owner && wanted.span.is_overlapping(span));
                let before = of_file.ranges.len();
                let (room, refusal) = of_file.room(holders, owner.holder);
                let result = of_file.ranges.unlock(owner, span, room).map_err(|NoRoom| refusal);
                of_file.host.follow(span, &of_file.ranges);
                of_file.count(holders, owner.holder, before);
                let may_be_gone = |behind: &Lock| behind.owner == owner && behind.span.is_overlapping(span);
                of_file.queue.give_turns(&of_file.ranges, now, may_be_gone, wakers);
                result
            })
        });
        table.settle(file, owner.holder);
        self.tell_end_of_turns(&table, file);
        drop(table);
        wake_all(wakers);
        result
    }

    /// Whether an owner has any lock of a file.
    pub fn has(&self, file: u64, owner: LockOwner) -> bool {
        lock(&self.table).files.get(&file).is_some_and(|it| it.ranges.has(owner))
    }

    /// The locks of an owner of a file.
    pub fn ranges_of(&self, file: u64, owner: LockOwner) -> Vec<(Span, LockMode)> {
        let table = lock(&self.table);
        let ranges = table.files.get(&file).into_iter().flat_map(|it| it.ranges.of(owner));
        ranges.map(|held| (held.span, held.mode)).collect()
    }

    /// The number of locks of an owner of a file.
    pub fn count_of(&self, file: u64, owner: LockOwner) -> usize {
        lock(&self.table).files.get(&file).map_or(0, |it| it.ranges.count(owner))
    }

    /// Opens a file with a share, or gives an open another one, unless somebody's share is in the way.
    pub fn share(&self, file: u64, open: (HolderId, u64), share: Share, now: Nanos) -> Result<(), ShareRefusal> {
        let mut table = lock(&self.table);
        table.check_shares(file, Some(open), share, now)?;
        let before = table.with(file, |_, of_file| of_file.shares.set(open, share));
        table.holders.add_file(open.0, file);
        let denied = before.is_some_and(|share| share.deny != 0);
        self.denying.fetch_add(u64::from(share.deny != 0), Ordering::Relaxed);
        self.denying.fetch_sub(u64::from(denied), Ordering::Relaxed);
        Ok(())
    }

    /// Checks that no share excludes the wanted one. An open is not in its own way. The end of a lapsed holder
    /// that is in the way begins.
    pub fn check_share(
        &self,
        file: u64,
        open: Option<(HolderId, u64)>,
        share: Share,
        now: Nanos,
    ) -> Result<(), ShareRefusal> {
        lock(&self.table).check_shares(file, open, share, now)
    }

    /// As [`Locks::check_share`], for a use of a file without an open of version 4. In the grace period a client may
    /// still reclaim an open that denies such a use.
    pub fn check_use(&self, file: u64, access: u8, now: Nanos) -> Result<(), ShareRefusal> {
        if self.is_denied_in_grace.load(Ordering::Relaxed) {
            return Err(ShareRefusal::Grace);
        }
        self.check_share(file, None, Share { access, deny: 0 }, now)
    }

    /// Ends the share of an open.
    pub fn end_share(&self, file: u64, open: (HolderId, u64)) {
        let mut table = lock(&self.table);
        let ended = table.with(file, |_, of_file| of_file.shares.end(open));
        table.settle(file, open.0);
        if ended.is_some_and(|share| share.deny != 0) {
            self.denying.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether any open denies anything of any file, or a client may reclaim such an open.
    pub fn has_denials(&self) -> bool {
        self.denying.load(Ordering::Relaxed) > 0 || self.is_denied_in_grace.load(Ordering::Relaxed)
    }

    /// Called every few seconds: ends untaken turns, and begins the end of lapsed holders where owners wait. The world
    /// goes on with the files for which the call is too short.
    pub fn tick(&self, now: Nanos) {
        lock(&self.table).due_from.get_or_insert(0);
        self.go_on(now);
    }

    /// Called at the time that the world was told: ends turns that are over by then, and goes on with a tick.
    pub(crate) fn go_on(&self, now: Nanos) {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.table);
        let mut left = WAITERS_A_LOOK;
        while left > 0
            && let Some(file) = table.next_due(now)
        {
            left = left.saturating_sub(table.look_at(file, now, &mut wakers));
        }
        self.tell(table.next_look(now));
        drop(table);
        wake_all(wakers);
    }

    /// The locks of each holder that has or wants some.
    pub fn held(&self) -> Vec<HeldBy> {
        let table = lock(&self.table);
        let mut rows: BTreeMap<HolderId, HeldBy> = BTreeMap::new();
        for (holder, it, ranges) in table.holders.all() {
            rows.insert(holder, HeldBy { holder, name: it.name(), ranges, denying: 0, waiting: 0 });
        }
        for of_file in table.files.values() {
            for ((holder, _), _) in of_file.shares.iter().filter(|it| it.1.deny != 0) {
                rows.entry(*holder).and_modify(|row| row.denying += 1);
            }
            for holder in of_file.queue.holders() {
                rows.entry(holder).and_modify(|row| row.waiting += 1);
            }
        }
        rows.into_values().filter(|row| row.ranges + row.denying + row.waiting > 0).collect()
    }
}

fn wake_all(wakers: Wakers) {
    wakers.iter().for_each(|waker| waker.wake());
}

#[cfg(test)]
mod tests;
