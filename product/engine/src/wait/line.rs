//! A line before a gate: grants a limited resource in order of asking.
//!
//! Owns: the line, its order, the waiting.
//! Does not own: the unit of a gate and when an amount fits (`dirty` has one in cost units).
//! Invariants: nobody passes while a task waits. A waiter that leaves the line gives back a grant that it has not
//! taken, and the tasks behind it move up.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{self, Mutex, MutexGuard};

/// A gate, which admits amounts.
pub(crate) trait Gate {
    /// Why waiters are sent away.
    type Refusal: Copy;

    /// Whether the amount fits now.
    fn fits(&self, amount: u64) -> bool;

    /// The amount has entered.
    fn enter(&mut self, amount: u64);

    /// The amount has entered from the line, with others at the same moment.
    fn enter_from_line(&mut self, amount: u64) {
        self.enter(amount);
    }

    /// The amount was given back.
    fn leave(&mut self, amount: u64);

    /// Nobody waits now.
    fn line_is_empty(&mut self) {}
}

/// A gate and the tasks that wait before it.
pub(crate) struct Line<G: Gate> {
    state: Mutex<LineState<G>>,
    waiting: AtomicUsize,
}

struct LineState<G: Gate> {
    gate: G,
    queue: VecDeque<LineEntry<G::Refusal>>,
    next_ticket: u64,
}

struct LineEntry<E> {
    ticket: u64,
    amount: u64,
    waker: Waker,
    outcome: Option<Result<(), E>>,
}

impl<G: Gate> LineState<G> {
    /// Answered tasks may still be in the line, but no longer count.
    fn nobody_waits(&self) -> bool {
        self.queue.iter().all(|waiting| waiting.outcome.is_some())
    }

    fn try_enter(&mut self, amount: u64) -> bool {
        let free = self.gate.fits(amount) && self.nobody_waits();
        if free {
            self.gate.enter(amount);
        }
        free
    }

    /// Grants from the front as far as the amounts fit.
    #[inline]
    fn grant(&mut self) -> Vec<Waker> {
        if self.queue.is_empty() {
            self.gate.line_is_empty();
            return Vec::new();
        }
        self.grant_line()
    }

    fn grant_line(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        for waiting in self.queue.iter_mut().filter(|waiting| waiting.outcome.is_none()) {
            if !self.gate.fits(waiting.amount) {
                break;
            }
            self.gate.enter_from_line(waiting.amount);
            waiting.outcome = Some(Ok(()));
            woken.push(waiting.waker.clone());
        }
        self.settle();
        woken
    }

    fn settle(&mut self) {
        if self.nobody_waits() {
            self.gate.line_is_empty();
        }
    }
}

impl<G: Gate> Line<G> {
    pub(crate) fn before(gate: G) -> Self {
        let state = LineState { gate, queue: VecDeque::new(), next_ticket: 0 };
        Self { state: Mutex::new(state), waiting: AtomicUsize::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, LineState<G>> {
        sync::lock(&self.state)
    }

    /// Takes `amount` if it fits and nobody waits.
    pub(crate) fn try_take(&self, amount: u64) -> bool {
        self.state().try_enter(amount)
    }

    /// Changes the gate, and takes `amount` if it fits then and nobody waits.
    pub(crate) fn try_take_after(&self, amount: u64, change: impl FnOnce(&mut G)) -> bool {
        let mut state = self.state();
        change(&mut state.gate);
        let taken = state.try_enter(amount);
        state.settle();
        taken
    }

    /// Takes `amount` past the line if the gate admits it for another reason.
    pub(crate) fn try_pass(&self, amount: u64, may: impl FnOnce(&G) -> bool) -> bool {
        let mut state = self.state();
        let passes = may(&state.gate);
        if passes {
            state.gate.enter(amount);
        }
        passes
    }

    /// Takes `amount` even if it does not fit: for work that must go on.
    pub(crate) fn force(&self, amount: u64) {
        self.state().gate.enter(amount);
    }

    /// Waits for `amount` in turn; fails if [`Line::fail`] is called meanwhile.
    pub(crate) fn take(&self, amount: u64) -> Take<'_, G> {
        Take { line: self, amount, ticket: None }
    }

    pub(crate) fn give_back(&self, amount: u64) {
        self.change(|gate| gate.leave(amount));
    }

    /// Changes the gate; admits waiters that fit then.
    pub(crate) fn change(&self, change: impl FnOnce(&mut G)) {
        let woken = {
            let mut state = self.state();
            change(&mut state.gate);
            state.grant()
        };
        wake(woken);
    }

    /// A change that affects only later calls.
    pub(crate) fn adjust(&self, change: impl FnOnce(&mut G)) {
        change(&mut self.state().gate);
    }

    /// Looks at the gate.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&G) -> T) -> T {
        look(&self.state().gate)
    }

    /// Fails all waits of this moment.
    pub(crate) fn fail(&self, error: G::Refusal) {
        let woken: Vec<Waker> = {
            let mut state = self.state();
            let left = state.queue.iter_mut().filter(|waiting| waiting.outcome.is_none());
            left.map(|waiting| {
                waiting.outcome = Some(Err(error));
                waiting.waker.clone()
            })
            .collect()
        };
        wake(woken);
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

fn wake(wakers: Vec<Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

pub(crate) struct Take<'a, G: Gate> {
    line: &'a Line<G>,
    amount: u64,
    ticket: Option<u64>,
}

impl<G: Gate> Future for Take<'_, G> {
    type Output = Result<(), G::Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let line = self.line;
        let mut state = line.state();
        let Some(ticket) = self.ticket else {
            if state.try_enter(self.amount) {
                return Poll::Ready(Ok(()));
            }
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            let waker = cx.waker().clone();
            state.queue.push_back(LineEntry { ticket, amount: self.amount, waker, outcome: None });
            line.waiting.fetch_add(1, Ordering::Relaxed);
            self.ticket = Some(ticket);
            return Poll::Pending;
        };
        let Some(at) = state.queue.iter().position(|waiting| waiting.ticket == ticket) else {
            return Poll::Pending;
        };
        match state.queue[at].outcome {
            Some(outcome) => {
                state.queue.remove(at);
                line.waiting.fetch_sub(1, Ordering::Relaxed);
                self.ticket = None;
                Poll::Ready(outcome)
            }
            None => {
                state.queue[at].waker.clone_from(cx.waker());
                Poll::Pending
            }
        }
    }
}

impl<G: Gate> Drop for Take<'_, G> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let woken = {
            let mut state = self.line.state();
            let at = state.queue.iter().position(|waiting| waiting.ticket == ticket);
            if let Some(waiting) = at.and_then(|at| state.queue.remove(at)) {
                self.line.waiting.fetch_sub(1, Ordering::Relaxed);
                if matches!(waiting.outcome, Some(Ok(()))) {
                    state.gate.leave(waiting.amount);
                }
            }
            state.grant()
        };
        wake(woken);
    }
}
