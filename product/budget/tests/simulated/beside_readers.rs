//! The flush budget beside readers: it promises wall time, also on a device that has to read meanwhile.

//! rule: a sync of everything takes the promised time beside readers, too
//! kept in: `product/budget/src/policy/device.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_simulator::{Memory, OWN_POLICY, Random, Setup, WorldOptions};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile};

const MIB: u64 = 1 << 20;
/// Size of the file that readers read.
const FILE: u64 = 2 << 30;

fn lab(disk: &str) -> EngineFixture {
    let world = WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(7) };
    let setup = Setup::of(OWN_POLICY).unwrap().with_knobs(&["readahead_bytes_max=0"]).unwrap();
    EngineFixture::on_disk(disk, world, Memory::Stamped(512 * MIB), setup)
}

/// Reads random pages for ever.
fn reader(lab: &EngineFixture, file: &TestFile, seed: u64) {
    let (here, file) = (Arc::clone(&lab.here), file.clone());
    lab.world.spawn("reader", async move {
        let (mut page, mut random) = (vec![0; PAGE], Random::new(seed));
        loop {
            here.engine.read(&file.file, random.below(FILE / PAGE as u64) * PAGE as u64, &mut page).await.unwrap();
        }
    });
}

/// Duration of a sync of everything after a stream has run for so long beside this many readers.
fn sync_ns(disk: &str, seconds: u64, readers: u64) -> u64 {
    let lab = lab(disk);
    let (stream, stop) = (lab.file(0, 0, 0), Arc::new(AtomicBool::new(false)));
    let read = lab.laid_out(FILE);
    (0..readers).for_each(|number| reader(&lab, &read, 100 + number));
    let (here, to, told) = (Arc::clone(&lab.here), stream.clone(), Arc::clone(&stop));
    lab.world.spawn("writer", async move {
        let piece = vec![0; 64 << 10];
        let mut at = 0;
        while !told.load(Ordering::Relaxed) {
            here.engine.write(&to.file, at, &piece).await.unwrap();
            at += piece.len() as u64;
            here.sleep(10_000).await;
        }
    });
    let here = Arc::clone(&lab.here);
    lab.run(async move {
        here.sleep(seconds * SECOND).await;
        stop.store(true, Ordering::Relaxed);
        let began = here.now_ns();
        here.sync(&stream).await.unwrap();
        here.now_ns() - began
    })
}

#[test]
fn a_sync_of_all_takes_what_was_promised_beside_readers() {
    // As many requests as it takes to know the disk's prices.
    for (disk, seconds) in [("disk", 20), ("sata-ssd", 4), ("usb-stick", 20), ("throttled", 10)] {
        for readers in [0, 8, 64] {
            let ns = sync_ns(disk, seconds, readers);
            assert!(ns <= 1200 * MILLISECOND, "{disk} beside {readers}: {} ms", ns / MILLISECOND);
        }
    }
}
