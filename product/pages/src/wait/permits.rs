//! A number of equal items, such as a device's requests: taken and given back without a lock while nobody waits, and
//! granted in order of asking otherwise; and the slots of the tasks that wait.
//!
//! Owns: the count, the order of waiters, the grant to each task until the task takes it, the tasks that check
//! something else first. Does not own: the meaning of a permit, the amounts and the lock of other users of the slots.
//! Invariants: nobody passes while a task waits: the count's mark for waiters is set before a waiter checks the last
//! time. Both the mark and the line change with the line's lock held. Grants are given from the front. A waiter that
//! leaves gives back a grant that it has not taken. Nobody waits for a task that checks something else. Each step
//! takes time in the logarithm of the number of slots (`many_waiters_take_and_leave_their_places_in_any_order`).

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{self, Mutex};

/// In the count: a task waits without a grant.
const WAITED: u64 = 1 << 63;

/// The permits, in one cache line.
#[repr(align(64))]
pub struct Permits {
    /// The number of permits taken, and the mark.
    used: AtomicU64,
    limit: AtomicU64,
    line: Mutex<WaitSlots>,
}

impl Permits {
    /// So many permits, all of them free.
    pub fn new(limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit: AtomicU64::new(limit), line: Mutex::default() }
    }

    /// Takes `amount` if it fits and nobody waits.
    pub fn try_take(&self, amount: u64) -> bool {
        self.try_take_leaving(amount, 0)
    }

    /// As [`Permits::try_take`], but leaves `left` permits to others.
    pub fn try_take_leaving(&self, amount: u64, left: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed).saturating_sub(left);
        let taken = |used: u64| (used & WAITED == 0 && does_fit(used, amount, limit)).then_some(used + amount);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, taken).is_ok()
    }

    /// Takes up to `most` for a task that has `own` of the taken permits; returns how many. If others have some: at
    /// least `least`, and so that twice as many remain as the task then has. If nobody else has any: all of `most`, if
    /// they are free. None while a task waits.
    pub fn try_take_part(&self, least: u64, most: u64, own: u64) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        let share = |used: u64| {
            let left = limit.saturating_sub(used);
            let (wanted, has) = if used > own { (least, left.saturating_sub(2 * own) / 3) } else { (most, left) };
            (has >= wanted).then(|| has.min(most))
        };
        let taken = |used: u64| if used & WAITED == 0 { share(used).map(|share| used + share) } else { None };
        let before = self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, taken);
        before.ok().and_then(share).unwrap_or(0)
    }

    /// Waits for `amount`, first come, first served.
    pub fn take(&self, amount: u64) -> PermitTaking<'_> {
        PermitTaking { permits: self, amount, ticket: None }
    }

    /// Gives permits back. Waiters get them, in order.
    pub fn give_back(&self, amount: u64) {
        let before = self.used.fetch_sub(amount, Ordering::AcqRel);
        debug_assert!(before & !WAITED >= amount, "gave back more than was taken");
        if before & WAITED != 0 {
            self.grant();
        }
    }

    /// Changes the number of permits. Those that were taken stay taken.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
        self.grant();
    }

    /// Whether a task waits without a grant.
    pub fn are_waited_for(&self) -> bool {
        self.used.load(Ordering::Relaxed) & WAITED != 0
    }

    /// Grants from the front as far as the amounts fit.
    fn grant(&self) {
        let woken = self.grant_in(&mut sync::lock(&self.line));
        woken.into_iter().for_each(Waker::wake);
    }

    fn grant_in(&self, line: &mut WaitSlots) -> Vec<Waker> {
        let limit = self.limit.load(Ordering::Relaxed);
        let woken = line.grant(|amount| {
            let granted = |used: u64| does_fit(used & !WAITED, amount, limit).then_some(used + amount);
            self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, granted).is_ok()
        });
        if line.is_nobody_waiting() {
            self.used.fetch_and(!WAITED, Ordering::AcqRel);
        }
        woken
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed) & !WAITED
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        sync::lock(&self.line).count()
    }
}

/// An amount above the limit is admitted alone.
fn does_fit(used: u64, amount: u64, limit: u64) -> bool {
    used == 0 || used + amount <= limit
}

