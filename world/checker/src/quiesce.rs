//! A rest: all remaining tasks stop, and the engine must come to rest.
//!
//! Owns: the meeting of the tasks, the drain, the check that no task holds a page.
//! Does not own: the equations (`Conservation`).
//! Invariants: a rest ends within a bound, even if a task is missing or a disk fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{Nanos, Platform};

use crate::bench::ScenarioBench;
use crate::locking::lock;

/// Most time that a task waits for the others.
const WAIT_NS_MAX: u64 = 5 * Nanos::SECOND;
/// Most time to watch the drained engine: operations that lost their caller may still be in progress.
const SETTLE_NS_MAX: u64 = 2 * Nanos::SECOND;
const LOOK_NS: u64 = 10 * Nanos::MILLISECOND;

/// Makes a task rest. The last one to come drains and checks; the others wait for it, up to a bound.
pub(super) async fn quiesce(bench: &ScenarioBench) {
    let resting = bench.resting.fetch_add(1, Ordering::Relaxed) + 1;
    if resting == bench.tasks_left.load(Ordering::Relaxed) {
        look(bench).await;
        bench.quiesces.fetch_add(1, Ordering::Relaxed);
    } else {
        let (before, until) = (bench.quiesces.load(Ordering::Relaxed), bench.platform.now().after(WAIT_NS_MAX));
        while bench.quiesces.load(Ordering::Relaxed) == before && bench.platform.now() < until {
            bench.sleep_ns(LOOK_NS).await;
        }
    }
    bench.resting.fetch_sub(1, Ordering::Relaxed);
}

fn all_quiesced(bench: &ScenarioBench) -> bool {
    bench.resting.load(Ordering::Relaxed) == bench.tasks_left.load(Ordering::Relaxed)
}

/// Drains and checks. Ends without a check if a disk hangs or a drain fails.
async fn look(bench: &ScenarioBench) {
    if bench.disks.iter().any(|disk| disk.is_hung()) {
        return;
    }
    for device in &bench.devices {
        if !bench.engine.drain(*device).await.is_empty() {
            return;
        }
    }
    let until = bench.platform.now().after(SETTLE_NS_MAX);
    while all_quiesced(bench) && bench.platform.now() < until {
        if is_clean(bench) {
            if let Err(error) = bench.conservation.check_at_rest(&bench.engine) {
                bench.fail(format!("while all tasks rest: {error}"));
            }
            return;
        }
        bench.sleep_ns(LOOK_NS).await;
    }
}

fn is_clean(bench: &ScenarioBench) -> bool {
    let status = bench.engine.status();
    let idle = status.devices.iter().all(|device| device.in_flight == 0 && device.writers_waiting == 0);
    let files = bench.slots.iter().map(|slot| Arc::clone(&lock(slot)));
    idle && status.dirty_bytes == 0 && files.into_iter().all(|shared| shared.file.is_clean())
}
