//! A world for counted programs: time moves by a fixed step with each look at the clock.
//!
//! Owns: clock and randomness. All else is the host's world.
//! Invariants: the counted thread looks at no other clock, so a busy and a fast machine count the same. The tests of
//! counts hold this (`tests/counted`).

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::counters::{Counters, Local};
use afflux_engine::{Nanos, Platform, WallNanos};
use afflux_linux_device::LinuxPlatform;

/// Between two looks at the clock.
const STEP_NS: u64 = 5000;

pub(crate) struct Stepped {
    host: LinuxPlatform,
    looks: AtomicU64,
    drawn: AtomicU64,
}

impl Stepped {
    pub(crate) fn new(host: LinuxPlatform) -> Self {
        Self { host, looks: AtomicU64::new(1_000_000), drawn: AtomicU64::new(0) }
    }
}

impl Platform for Stepped {
    fn now(&self) -> Nanos {
        Nanos(STEP_NS * self.looks.fetch_add(1, Ordering::Relaxed))
    }

    fn wall_clock(&self) -> WallNanos {
        WallNanos(i128::from(self.now().0))
    }

    fn random_u64(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
    }

    /// The clock jumps to the deadline if the counted thread sleeps. Others sleep until something else wakes them: a
    /// program ends before anything is late.
    fn sleep_until(&self, deadline: Nanos) -> impl Future<Output = ()> + Send + 'static {
        let is_counted = self.host.may_wait_on_this_thread();
        if is_counted {
            self.looks.fetch_max(deadline.0.div_ceil(STEP_NS), Ordering::Relaxed);
        }
        async move {
            if !is_counted {
                std::future::pending::<()>().await;
            }
        }
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.host.spawn(name, task);
    }

    fn spawn_near(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.host.spawn_near(name, task);
    }

    fn spawn_ahead(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.host.spawn_ahead(name, task);
    }

    fn preemption_point(&self) -> impl Future<Output = ()> + Send + 'static {
        self.host.preemption_point()
    }

    fn may_wait_on_this_thread(&self) -> bool {
        self.host.may_wait_on_this_thread()
    }

    fn unwatched_ns(&self) -> u64 {
        0
    }

    fn fence_all_threads(&self) -> Option<fn()> {
        self.host.fence_all_threads()
    }

    fn local(&self) -> &Local {
        self.host.local()
    }

    fn counters(&self) -> &Counters {
        self.host.counters()
    }
}
