//! The engine's `Platform` in virtual time.
//!
//! Owns: what only a simulated world offers on top: CPU time by hand, calls at an instant.
//! Does not own: the executor, which it passes everything on to.
//! Invariants: what it answers depends on the seed and on what was asked before, on nothing else.

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

/// Looks at the clock or the counters in one step after which the step is taken to never end: some
/// ten times those of a write of 1 GiB in one step.
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
        // One thread runs a world at a time: no read-modify-write is needed, and it would cost more
        // than all else here.
        let looks = self.shared.looks.load(Ordering::Relaxed);
        self.shared.looks.store(looks + 1, Ordering::Relaxed);
        if looks >= LOOKS_MAX {
            self.never_ends(looks);
        }
    }

    #[cold]
    fn never_ends(&self, looks: u64) {
        // What is dropped on the way out may look again.
        self.shared.looks.store(0, Ordering::Relaxed);
        panic!("one step has looked at the clock or counters {looks} times: it does not end");
    }

    /// Adds to the CPU time of the step, beyond what the table of costs says: `now` moves at once. In a
    /// call at an instant it is taken from the CPU that was free first, and `now` stands. What takes
    /// longer than a slice is done in [`SimPlatform::work`].
    pub fn charge_ns(&self, ns: u64) {
        self.shared.clock.charge(ns);
    }

    /// Computes for `ns` of CPU time; others have their slices in between.
    pub async fn work(&self, ns: u64) {
        let mut left_ns = ns;
        while left_ns > 0 {
            let piece_ns = left_ns.min(self.shared.slice_left_ns());
            self.charge_ns(piece_ns);
            left_ns -= piece_ns;
            // Done, it keeps the CPU, but does not go on before what others did meanwhile.
            self.shared.preempt(left_ns > 0).await;
        }
    }

    /// Calls `call` at `at`, or now if that is over: on no CPU, in an order drawn from the seed among
    /// simultaneous ones. It is dropped uncalled when the world ends before.
    pub fn call_at(&self, at: Nanos, call: impl FnOnce() + Send + 'static) {
        self.shared.call_at(at.0, Box::new(call));
    }

    /// Name and number of the task whose step it is: who does what is being done. Nobody in a call at an
    /// instant, and 0 for the future that [`World::run`](super::World::run) was given.
    pub fn running_task(&self) -> Option<(&'static str, u64)> {
        self.shared.running_task()
    }

    /// The virtual CPU that runs the step.
    pub fn cpu(&self) -> usize {
        self.shared.clock.cpu()
    }

    /// What the task whose step it is has had of the CPUs; all zero outside of a step, and in a world
    /// without [`WorldOptions::cpus`](super::WorldOptions::cpus).
    pub fn task_usage(&self) -> TaskUsage {
        self.shared.task_usage()
    }
}

impl Platform for SimPlatform {
    const STAMPED_FRAMES: bool = true;

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

    /// On virtual CPUs it is the next to run whenever it is ready, and takes no CPU from a task whose slice lasts.
    fn spawn_ahead(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(name, true, Box::pin(task));
    }

    fn preemption_point(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.preempt(true)
    }

    fn between_requests(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.preempt(true)
    }

    /// A completion interrupts a CPU at its instant, and is told at once.
    fn unwatched_ns(&self) -> u64 {
        0
    }

    fn local(&self) -> &Local {
        self.look();
        self.shared.clock.local()
    }

    fn counters(&self) -> &Counters {
        self.shared.clock.counters()
    }
}

/// Lets others go first, or, made with `true`, does nothing.
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
