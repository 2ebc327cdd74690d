//! The engine's `Platform` in virtual time.
//!
//! Owns: the counters of this world.
//! Does not own: the executor, which it passes everything on to.
//! Invariants: what it answers depends on the seed and on what was asked before, on nothing else.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use engine::counters::{Counters, Local};
use engine::{Nanos, Platform, WallNanos};

use super::Shared;
use super::timer::Sleep;

/// Looks at the clock or the counters in one step after which the step is taken to never end.
const LOOKS_MAX: u64 = 60_000;
/// The wall clock at virtual time 0: 2026-01-01 00:00 UTC.
const WALL_START_NS: i128 = 1_767_225_600_000_000_000;

static WORLDS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The counter block of the world that this thread ran last.
    static LOCAL: Cell<Option<(u64, &'static Local)>> = const { Cell::new(None) };
}

/// One virtual CPU's view of a world.
pub struct SimPlatform {
    shared: Arc<Shared>,
    counters: Counters,
    /// Tells this world's counter block from another's on the same thread; not part of any trace.
    world: u64,
}

impl SimPlatform {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, counters: Counters::new(), world: WORLDS.fetch_add(1, Ordering::Relaxed) }
    }

    fn look(&self) {
        let looks = self.shared.looks.fetch_add(1, Ordering::Relaxed);
        if looks >= LOOKS_MAX {
            // What is dropped on the way out may look again.
            self.shared.looks.store(0, Ordering::Relaxed);
            panic!("one step has looked at the clock or counters {looks} times: it does not end");
        }
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
        self.shared.spawn(name, Box::pin(task));
    }

    fn preemption_point(&self) -> impl Future<Output = ()> + Send + 'static {
        Yield(false)
    }

    fn local(&self) -> &Local {
        self.look();
        if let Some((world, local)) = LOCAL.get()
            && world == self.world
        {
            return local;
        }
        // A block is not `Sync`, and what the platform lends must outlive this call: the thread
        // keeps it for ever. That is some 250 bytes for each change of worlds on a thread.
        let local: &'static Local = Box::leak(Box::new(Local::new(&self.counters)));
        LOCAL.set(Some((self.world, local)));
        local
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

struct Yield(bool);

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
