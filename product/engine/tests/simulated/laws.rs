//! The engine's services for a law of throttling, whichever law it is.

//! rule: the engine asks the policy when the policy declared, and obeys it
//! kept in: `product/engine/src/throttle.rs`

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::Policies;
use afflux_engine::counters::Counter;
use afflux_engine::policy::{
    Admission, ChargeBounds, Completed, DevicePolicy, Dirtier, LentMemory, LimitPages, Needs, Pace, Pause, PauseCause,
    View,
};
use afflux_engine::settings::BackgroundBase;
use afflux_simulator::{DiskOptions, OWN_POLICY, Setup};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND};

/// Those of a policy that paces, as the kernels' do.
const NEEDS: Needs = Needs {
    paces: true,
    shared_counters: true,
    memory_guard: true,
    background_base: BackgroundBase::OfMemory,
    ..Needs::NONE
};

/// Decides after every `pages`, and always the same; its background threshold is out of reach.
struct Always {
    pages: u64,
    decision: Admission,
    needs: Needs,
}

impl DevicePolicy for Always {
    /// Pages dirtied since the last decision.
    type Payer = u64;
    type Device = u64;
    type Shared = u64;

    fn name(&self) -> &'static str {
        "always"
    }

    fn pause_ns_max(&self) -> u64 {
        SECOND
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace { payer_pages: self.pages, ..Pace::UNASKED }
    }

    fn allowance_pages(&self, dirtier: &Dirtier, payer: &mut u64, _: &mut u64, _: &mut u64) -> u64 {
        *payer += dirtier.pages;
        assert!(dirtier.cpu < dirtier.cpus, "{dirtier:?}");
        self.pages.saturating_sub(*payer)
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn charge_bounds(&self, _: &View, _: &mut u64) -> ChargeBounds {
        ChargeBounds::UNLIMITED
    }

    fn admit(&self, view: &View, memory: LentMemory<'_, Self>) -> Admission {
        assert!(view.shared.dirty >= view.device().reclaimable && view.shared.cached <= view.memory_pages);
        *memory.shared += std::mem::take(memory.payer);
        memory.pace.unpaid_pages = 0;
        self.decision
    }

    fn completed(&self, view: &View, ends: &[Completed], device: &mut u64, _: &mut u64) {
        *device += ends.iter().map(|done| done.pages).sum::<u64>();
        assert_eq!(*device, view.device().written, "it is told of every page");
    }

    fn is_over_background(&self, _: &View, _: &mut u64, _: &mut u64) -> bool {
        false
    }

    fn slice_bytes(&self, _: &View, _: &mut u64, _: &mut u64) -> u64 {
        16 * PAGE as u64
    }

    fn limits(&self, _: &View, _: &mut u64, _: &mut u64) -> LimitPages {
        LimitPages { dirty: 77, background: 7, bandwidth: Some(6400) }
    }
}

fn lab(pages: u64, decision: Admission, frames: u64, disks: usize) -> EngineFixture {
    lab_with(Always { pages, decision, needs: NEEDS }, frames, disks)
}

fn lab_with(law: Always, frames: u64, disks: usize) -> EngineFixture {
    let disk = DiskOptions { bytes_per_second: 10_000_000, ..DiskOptions::default() };
    let law = Arc::new(law);
    EngineFixture::with_policies(1, frames, &vec![disk; disks], &[], Policies { policy: law, ..Policies::default() })
}

#[test]
fn a_law_is_asked_when_the_allowance_is_used_up_and_its_pauses_are_kept_and_counted() {
    let pause = Pause { ns: 5 * MILLISECOND, cause: PauseCause::Rate };
    let lab = lab(10, Admission::EnterAfter(pause), 1024, 1);
    let file = lab.file(0, 0, 0);
    let began = lab.here.now_ns();
    lab.run(async {
        lab.here.write(&file, 0, 100 * PAGE, 1).await.unwrap();
        let took = lab.here.now_ns() - began;
        assert!((50 * MILLISECOND..51 * MILLISECOND).contains(&took), "{took} ns for ten pauses");
        for at in 0..100 {
            lab.here.write(&file, at * PAGE as u64, PAGE, 2).await.unwrap();
        }
    });
    assert_eq!(lab.count(Counter::BalanceCalls), 10, "overwriting what is dirty asks nobody");
    assert_eq!(lab.count(Counter::BalancePasses), 10);
    let device = lab.here.engine.status().devices[0].clone();
    assert_eq!(device.pauses.len(), 1);
    let row = device.pauses[0];
    assert_eq!((row.cause, row.count, row.waiting), (PauseCause::Rate, 10, 0));
    assert_eq!((row.ns, lab.count(Counter::ThrottleNs)), (10 * row.longest_ns, row.ns));
    let shown = (device.dirty_limit_bytes, device.background_threshold_bytes, device.write_bandwidth_bytes_per_s);
    assert_eq!(shown, (77 * 4096, 7 * 4096, Some(26_214_400)), "what is shown is the law's");
}

