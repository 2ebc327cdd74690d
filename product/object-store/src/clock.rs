//! The clock of an open volume.
//!
//! Owns: the reading of the host's clocks, waits.
//! Does not own: the meaning of the times.
//! Invariants: `now_ns` goes on while the machine sleeps. A wait never ends early.

use std::sync::Arc;
use std::time::Duration;

use afflux_object::Clock;
use rustix::time::{ClockId, clock_gettime};
use slatedb_common::clock::SystemClock;

use crate::threads::Threads;

/// The runtime's timers stop while the machine sleeps, so a long wait looks at the clock once in this time.
const LONGEST_TIMER_NS: u64 = 1_000_000_000;

/// The time of the adapters: the host's, or a test's.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    pub(crate) now_ns: fn() -> u64,
    /// A clock and a seed for the database, which has the host's without them.
    pub(crate) replay: Option<(Arc<dyn SystemClock>, u64)>,
}

impl Time {
    pub(crate) fn of_host() -> Self {
        Self { now_ns, replay: None }
    }
}

/// A clock that counts the sleep of the machine.
#[derive(Clone, Debug)]
pub struct StoreClock {
    pub(crate) threads: Threads,
}

impl Clock for StoreClock {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn wall_ns(&self) -> u64 {
        read_ns(ClockId::Realtime)
    }

    async fn sleep_until_ns(&self, at_ns: u64) {
        let wait = async move {
            while let Some(left_ns) = at_ns.checked_sub(now_ns()).filter(|left_ns| *left_ns > 0) {
                tokio::time::sleep(Duration::from_nanos(left_ns.min(LONGEST_TIMER_NS))).await;
            }
        };
        if self.threads.run(wait).await.is_err() {
            // The runtime ended: nothing may go on as if the time had passed.
            std::future::pending::<()>().await;
        }
    }
}

fn now_ns() -> u64 {
    read_ns(ClockId::Boottime)
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)).unwrap_or(0)
}
