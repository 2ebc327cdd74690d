//! Models of waiting for other devices' releases, for loom. Loom reports a waiter that nobody wakes as a deadlock.
//!
//! Owns: the models. Does not own: the sums, the queues, the guard's formula.
//! Invariants: no model gives anything back a second time.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use afflux_device::policy::ChargeBounds;
use afflux_pages::units::PageCount;
use loom::future::block_on;
use loom::thread;

use super::super::admission::AdmissionQueue;
use super::*;

/// Two devices that may have two pages together, and have one each.
struct World {
    totals: DirtyTotals,
    second: AdmissionQueue,
}

impl World {
    fn new() -> Self {
        let totals = DirtyTotals::default();
        totals.divide(2, 1);
        totals.hold(DeviceId(0), 1);
        let second = AdmissionQueue::new(Arc::default());
        second.set_bounds(&ChargeBounds::UNLIMITED);
        second.set_guard(PageCount(1));
        // A device without pages gets the pages it asks for.
        second.force(PageCount(1));
        Self { totals, second }
    }

    /// As `dirty::refresh_guard`: the pages that the first device leaves of the two.
    fn refresh(&self) {
        self.second.set_guard(PageCount(2 - self.totals.held()));
    }

    /// As `dirty::uncharge`.
    fn give_back(&self) {
        self.totals.release(DeviceId(0), 1);
        if self.totals.has_waiters() && self.second.waiting() > 0 {
            self.refresh();
        }
    }

    /// As `throttle::admit`.
    async fn charge(&self) {
        let waits = self.totals.waits();
        let mut take = pin!(self.second.take(PageCount(1), 0));
        let granted = std::future::poll_fn(|cx| {
            let granted = take.as_mut().poll(cx);
            if granted.is_pending() {
                waits.fence_queued();
                self.refresh();
            }
            granted
        });
        granted.await;
    }
}

#[test]
fn loom_who_waits_for_another_devices_page_is_told_or_sees_it() {
    afflux_pages::sync::model(|| {
        let world = Arc::new(World::new());
        let writer = Arc::clone(&world);
        let writer = thread::spawn(move || block_on(writer.charge()));
        world.give_back();
        writer.join().unwrap();
    });
}