#[test]
fn a_call_that_is_paused_again_and_again_has_waited_since_its_first_pause_and_is_one_wait() {
    let pause = Pause { ns: 5 * MILLISECOND, cause: PauseCause::Rate };
    let lab = lab(10, Admission::EnterAfter(pause), 1024, 1);
    let (file, here) = (lab.file(0, 0, 0), Arc::clone(&lab.here));
    let ended = lab.in_background(async move { here.write(&file, 0, 100 * PAGE, 1).await.unwrap() });
    let waits = || lab.here.engine.waits(lab.here.devices[0]).unwrap();
    lab.run(lab.here.sleep(27 * MILLISECOND));
    let one = waits().waiting[0].clone();
    assert!((26 * MILLISECOND..28 * MILLISECOND).contains(&one.ns), "{} ns in the sixth pause", one.ns);
    lab.run(lab.here.sleep(SECOND));
    assert!(ended.load(Ordering::Relaxed));
    let times = waits().times;
    let (throttle, pauses) = (times.calls.throttle, times.pause);
    assert_eq!((throttle.count, throttle.max_ns, pauses.count), (1, 50 * MILLISECOND, 10));
}

#[test]
fn a_write_that_is_not_due_looks_at_nothing_that_devices_share() {
    let needs = Needs { admits: true, paces: false, ..NEEDS };
    let law = lab_with(Always { pages: 1 << 40, decision: Admission::Enter, needs }, 16_384, 2);
    let parts = EngineFixture::with_policies(1, 16_384, &vec![DiskOptions::default(); 2], &[], Policies::default());
    for (name, lab) in [("a law", law), ("equal parts", parts)] {
        let files = [lab.file(0, 0, 0), lab.file(1, 0, 0)];
        let write = async |page: usize| {
            for file in &files {
                lab.here.write(file, (page * PAGE) as u64, PAGE, 1).await.unwrap();
            }
        };
        lab.run(async {
            write(0).await;
            // The flushers are notified of their first file and choose.
            lab.here.sleep(SECOND / 100).await;
            let looks = lab.here.engine.shared_looks();
            assert!(looks > 0, "this build counts");
            // A 16th of the guard's limit, which is half-way between 50 and 100 percent, is divided between the two:
            // 384 pages each.
            for page in 1..=383 {
                write(page).await;
            }
            assert_eq!(lab.here.engine.shared_looks(), looks, "{name}");
            if name == "a law" {
                write(384).await;
                assert_eq!(lab.here.engine.shared_looks(), looks + 2, "each looked at the other");
            }
        });
    }
}

#[test]
fn below_the_ceiling_a_law_is_asked_as_rarely_as_its_kernel_would() {
    const PAGES: usize = 2_000;
    for name in afflux_linux_policies::NAMES {
        let policies = afflux_linux_policies::policy(name).unwrap().policies;
        let knobs = ["dirty_ratio=20", "dirty_background_ratio=10"];
        let lab = EngineFixture::with_policies(1, 65_536, &[DiskOptions::default()], &knobs, policies);
        let file = lab.file(0, 0, 0);
        lab.run(async {
            lab.here.write(&file, (PAGES * PAGE) as u64, PAGE, 1).await.unwrap();
            // The flusher is notified of its first file.
            lab.here.sleep(SECOND / 100).await;
            let looks = lab.here.engine.shared_looks();
            for page in 0..PAGES {
                lab.here.write(&file, (page * PAGE) as u64, PAGE, 1).await.unwrap();
            }
            // The law is asked after 32 pages, and then after 2 to the power of half the logarithm of the 13,107
            // remaining pages: 64.
            let calls = 1 + (PAGES as u64 + 1 - 32) / 64;
            assert_eq!(lab.count(Counter::BalanceCalls), calls, "{name}");
            // It reads the sums of dirty pages and of pages under writeback, and at the law's memory of all devices: at
            // that also before and after each write, since it counts the pages of each CPU.
            assert_eq!(lab.here.engine.shared_looks() - looks, 3 * calls + 2 * PAGES as u64, "{name}");
        });
    }
}