pub struct PermitTaking<'a> {
    permits: &'a Permits,
    amount: u64,
    ticket: Option<u64>,
}

impl Future for PermitTaking<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (permits, amount) = (self.permits, self.amount);
        if self.ticket.is_none() && permits.try_take(amount) {
            return Poll::Ready(());
        }
        let (woken, granted) = {
            let mut line = sync::lock(&permits.line);
            let ticket = *self.ticket.get_or_insert_with(|| line.enter(amount, cx.waker()));
            if line.try_take(ticket, cx.waker()) {
                (Vec::new(), true)
            } else {
                // Permits given back from here on come to the line; earlier ones are seen now.
                permits.used.fetch_or(WAITED, Ordering::AcqRel);
                (permits.grant_in(&mut line), line.try_take(ticket, cx.waker()))
            }
        };
        if granted {
            self.ticket = None;
        }
        woken.into_iter().for_each(Waker::wake);
        if granted { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for PermitTaking<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let woken = {
            let mut line = sync::lock(&self.permits.line);
            if line.take_grant(ticket) {
                self.permits.used.fetch_sub(self.amount, Ordering::AcqRel);
            }
            self.permits.grant_in(&mut line)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Tasks that wait for grants, by ticket and so in order of asking.
#[derive(Default)]
pub struct WaitSlots {
    waiting: BTreeMap<u64, WaitSlot>,
    /// Tasks that check something else before they wait on.
    looking: BTreeMap<u64, WaitSlot>,
    /// Tickets of tasks that have yet to take their grants.
    granted: BTreeSet<u64>,
    tickets: u64,
}

struct WaitSlot {
    amount: u64,
    waker: Waker,
}

impl WaitSlots {
    /// The number of slots, including those of tasks that have yet to take their grants.
    pub fn count(&self) -> usize {
        self.waiting.len() + self.looking.len() + self.granted.len()
    }

    /// Whether no task waits for a grant.
    pub fn is_nobody_waiting(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives a task the last slot; returns its ticket.
    pub fn enter(&mut self, amount: u64, waker: &Waker) -> u64 {
        self.tickets += 1;
        self.waiting.insert(self.tickets, WaitSlot { amount, waker: waker.clone() });
        self.tickets
    }

    /// Grants from the front, as long as `fits` agrees to a task's amount. Returns whom to wake.
    pub fn grant(&mut self, mut fits: impl FnMut(u64) -> bool) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(first) = self.waiting.first_entry()
            && fits(first.get().amount)
        {
            let (ticket, slot) = first.remove_entry();
            self.granted.insert(ticket);
            woken.push(slot.waker);
        }
        woken
    }

    /// Takes the grant to a task, and its slot away. A task without a grant waits on, with this waker. Returns whether
    /// it had one.
    pub fn try_take(&mut self, ticket: u64, waker: &Waker) -> bool {
        if let Some(slot) = self.waiting.get_mut(&ticket).or_else(|| self.looking.get_mut(&ticket)) {
            slot.waker.clone_from(waker);
            return false;
        }
        self.granted.remove(&ticket)
    }

    /// Takes the slot of a task away; returns whether the task had a grant that it did not take.
    pub fn take_grant(&mut self, ticket: u64) -> bool {
        let had_place = self.waiting.remove(&ticket).is_some() || self.looking.remove(&ticket).is_some();
        !had_place && self.granted.remove(&ticket)
    }

    /// Has a task without a grant check something else. It gets none before it calls [`WaitSlots::try_wait_on`].
    /// Returns whom to wake.
    pub fn look(&mut self, ticket: u64) -> Option<Waker> {
        let slot = self.waiting.remove(&ticket)?;
        let waker = slot.waker.clone();
        self.looking.insert(ticket, slot);
        Some(waker)
    }

    /// A task that was to check something else waits again, at its slot. Returns whether it was to check.
    pub fn try_wait_on(&mut self, ticket: u64) -> bool {
        let Some(slot) = self.looking.remove(&ticket) else { return false };
        self.waiting.insert(ticket, slot);
        true
    }

    /// The wakers of all tasks without a grant, from the front.
    pub fn wakers(&self) -> Vec<Waker> {
        self.waiting.values().chain(self.looking.values()).map(|slot| slot.waker.clone()).collect()
    }
}
