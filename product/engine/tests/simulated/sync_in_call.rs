//! Syncs that their callers run themselves.

//! rule: when a caller that runs its own sync goes away, a task goes on with the round, begun or not; a caller runs one
//! round kept in: `product/engine/src/writeback/sync.rs`

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use afflux_engine::rare::Rare;
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, Inside, MILLISECOND, PAGE, SECOND, TestFile, bytes};

const PAGES: usize = 16;

/// A disk on which a sync takes some 80 ms, and a file with dirty pages; each caller of a sync runs it.
fn dirty_file(seed: u64) -> (EngineFixture, TestFile) {
    let disk = DiskOptions { volatile_cache: true, bytes_per_second: 1_000_000, ..DiskOptions::default() };
    let lab = EngineFixture::new(seed, 256, &[disk], &[]);
    assert!(lab.here.engine.try_force_rare(Rare::SyncInCall, 1000));
    let file = lab.file(0, 0, 0);
    lab.run(lab.here.write(&file, 0, PAGES * PAGE, 1)).unwrap();
    (lab, file)
}

/// Syncs the file for at most so long, and goes away then. Returns whether it was synced.
async fn sync_for(here: &Inside, file: &TestFile, ns: u64) -> bool {
    let (mut sync, mut time) = (pin!(here.sync(file)), pin!(here.sleep(ns)));
    let ended = poll_fn(|cx| match sync.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => time.as_mut().poll(cx).map(|()| None),
    });
    let ended = ended.await;
    assert!(matches!(ended, None | Some(Ok(()))), "{ended:?}");
    ended.is_some()
}

#[test]
fn a_caller_that_goes_away_leaves_its_round_to_a_task() {
    for step in 0..12 {
        let (lab, file) = dirty_file(step);
        let (here, other) = (Arc::clone(&lab.here), file.clone());
        // It comes while the first one runs its round, and gets the next.
        let ended = lab.in_background(async move {
            here.sleep(1).await;
            here.write(&other, 0, PAGE, 2).await.unwrap();
            here.sync(&other).await.unwrap();
        });
        lab.run(async {
            sync_for(&lab.here, &file, 2 + step * SECOND / 120).await;
            assert!(lab.here.until(2 * SECOND, || ended.load(Ordering::Relaxed)).await, "step {step}");
        });
        let mut right = bytes(1, 0, PAGES * PAGE);
        right[..PAGE].copy_from_slice(&bytes(2, 0, PAGE));
        assert!(file.disk.durable(file.id) == right, "step {step}");
    }
}

#[test]
fn a_caller_that_goes_away_before_its_turn_leaves_its_round_to_a_task() {
    let mut synced = 0;
    for step in 0..16 {
        let (lab, file) = dirty_file(step);
        // The first one runs a round for some 80 ms; the second one is to run the next, and the third one waits for it.
        let here = Arc::clone(&lab.here);
        let (of_first, of_third) = (file.clone(), file.clone());
        lab.in_background(async move { here.sync(&of_first).await.unwrap() });
        let here = Arc::clone(&lab.here);
        let ended = lab.in_background(async move {
            here.sleep(2 * MILLISECOND).await;
            here.write(&of_third, 0, PAGE, 2).await.unwrap();
            here.sync(&of_third).await.unwrap();
        });
        lab.run(async {
            lab.here.sleep(MILLISECOND).await;
            lab.here.write(&file, 0, PAGE, 3).await.unwrap();
            synced += u64::from(sync_for(&lab.here, &file, (2 + 8 * step) * MILLISECOND).await);
            assert!(lab.here.until(2 * SECOND, || ended.load(Ordering::Relaxed)).await, "step {step}");
        });
        assert!(file.disk.durable(file.id)[..PAGE] == bytes(2, 0, PAGE), "step {step}");
    }
    assert!((1..15).contains(&synced), "{synced} of 16 were synced");
}

#[test]
fn a_caller_runs_no_round_of_others() {
    let (lab, file) = dirty_file(1);
    let mut rounds = Vec::new();
    // Each comes while an earlier one runs.
    for caller in 0..4 {
        let (here, own) = (Arc::clone(&lab.here), file.clone());
        rounds.push(lab.in_background(async move {
            here.sleep((1 + caller) * MILLISECOND).await;
            here.write(&own, 0, PAGE, 3 + caller).await.unwrap();
            here.sync(&own).await.unwrap();
        }));
    }
    lab.run(lab.here.sync(&file)).unwrap();
    assert!(!file.file.is_clean(), "the first sync waited for the next round");
    let all = || rounds.iter().all(|ended| ended.load(Ordering::Relaxed));
    assert!(lab.run(lab.here.until(2 * SECOND, all)));
}
