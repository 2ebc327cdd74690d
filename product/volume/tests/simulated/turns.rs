//! Turns of owners that wait for a lock, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::{Nanos, Platform};
use afflux_simulator::TreeOptions;
use afflux_volume::{Lock, LockFamily, LockHolder, LockMode, LockOwner, LockWaker, Span};
use futures_util::future::join;

use crate::clients::VolumeFixture;

struct Holder;

impl LockHolder for Holder {
    fn has_lapsed(&self, _: Nanos) -> bool {
        false
    }

    fn try_revoke(&self, _: Nanos) -> bool {
        false
    }

    fn name(&self) -> String {
        "holder".to_owned()
    }
}

/// A client elsewhere that is told and never asks.
#[derive(Default)]
struct Silent(AtomicU64);

impl LockWaker for Silent {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn open(&self) -> Option<u64> {
        Some(1)
    }
}

// rule: a grant that its owner misses ends by its own timer, whether or not an upkeep of the volume runs
#[test]
fn a_missed_turn_ends_by_its_own_timer() {
    let lab = VolumeFixture::new(1, TreeOptions::default());
    let (locks, platform) = (lab.volume.locks(), Arc::clone(lab.volume.engine().platform()));
    let owner = |number| {
        let owner = LockOwner { holder: locks.register(Arc::new(Holder), number), number, family: LockFamily::Single };
        Lock { owner, span: Span::WHOLE, mode: LockMode::Exclusive, process: 0 }
    };
    let (held, silent, living) = (owner(1), owner(2), owner(3));
    let told = Arc::new(Silent::default());
    let waker: Arc<dyn LockWaker> = Arc::clone(&told) as _;
    for turns in 1..3 {
        locks.lock(5, held, platform.now()).unwrap();
        locks.lock_or_wait(5, silent, &waker, platform.now()).unwrap_err();
        let wait = async {
            let free = async {
                platform.sleep_until(platform.now().after(Nanos::SECOND)).await;
                locks.unlock(5, held.owner, Span::WHOLE, platform.now()).unwrap();
                platform.now()
            };
            let (taken, freed) = join(lab.volume.lock_in_order(5, living), free).await;
            taken.unwrap();
            platform.now().0 - freed.0
        };
        let waited_ns = lab.run(wait);
        assert_eq!(told.0.load(Ordering::Relaxed), turns);
        assert!(waited_ns <= Nanos::SECOND / 2, "{waited_ns} ns");
        locks.unlock(5, living.owner, Span::WHOLE, platform.now()).unwrap();
    }
}
