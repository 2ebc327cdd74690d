//! A number of equal items, such as a device's requests. They are taken and given back without a lock while nobody
//! waits for them, and granted in order of asking otherwise.
//!
//! Owns: the count, the waiters. Does not own: the meaning of a permit.
//! Invariants: nobody passes while a task waits: the count's mark for waiters is set before a waiter looks the last
//! time. Both the mark and the line change with the line's lock held. A waiter that leaves the line gives back a grant
//! that it has not taken. Nobody is ever refused.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::slots::WaitSlots;
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
    /// least `least`, and so that twice as many are left as the task then has. If nobody else has any: all of `most`,
    /// if they are free. None while a task waits.
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

    /// Waits for `amount` in turn.
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
