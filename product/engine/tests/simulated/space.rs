//! Space on the device: a write gets its space before its bytes are accepted, and a refusal concerns only the writer's
//! own file.

//! rule: 6: a file over its quota, or without space, refuses its own writers alone
//! kept in: `product/engine/src/writing/space.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afflux_engine::{DeviceError, Error};
use afflux_simulator::{DiskOptions, Fault, FaultTarget, FaultWhat};

use crate::fixture::{EngineFixture, PAGE, SECOND, TestFile, bytes};

const QUOTA: DeviceError = DeviceError::Quota;
/// Pages of the file that has its blocks.
const PLACED: usize = 64;

/// A disk with plenty of space, and a file with allocated blocks.
fn lab_with_blocks() -> (EngineFixture, TestFile) {
    let lab = EngineFixture::new(1, 4096, &[DiskOptions::default()], &["reserve_below_bytes=64MiB"]);
    let placed = lab.file(0, PLACED * PAGE, 1);
    (lab, placed)
}

/// Other programs fill the disk: this many blocks remain besides the allocated file's.
fn leave(lab: &EngineFixture, blocks: u64) {
    lab.here.disks[0].set_capacity((PLACED as u64 + blocks) * PAGE as u64);
}

#[test]
fn a_file_over_its_quota_refuses_its_own_writers_alone() {
    const WRITERS: usize = 40;
    const DIRTY: usize = 30;
    let (lab, placed) = lab_with_blocks();
    let over = lab.file(0, 0, 0);
    for target in [FaultTarget::Write, FaultTarget::Layout] {
        lab.here.disks[0].add_fault(Fault::always(target, FaultWhat::Error(QUOTA)).on(over.id));
    }
    lab.run(async {
        // Every second page, so that the file's dirty bytes are many ranges.
        for at in 0..DIRTY as u64 {
            lab.here.write(&over, 2 * at * PAGE as u64, PAGE, 2).await.expect("there is plenty of space");
        }
    });
    leave(&lab, 1000);
    let refused = Arc::new(AtomicUsize::new(0));
    let before = lab.submitted(5).len();
    let ended: Vec<_> = (0..WRITERS as u64)
        .map(|writer| {
            let (here, to, refused) = (Arc::clone(&lab.here), placed.clone(), Arc::clone(&refused));
            lab.in_background(async move {
                // One page with a block, and one that needs a new block.
                for at in [writer, PLACED as u64 + writer] {
                    let result = here.write(&to, at * PAGE as u64, PAGE, 3).await;
                    refused.fetch_add(usize::from(result.is_err()), Ordering::Relaxed);
                }
            })
        })
        .collect();
    lab.run(async {
        let all = || ended.iter().all(|ended| ended.load(Ordering::Relaxed));
        assert!(lab.here.until(SECOND, all).await, "a writer waits");
    });
    assert_eq!(refused.load(Ordering::Relaxed), 0, "writers of another file are refused");
    let asked = lab.submitted(5).len() - before;
    assert!(asked <= 2 * WRITERS + DIRTY, "{asked} requests for {WRITERS} writers: each asks for what others did");
    lab.run(async {
        let own = lab.here.write(&over, PAGE as u64, PAGE, 2).await;
        assert_eq!(own, Err(Error::Device(QUOTA)), "its own writer is told");
        lab.here.sync(&placed).await.expect("what was accepted has its room");
        lab.here.disks[0].clear_faults();
        lab.here.write(&over, PAGE as u64, PAGE, 2).await.expect("the quota is larger now");
        lab.here.sync(&over).await.unwrap();
    });
    assert_eq!(over.disk.durable_bytes(over.id, 0, 3 * PAGE), bytes(2, 0, 3 * PAGE));
    assert_eq!(placed.disk.durable_bytes(placed.id, 0, WRITERS * PAGE), bytes(3, 0, WRITERS * PAGE));
}

#[test]
fn on_a_full_disk_writers_that_need_no_blocks_go_on_and_others_are_refused() {
    let (lab, placed) = lab_with_blocks();
    let (waiting, new) = (lab.file(0, 0, 0), lab.file(0, 0, 0));
    lab.run(async { lab.here.write(&waiting, 0, 10 * PAGE, 2).await.expect("there is plenty of space") });
    leave(&lab, 4);
    lab.run(async {
        for at in 0..20 {
            lab.here.write(&placed, at * PAGE as u64, PAGE, 3).await.expect("it has its blocks");
        }
        let no_space = Err(Error::Device(DeviceError::NoSpace));
        // The accepted pages need ten blocks, and four remain.
        assert_eq!(lab.here.write(&waiting, 10 * PAGE as u64, PAGE, 2).await, no_space);
        for at in 0..10 {
            let result = lab.here.write(&new, at * PAGE as u64, PAGE, 4).await;
            assert!(at < 4 || result == no_space, "block {at}: {result:?}");
        }
        lab.here.sync(&placed).await.expect("it has its blocks");
    });
    lab.here.disks[0].set_capacity(1 << 40);
    lab.run(async {
        assert!(lab.here.until(40 * SECOND, || waiting.file.is_clean() && new.file.is_clean()).await);
        lab.here.sync(&waiting).await.unwrap();
    });
    assert_eq!(waiting.disk.durable(waiting.id), bytes(2, 0, 10 * PAGE));
    assert_eq!(placed.disk.durable_bytes(placed.id, 0, 20 * PAGE), bytes(3, 0, 20 * PAGE));
}
