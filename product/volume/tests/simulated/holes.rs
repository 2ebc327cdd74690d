//! Holes of files, some pages of which are not on the host yet.

use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};
use afflux_simulator::{Random, TreeOptions};
use afflux_volume::{AttributeChange, Caller, DeviceKey, ForeignChange, ForeignListener, Reserve, Seek, VolumeError};

use crate::client::{Files, Object};
use crate::clients::VolumeFixture;
use crate::held::{create, read, write};

const OWN: &Caller = &Caller::SERVER;
const PAGE: u64 = 4096;

async fn seek(volume: &Files, file: &Object, offset: u64, wanted: Seek) -> Result<u64, VolumeError> {
    volume.seek_by(OWN, file, offset, wanted).await
}

async fn set_size(volume: &Files, file: &Object, size: u64) {
    let size = AttributeChange { size: Some(size), ..AttributeChange::default() };
    volume.set_attributes(file, size, None).await.result.unwrap();
}

#[test]
fn a_new_hole_drops_its_own_bytes_alone_whether_they_are_written_or_not() {
    let lab = VolumeFixture::new(7, TreeOptions::default());
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        for synced in [false, true] {
            let file = create(volume, &root, if synced { b"synced" } else { b"dirty" }).await;
            let mut expected = vec![7; 8 * PAGE as usize];
            write(volume, &file, 0, &expected).await;
            if synced {
                volume.sync(&file, 0, 0).await.result.unwrap();
            }
            let before = volume.attributes(&file).await.unwrap();
            let range = 2 * PAGE - 10..5 * PAGE + 10;
            volume.punch_by(OWN, &file, range.clone()).await.result.unwrap();
            expected[range.start as usize..range.end as usize].fill(0);
            assert!(read(volume, &file).await == expected, "synced: {synced}");
            let after = volume.attributes(&file).await.unwrap();
            assert!(after.size == before.size && after.mtime > before.mtime, "synced: {synced}");
            assert_eq!(seek(volume, &file, 2 * PAGE, Seek::Data).await, Ok(5 * PAGE), "synced: {synced}");
            volume.sync(&file, 0, 0).await.result.unwrap();
            volume.engine().drop_clean_pages();
            assert!(read(volume, &file).await == expected, "from the host, synced: {synced}");
            volume.punch_by(OWN, &file, 100 * PAGE..200 * PAGE).await.result.unwrap();
            assert_eq!(volume.attributes(&file).await.unwrap().size, before.size, "past the end");
            let refused = volume.punch_by(&Caller::SERVER.reading_only(), &file, 0..1).await.result;
            assert_eq!(refused, Err(VolumeError::ReadOnly));
            assert_eq!(volume.punch_by(OWN, &file, 0..u64::MAX).await.result, Err(VolumeError::TooLarge));
        }
        assert!(volume.punch_by(OWN, &root, 0..1).await.result.is_err());
    });
}

#[test]
fn data_is_what_the_host_has_and_what_is_dirty() {
    let lab = VolumeFixture::new(1, TreeOptions::default());
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        let file = create(volume, &root, b"file").await;
        assert_eq!(seek(volume, &file, 0, Seek::Data).await, Err(VolumeError::PastData { offset: 0 }));
        assert_eq!(seek(volume, &file, 0, Seek::Hole).await, Err(VolumeError::PastData { offset: 0 }));
        set_size(volume, &file, 20 * PAGE).await;
        assert_eq!(seek(volume, &file, 3, Seek::Data).await, Err(VolumeError::PastData { offset: 3 }));
        assert_eq!(seek(volume, &file, 3, Seek::Hole).await, Ok(3));
        // On the host: page 2. Dirty: pages 3, 10 and 25, which makes the file longer.
        write(volume, &file, 2 * PAGE, &[1; PAGE as usize]).await;
        volume.sync(&file, 0, 0).await.result.unwrap();
        write(volume, &file, 3 * PAGE, &[1; PAGE as usize]).await;
        write(volume, &file, 10 * PAGE + 5, b"x").await;
        write(volume, &file, 25 * PAGE, b"the end").await;
        let size = 25 * PAGE + 7;
        for (offset, data, hole) in [
            (0, Ok(2 * PAGE), 0),
            (2 * PAGE + 1, Ok(2 * PAGE + 1), 4 * PAGE),
            (3 * PAGE + 9, Ok(3 * PAGE + 9), 4 * PAGE),
            (4 * PAGE, Ok(10 * PAGE), 4 * PAGE),
            (10 * PAGE + 100, Ok(10 * PAGE + 100), 11 * PAGE),
            (22 * PAGE, Ok(25 * PAGE), 22 * PAGE),
            (size - 1, Ok(size - 1), size),
        ] {
            assert_eq!(seek(volume, &file, offset, Seek::Data).await, data, "data from {offset}");
            assert_eq!(seek(volume, &file, offset, Seek::Hole).await, Ok(hole), "hole from {offset}");
        }
        for wanted in [Seek::Data, Seek::Hole] {
            for offset in [size, u64::MAX] {
                assert_eq!(seek(volume, &file, offset, wanted).await, Err(VolumeError::PastData { offset }));
            }
        }
        assert_eq!(seek(volume, &root, 0, Seek::Data).await, Err(VolumeError::IsDirectory));
        let held = volume.hold(&file).unwrap();
        volume.remove(&root, b"file").await.result.unwrap();
        assert_eq!(seek(volume, &held, 4 * PAGE, Seek::Data).await, Ok(10 * PAGE), "of a file without a name");
    });
}

