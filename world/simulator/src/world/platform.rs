//! The engine's `Platform` in virtual time.
//!
//! Owns: the additions of a simulated world: CPU time charged by hand, calls at an instant.
//! Does not own: the executor, to which it forwards every call.
//! Invariants: its answers depend only on the seed and the calls before.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use afflux_engine::counters::{Counters, Local};
use afflux_engine::{Nanos, Platform, WallNanos};

use super::Shared;
use super::task::TaskUsage;
use super::timer::Sleep;

/// Reads of the clock or the counters within one step after which the step counts as endless: some ten times those of a
/// 1 GiB write in one step.
const LOOKS_MAX: u64 = 4_000_000;
/// The wall clock at virtual time 0: 2026-01-01 00:00 UTC.
const WALL_START_NS: i128 = 1_767_225_600_000_000_000;

/// A world as the engine sees it.
pub struct SimPlatform {
    shared: Arc<Shared>,
}

impl SimPlatform {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    #[inline]
    fn look(&self) {
        // One thread runs a world at a time, so no read-modify-write is needed. It would cost more than everything else
        // here.
        let looks = self.shared.looks.load(Ordering::Relaxed);
        self.shared.looks.store(looks + 1, Ordering::Relaxed);
        if looks >= LOOKS_MAX {
            self.never_ends(looks);
        }
    }

    #[cold]
    fn never_ends(&self, looks: u64) {
        // Destructors that run during the panic may read the clock again.
        self.shared.looks.store(0, Ordering::Relaxed);
        panic!("one step has looked at the clock or counters {looks} times: it does not end");
    }

    /// Adds CPU time to the step, beyond the table of costs; `now` advances at once. In a call at an instant the time
    /// is taken from the CPU that was free first, and `now` does not move. Work longer than a slice belongs in
    /// [`SimPlatform::work`].
    pub fn charge_ns(&self, ns: u64) {
        self.shared.clock.charge(ns);
    }

    /// Computes for `ns` of CPU time; other tasks get their slices in between.
    pub async fn work(&self, ns: u64) {
        let mut left_ns = ns;
        while left_ns > 0 {
            let piece_ns = left_ns.min(self.shared.slice_left_ns());
            self.charge_ns(piece_ns);
            left_ns -= piece_ns;
            // When the work is done the task keeps its CPU, but continues only after the work that other tasks did
            // meanwhile.
            self.shared.preempt(left_ns > 0).await;
        }
    }

    /// Calls `call` at `at`, or now if that instant is past. It runs on no CPU; the seed orders simultaneous calls. If
    /// the world ends before, `call` is dropped uncalled.
    pub fn call_at(&self, at: Nanos, call: impl FnOnce() + Send + 'static) {
        self.shared.call_at(at.0, Box::new(call));
    }

    /// Name and number of the task of the current step. `None` in a call at an instant; number 0 for the future given
    /// to [`World::run`](super::World::run).
    pub fn running_task(&self) -> Option<(&'static str, u64)> {
        self.shared.running_task()
    }

    /// The virtual CPU of the current step.
    pub fn cpu(&self) -> usize {
        self.shared.clock.cpu()
    }

    /// The CPU time of the current step's task so far; all zero outside of a step, and in a world without
    /// [`WorldOptions::cpus`](super::WorldOptions::cpus).
    pub fn task_usage(&self) -> TaskUsage {
        self.shared.task_usage()
    }
}

impl Platform for SimPlatform {
    fn now(&self) -> Nanos {
        self.look();
        Nanos(self.shared.now_ns())
    }

    fn wall_clock(&self) -> WallNanos {
        WallNanos(WALL_START_NS + i128::from(self.shared.now_ns()))
    }

    fn random_u64(&self) -> u64 {
        self.look();
        self.shared.lock().noise.bits()
    }

    fn sleep_until(&self, deadline: Nanos) -> impl Future<Output = ()> + Send + 'static {
        Sleep::new(Arc::clone(&self.shared), deadline.0)
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(name, false, Box::pin(task));
    }

    /// On virtual CPUs a ready task of this kind runs next, but takes no CPU from a task whose slice lasts.
    fn spawn_ahead(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(name, true, Box::pin(task));
    }

    fn preemption_point(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.preempt(true)
    }

    fn between_requests(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.preempt(true)
    }

    /// A completion interrupts a CPU at its instant and is reported at once.
    fn unwatched_ns(&self) -> u64 {
        0
    }

    /// Virtual CPUs run on real threads, one step at a time: each sees all that was done before.
    fn fence_all_threads(&self) -> Option<fn()> {
        Some(|| ())
    }

    fn local(&self) -> &Local {
        self.look();
        self.shared.clock.local()
    }

    fn counters(&self) -> &Counters {
        self.shared.clock.counters()
    }
}

/// Lets other tasks go first; created with `true`, it does nothing.
pub(super) struct Yield(pub(super) bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
