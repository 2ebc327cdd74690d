//! Bytes that no program syncs: when they count as clean.

use afflux_simulator::ObjectContents;

use crate::fixture::{KIB, MILLISECOND, Machine, MachineOptions, SECOND, bytes};

/// Files, each with bytes at some offset.
const FILES: u64 = 5;
const LENGTH: usize = 100 * KIB;

/// Writes without a sync, waits until nothing is dirty, and kills the machine.
fn killed_when_clean(contents: &ObjectContents, is_unsynced_counted: bool) {
    let machine = Machine::new(contents, MachineOptions::default());
    let here = &machine.here;
    machine.run(async {
        let files: Vec<_> = (1..=FILES).map(|ino| here.open(ino, 0)).collect();
        for (file, at) in files.iter().zip(0..) {
            here.write(file, at * 4_096, LENGTH, at).await;
        }
        let began_ns = here.now_ns();
        loop {
            here.sleep(10 * MILLISECOND).await;
            let (dirty, unsynced) = (here.status().dirty_bytes, here.volume.unsynced_bytes());
            assert!(here.now_ns() - began_ns < 90 * SECOND, "{dirty} and {unsynced} bytes wait");
            if dirty == 0 && (!is_unsynced_counted || unsynced == 0) {
                break;
            }
        }
    });
}

fn is_whole(contents: &ObjectContents) -> bool {
    let machine = Machine::new(contents, MachineOptions { seed: 2, ..MachineOptions::default() });
    let here = &machine.here;
    machine.run(async {
        let mut is_whole = true;
        for at in 0..FILES {
            let read = here.volume.read(at + 1, at * 4_096, LENGTH as u64).await.unwrap();
            is_whole &= read == bytes(at, at * 4_096, LENGTH);
        }
        is_whole
    })
}

// rule: Bytes of a volume that count neither as dirty nor as unsynced outlive a kill, though nobody synced them.
#[test]
fn clean_bytes_outlive_a_kill() {
    let contents = ObjectContents::default();
    killed_when_clean(&contents, true);
    assert!(is_whole(&contents));
    // Before, they are counted as unsynced: a kill loses them.
    let contents = ObjectContents::default();
    killed_when_clean(&contents, false);
    assert!(!is_whole(&contents));
}