/// Pages are written, and written back, while others ask: what was acknowledged is never a hole.
#[test]
fn acknowledged_bytes_are_never_in_a_hole() {
    for seed in 0..60 {
        let lab = VolumeFixture::new(seed, TreeOptions::default());
        let volume = Arc::clone(&lab.volume);
        let file = lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let file = create(&volume, &root, b"file").await;
            set_size(&volume, &file, 64 * PAGE).await;
            file
        });
        let (written, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(false)));
        let (writer, target, known, ended) =
            (Arc::clone(&volume), Arc::clone(&file), Arc::clone(&written), Arc::clone(&over));
        let mut random = Random::new(seed);
        lab.world.spawn("writer", async move {
            for _ in 0..40 {
                let page = random.below(64);
                write(&writer, &target, page * PAGE, &[1; PAGE as usize]).await;
                known.lock().unwrap().push(page);
                if random.below(4) == 0 {
                    writer.sync(&target, 0, 0).await.result.unwrap();
                }
                let platform = Arc::clone(writer.engine().platform());
                platform.sleep_until(platform.now().after(random.below(2_000_000))).await;
            }
            *ended.lock().unwrap() = true;
        });
        lab.run(async {
            while !*over.lock().unwrap() {
                let before = written.lock().unwrap().clone();
                for page in before {
                    let at = page * PAGE;
                    assert_eq!(seek(&volume, &file, at, Seek::Data).await, Ok(at), "seed {seed}, page {page}");
                    let hole = seek(&volume, &file, at, Seek::Hole).await.unwrap();
                    assert!(hole > at, "seed {seed}, page {page} is a hole");
                }
                let platform = lab.world.platform();
                platform.sleep_until(platform.now().after(Nanos::MILLISECOND)).await;
            }
        });
    }
}

/// Counts what it is told.
#[derive(Default)]
struct Told(Mutex<usize>);

impl ForeignListener for Told {
    fn changed(&self, _device: DeviceKey, change: ForeignChange) {
        *self.0.lock().unwrap() += usize::from(matches!(change, ForeignChange::Bytes(_)));
    }
}

// rule: a change of bytes that fails half-way moves the times and is reported, and one that changed nothing does
// neither
// kept in: `product/volume/src/data/read_write.rs`, `product/volume/src/data/holes.rs`
#[test]
fn a_reservation_that_fails_after_its_zeros_tells_of_them() {
    for (refused, is_changed) in [(0, false), (1, true)] {
        let lab = VolumeFixture::new(3, TreeOptions::default());
        let volume = &lab.volume;
        lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let file = create(volume, &root, b"file").await;
            write(volume, &file, 0, &[7; 3 * PAGE as usize]).await;
            volume.sync(&file, 0, 0).await.result.unwrap();
            let before = volume.attributes(&file).await.unwrap();
            let told = Arc::new(Told::default());
            volume.listen(Some(Arc::clone(&told) as _));
            lab.tree.refuse(refused..refused + 1, VolumeError::NoSpace);
            let how = Reserve { zeros: true, grows: false };
            let result = volume.reserve_by(OWN, &file, 0..3 * PAGE, how).await.result;
            lab.tree.refuse_nothing();
            assert_eq!(result, Err(VolumeError::NoSpace));
            let zeros = read(volume, &file).await.iter().all(|byte| *byte == 0);
            let moved = volume.attributes(&file).await.unwrap().mtime > before.mtime;
            assert_eq!((zeros, moved, *told.0.lock().unwrap()), (is_changed, is_changed, usize::from(is_changed)));
        });
    }
}
