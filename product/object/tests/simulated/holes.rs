//! Where files have data and holes.

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_simulator::{ObjectContents, Random};
use afflux_volume::Seek;

use crate::fixture::{Inside, KIB, Machine, MachineOptions};

const PAGE: u64 = 4 * KIB as u64;

fn machine() -> Machine {
    Machine::new(&ObjectContents::default(), MachineOptions::default())
}

/// Compares the answers at all pages with the pages that have data.
async fn compare(here: &Inside, ino: u64, data: &BTreeSet<u64>, size: u64) {
    for page in 0..=size {
        let next = |wanted: bool| (page..size).find(|page| data.contains(page) == wanted).map(|page| page * PAGE);
        let seek = async |wanted| here.volume.seek(ino, page * PAGE, wanted).await.unwrap();
        assert_eq!(seek(Seek::Data).await, next(true), "data from page {page} of {size}: {data:?}");
        let hole = (page < size).then(|| next(false).unwrap_or(size * PAGE));
        assert_eq!(seek(Seek::Hole).await, hole, "a hole from page {page} of {size}: {data:?}");
    }
}

// rule: in an object store a seek finds where a file has data, also before its bytes are durable
// kept in: `product/object/src/read.rs`
#[test]
fn seeks_tell_where_a_file_has_data() {
    for seed in 0..20 {
        let machine = machine();
        let (here, mut random) = (Arc::clone(&machine.here), Random::new(seed));
        machine.run(async {
            let (mut data, mut size) = (BTreeSet::new(), 0);
            for _ in 0..40 {
                let (page, pages) = (random.below(32), 1 + random.below(6));
                match random.below(5) {
                    0 | 1 => {
                        let bytes = vec![1; (pages * PAGE) as usize];
                        here.volume.write(1, page * PAGE, bytes.into()).unwrap();
                        data.extend(page..page + pages);
                        size = size.max(page + pages);
                    }
                    2 => {
                        here.volume.punch(1, page * PAGE, pages * PAGE).unwrap();
                        data.retain(|at| !(page..page + pages).contains(at));
                    }
                    3 => {
                        here.volume.set_size(1, page * PAGE).unwrap();
                        data.retain(|at| *at < page);
                        size = page;
                    }
                    _ => here.volume.commit(1).await.unwrap(),
                }
                compare(&here, 1, &data, size).await;
            }
            here.volume.commit(1).await.unwrap();
            compare(&here, 1, &data, size).await;
        });
    }
}

#[test]
fn a_seek_goes_through_many_extents_and_over_the_largest_hole() {
    let contents = ObjectContents::default();
    let largest = i64::MAX as u64;
    let machine = Machine::new(&contents, MachineOptions::default());
    let here = Arc::clone(&machine.here);
    machine.run(async {
        for page in 0..10_000 {
            here.volume.write(1, 2 * page * PAGE, vec![1; 1].into()).unwrap();
        }
        for page in 0..10_000 {
            here.volume.write(2, page * PAGE, vec![1; PAGE as usize].into()).unwrap();
        }
        for ino in [1, 2] {
            here.volume.set_size(ino, largest).unwrap();
        }
        here.volume.close().await.unwrap();
    });
    drop(machine);
    // Nothing of the map is in memory.
    let machine = Machine::new(&contents, MachineOptions::default());
    let here = Arc::clone(&machine.here);
    machine.run(async {
        let seek = async |ino, from, wanted| here.volume.seek(ino, from, wanted).await.unwrap();
        assert_eq!(seek(2, 0, Seek::Hole).await, Some(10_000 * PAGE));
        assert_eq!(seek(2, 10_000 * PAGE, Seek::Data).await, None);
        assert_eq!(seek(1, 19_997 * PAGE, Seek::Data).await, Some(19_998 * PAGE));
        assert_eq!(seek(1, 19_998 * PAGE + 1, Seek::Data).await, None);
        assert_eq!(seek(1, largest - 1, Seek::Hole).await, Some(largest - 1));
        assert_eq!(seek(1, largest, Seek::Hole).await, None);
    });
}
