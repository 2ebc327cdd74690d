//! A device that returns written bytes only after a flush, like an object store.

//! rule: a page stays while it could not be read back
//! kept in: `product/engine/src/reclaim.rs`

use std::ops::Range;
use std::sync::{Arc, Mutex};

use afflux_engine::{Device, Limits, Operation, Request};
use afflux_simulator::{Disk, DiskOptions};

use crate::fixture::{EngineFixture, PAGE, SECOND, bytes};

/// Forwards all requests, and counts reads of bytes written since the last flush.
struct Store {
    disk: Arc<Disk>,
    limits: Limits,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    unflushed: Vec<Range<u64>>,
    early_reads: u64,
}

impl Device for Store {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        let mut seen = self.seen.lock().unwrap();
        match request.operation() {
            Operation::Write { offset, len } => seen.unflushed.push(offset..offset + u64::from(len)),
            Operation::Read { offset, len } => {
                let overlaps = |range: &Range<u64>| range.start < offset + u64::from(len) && offset < range.end;
                seen.early_reads += u64::from(seen.unflushed.iter().any(overlaps));
            }
            Operation::Sync => seen.unflushed.clear(),
            _ => {}
        }
        drop(seen);
        self.disk.submit(request);
    }

    fn free_bytes_hint(&self) -> u64 {
        self.disk.free_bytes_hint()
    }
}

/// Early reads of a run in which a file larger than the cache is written and read back.
fn early_reads(readable_before_flush: bool) -> u64 {
    let lab = EngineFixture::new(1, 64, &[DiskOptions::default()], &[]);
    let disk = Arc::clone(&lab.here.disks[0]);
    let limits = Limits { readable_before_flush, ..disk.limits().clone() };
    let store = Arc::new(Store { disk: Arc::clone(&disk), limits, seen: Mutex::default() });
    let device = lab.here.engine.add_device("store", Arc::clone(&store) as Arc<dyn Device>);
    let id = disk.create_file();
    let file = lab.here.engine.open(device, disk.backing(id), 0);
    let began = lab.here.now_ns();
    lab.run(async {
        let mut page = vec![0; PAGE];
        for at in (0..200).map(|page| page * PAGE as u64) {
            lab.here.engine.write(&file, at, &bytes(1, at, PAGE)).await.unwrap();
        }
        for at in (0..200).map(|page| page * PAGE as u64) {
            lab.here.engine.read(&file, at, &mut page).await.unwrap();
            assert_eq!(page, bytes(1, at, PAGE), "at {at}");
        }
    });
    assert!(lab.here.now_ns() - began < 10 * SECOND, "a reader that finds no frame has the store flushed");
    store.seen.lock().unwrap().early_reads
}

#[test]
fn what_cannot_be_read_back_before_a_flush_stays_until_then() {
    assert_eq!(early_reads(false), 0);
    assert!(early_reads(true) > 0, "on another device these pages go as soon as they are written");
}
