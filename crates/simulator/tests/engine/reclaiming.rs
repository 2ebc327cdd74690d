//! Reclaim: every clean page can go, and soon.

use std::sync::Arc;

use engine::Policies;
use engine::eviction::EvictionKind;
use simulator::DiskOptions;

use crate::lab::{Lab, MILLISECOND, PAGE, SECOND};

#[test]
fn a_page_that_was_completed_while_the_hand_passed_can_be_evicted() {
    let slow = DiskOptions { latency_ns: 100 * MILLISECOND, ..DiskOptions::default() };
    // The policy that lets go of every page that was used once: others keep some for good.
    let policies = Policies { eviction: EvictionKind::TwoList, ..Policies::default() };
    let lab = Lab::with_policies(1, 64, &[slow, DiskOptions::default()], &["readahead_bytes_max=0"], policies);
    let (partial, other) = (lab.file(0, 8 * PAGE, 1), lab.file(1, 500 * PAGE, 1));
    lab.run(async {
        for page in 0..8 {
            lab.here.write(&partial, page * PAGE as u64, 512, 2).await.unwrap();
        }
        lab.here.sync(&partial).await.unwrap();
    });
    for page in 0..8 {
        let (here, from) = (Arc::clone(&lab.here), partial.clone());
        lab.beside(async move { drop(here.read(&from, page * PAGE as u64, PAGE).await.unwrap()) });
    }
    let pass_over_all = async || {
        for page in 0..500 {
            lab.here.read(&other, page * PAGE as u64, PAGE).await.unwrap();
        }
    };
    lab.run(async {
        // The rest of each page is under way meanwhile.
        lab.here.sleep(MILLISECOND).await;
        pass_over_all().await;
        lab.here.sleep(SECOND).await;
        pass_over_all().await;
    });
    let mut into = [0; PAGE];
    let here = |page: u64, into: &mut [u8]| lab.here.engine.try_read(&partial.file, page * PAGE as u64, into).is_some();
    let left = (0..8).filter(|page| here(*page, &mut into)).count();
    assert_eq!(left, 0, "pages stay though all others were evicted twice over");
}

#[test]
fn a_reader_does_not_sleep_while_there_are_pages_to_look_at() {
    let lab = Lab::new(1, 8192, &[DiskOptions::default()], &["readahead_bytes_max=0"]);
    let (used, new) = (lab.file(0, 8000 * PAGE, 1), lab.file(0, 300 * PAGE, 1));
    lab.run(async {
        for _ in 0..3 {
            for at in (0..8000).step_by(50) {
                lab.here.read(&used, at * PAGE as u64, 50 * PAGE).await.unwrap();
            }
        }
        let started = lab.here.now_ns();
        for page in 0..300 {
            lab.here.read(&new, page * PAGE as u64, PAGE).await.unwrap();
        }
        let took = lab.here.now_ns() - started;
        assert!(took < 50 * MILLISECOND, "300 pages took {took} ns of a disk that needs 43 ms");
    });
}