// rule: a decision of the flush budget reads nothing that devices share, and costs no more than its budget
// kept in: `product/engine/src/throttle.rs`
#[test]
fn a_decision_of_the_flush_budget_looks_at_nothing_that_devices_share() {
    let policies = Setup::of(OWN_POLICY).unwrap().policies;
    let lab = EngineFixture::with_policies(1, 16_384, &[DiskOptions::default()], &[], policies);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, PAGE, 1).await.unwrap();
        let looks = lab.here.engine.shared_looks();
        for page in 1..200 {
            lab.here.write(&file, (page * PAGE) as u64, PAGE, 1).await.unwrap();
        }
        assert!(lab.count(Counter::BalancePasses) >= 100, "{} decisions", lab.count(Counter::BalancePasses));
        assert_eq!(lab.here.engine.shared_looks(), looks);
    });
}

// rule: 7: dirty pages leave frames to readers under any policy
// kept in: `product/engine/src/dirty.rs`
#[test]
fn whatever_a_law_says_dirty_pages_leave_frames_to_readers() {
    let lab = lab(1 << 40, Admission::Enter, 512, 1);
    let (file, other) = (lab.file(0, 0, 0), lab.file(0, 64 * PAGE, 9));
    let (here, to) = (Arc::clone(&lab.here), file.clone());
    let ended = lab.in_background(async move {
        for at in 0..4096 {
            here.write(&to, at * PAGE as u64, PAGE, 1).await.unwrap();
        }
    });
    let mut most = 0;
    lab.run(async {
        while !ended.load(Ordering::Relaxed) {
            lab.here.read(&other, 0, 64 * PAGE).await.unwrap();
            most = most.max(lab.here.dirty_bytes() / PAGE as u64);
            assert!(lab.here.now_ns() < 60 * SECOND);
            lab.here.sleep(MILLISECOND).await;
        }
    });
    // The knob says half of 512; the guard is half-way between that and all.
    assert!((256..=384).contains(&most), "{most} pages");
    let causes: Vec<_> = lab.here.engine.status().devices[0].pauses.iter().map(|row| row.cause).collect();
    assert_eq!(causes, [PauseCause::MemoryGuard]);
}

#[test]
fn a_device_that_hangs_leaves_a_third_to_one_that_comes_later() {
    let lab = lab(1 << 40, Admission::Enter, 1024, 2);
    let (stuck, other) = (lab.file(0, 0, 0), lab.file(1, 0, 0));
    lab.here.disks[0].hang();
    let (here, to) = (Arc::clone(&lab.here), stuck.clone());
    let ended = lab.in_background(async move {
        for at in 0..4096 {
            here.write(&to, at * PAGE as u64, PAGE, 1).await.unwrap();
        }
    });
    lab.run(lab.here.sleep(SECOND));
    let of_stuck = lab.here.dirty_bytes() / PAGE as u64;
    assert!(!ended.load(Ordering::Relaxed) && (500..=512).contains(&of_stuck), "{of_stuck}: two thirds of 768");
    lab.run(async {
        for at in 0..2048 {
            lab.here.write(&other, at * PAGE as u64, PAGE, 1).await.unwrap();
        }
        lab.here.sync(&other).await.unwrap();
    });
    lab.here.disks[0].release();
    assert!(lab.run(lab.here.until(20 * SECOND, || ended.load(Ordering::Relaxed))), "and goes on when it can");
}

#[test]
fn a_pause_that_its_writer_leaves_is_over() {
    let pause = Pause { ns: SECOND, cause: PauseCause::Rate };
    let lab = lab(1, Admission::EnterAfter(pause), 256, 1);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        let write = lab.here.write(&file, 0, PAGE, 1);
        futures_either(write, lab.here.sleep(SECOND / 10)).await;
    });
    let row = lab.here.engine.status().devices[0].pauses[0];
    assert_eq!((row.waiting, row.count), (0, 1));
    assert!(row.ns < SECOND / 5, "{row:?}");
}

/// Waits for the first of the two to end; drops the other.
async fn futures_either<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(|cx| {
        if one.as_mut().poll(cx).is_ready() || other.as_mut().poll(cx).is_ready() {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
}
