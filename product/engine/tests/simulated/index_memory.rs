//! The nodes of indexes are part of the configured memory: they come from the arena and return to it.

//! rule: 7: the index of the pages is part of the configured memory, and gives it back
//! kept in: `product/pages/src/cache/nodes.rs`

use afflux_engine::{Advice, EngineStatus};
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, PAGE, SECOND};

const FRAMES: u64 = 4096;

fn lab() -> EngineFixture {
    EngineFixture::new(1, FRAMES, &[DiskOptions::default()], &["readahead_bytes_max=0"])
}

fn status(lab: &EngineFixture) -> EngineStatus {
    lab.here.engine.status()
}

/// Offsets so far apart that most pages need their own nodes.
fn strewn(at: u64) -> u64 {
    ((at % 50) << 40) + ((at / 50) << 28) + (at % 7) * PAGE as u64
}

#[test]
fn pages_strewn_over_a_file_take_no_memory_beside_the_caches() {
    let lab = lab();
    let file = lab.laid_out(0);
    file.disk.make_sparse(file.id, 1 << 47);
    lab.run(async { assert!(lab.here.engine.try_invalidate(&file.file, 1 << 47, file.file.change_count()).await) });
    let before = status(&lab);
    assert_eq!(before.free_bytes, before.cache_bytes);
    let read = 1200;
    lab.run(async {
        for at in 0..read {
            assert_eq!(lab.here.read(&file, strewn(at), 100).await.unwrap(), [0; 100]);
        }
    });
    let after = status(&lab);
    assert_eq!(after.metadata_bytes, before.metadata_bytes, "the index grows outside of the cache's memory");
    let (taken, pages) = (after.cache_bytes - after.free_bytes, read * PAGE as u64);
    // Each page has its own leaf, and more than the leaves has been counted.
    assert!(taken > pages + pages / 16, "{taken} bytes are taken, {pages} of them by pages");
    lab.here.engine.drop_clean_pages();
    assert_eq!(status(&lab).free_bytes, before.free_bytes, "what indexed the pages comes back");
    assert_eq!(lab.here.engine.census().in_transit(), 0);
}

/// The pages that are read and written do not fit into the memory, nor do the nodes that index them.
#[test]
fn a_cache_full_of_strewn_pages_goes_on() {
    let lab = lab();
    let file = lab.laid_out(0);
    file.disk.make_sparse(file.id, 1 << 47);
    lab.run(async { assert!(lab.here.engine.try_invalidate(&file.file, 1 << 47, file.file.change_count()).await) });
    let metadata_bytes = status(&lab).metadata_bytes;
    lab.run(async {
        for at in 0..3 * FRAMES {
            assert_eq!(lab.here.read(&file, strewn(at), 100).await.unwrap().len(), 100);
            if at % 3 == 0 {
                lab.here.write(&file, strewn(at), PAGE, at + 2).await.unwrap();
            }
        }
        for at in (0..3 * FRAMES).step_by(3) {
            let right = crate::fixture::bytes(at + 2, strewn(at), 100);
            assert_eq!(lab.here.read(&file, strewn(at), 100).await.unwrap(), right, "page {at}");
        }
        lab.here.sync(&file).await.unwrap();
        lab.here.engine.advise(&file.file, 0..u64::MAX, Advice::DontNeed);
        lab.here.sleep(SECOND).await;
    });
    assert_eq!(status(&lab).metadata_bytes, metadata_bytes);
    lab.here.engine.drop_clean_pages();
    let at_rest = status(&lab);
    assert_eq!(at_rest.free_bytes, at_rest.cache_bytes);
}
