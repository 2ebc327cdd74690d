//! Renames that do not replace, and renames that exchange.

use std::sync::Arc;

use afflux_simulator::{Random, TreeOptions};
use afflux_volume::{AttributeChange, Caller, RenameHow, VolumeError};

use crate::clients::{VolumeFixture, serve};
use crate::held::{create, read, write};

const OWN: &Caller = &Caller::SERVER;

fn lab(seed: u64) -> VolumeFixture {
    VolumeFixture::new(seed, TreeOptions { by_identity: seed.is_multiple_of(2), ..TreeOptions::default() })
}

#[test]
fn flags_that_are_not_known_are_refused() {
    assert_eq!(RenameHow::of_flags(0), Ok(RenameHow::Replace));
    assert_eq!(RenameHow::of_flags(1), Ok(RenameHow::NoReplace));
    assert_eq!(RenameHow::of_flags(2), Ok(RenameHow::Exchange));
    assert_eq!(RenameHow::of_flags(4), Ok(RenameHow::Whiteout { may_replace: true }));
    assert_eq!(RenameHow::of_flags(5), Ok(RenameHow::Whiteout { may_replace: false }));
    for flags in [3, 6, 7, 8, u32::MAX] {
        assert!(matches!(RenameHow::of_flags(flags), Err(VolumeError::Invalid { .. })), "{flags}");
    }
}

#[test]
fn nothing_is_replaced_and_nothing_is_exchanged_with_nothing() {
    for seed in 0..2 {
        let lab = lab(seed);
        let volume = &lab.volume;
        lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let (one, other) = (create(volume, &root, b"one").await, create(volume, &root, b"other").await);
            let rename = async |from: &[u8], to: &[u8], how| {
                volume.rename_how_by(OWN, &root, from, &root, to, how).await.0.result
            };
            assert_eq!(rename(b"one", b"other", RenameHow::NoReplace).await, Err(VolumeError::Exists));
            assert_eq!(rename(b"one", b"one", RenameHow::NoReplace).await, Err(VolumeError::Exists));
            assert_eq!(rename(b"one", b"free", RenameHow::Exchange).await, Err(VolumeError::NotFound));
            assert!(Arc::ptr_eq(&volume.lookup(&root, b"one").await.unwrap().0, &one));
            assert!(Arc::ptr_eq(&volume.lookup(&root, b"other").await.unwrap().0, &other));
            rename(b"one", b"free", RenameHow::NoReplace).await.unwrap();
            assert!(Arc::ptr_eq(&volume.lookup(&root, b"free").await.unwrap().0, &one));
            assert_eq!(volume.lookup(&root, b"one").await.err(), Some(VolumeError::NotFound));
            let reader = Caller::SERVER.reading_only();
            let refused = volume.rename_how_by(&reader, &root, b"free", &root, b"other", RenameHow::Exchange).await;
            assert_eq!(refused.0.result, Err(VolumeError::ReadOnly));
            let inside = volume.make_directory(&root, b"above", AttributeChange::default()).await.result.unwrap().0;
            volume.make_directory(&inside, b"below", AttributeChange::default()).await.result.unwrap();
            let (above, below) = ((&root, &b"above"[..]), (&inside, &b"below"[..]));
            for (from, to) in [(above, below), (below, above)] {
                let refused = volume.rename_how_by(OWN, from.0, from.1, to.0, to.1, RenameHow::Exchange).await.0.result;
                assert!(matches!(refused, Err(VolumeError::Invalid { .. })), "{refused:?}");
            }
        });
    }
}

#[test]
fn both_names_of_one_object_stay_in_the_listing() {
    let lab = lab(3);
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        let file = create(volume, &root, b"one").await;
        volume.link(&file, &root, b"other").await.result.unwrap();
        let names = || async { volume.list(&root, 0, 100, false).await.unwrap().entries.len() };
        assert_eq!(names().await, 4);
        for how in [RenameHow::Replace, RenameHow::Exchange] {
            volume.rename_how_by(OWN, &root, b"one", &root, b"other", how).await.0.result.unwrap();
            assert_eq!(names().await, 4, "{how:?}");
        }
    });
}

/// Files and a directory are exchanged while they are dirty. Each keeps its handle and its bytes, also after a crash.
#[test]
fn exchanged_objects_keep_handles_and_bytes_also_over_a_crash() {
    for seed in 0..20 {
        let lab = lab(seed);
        let volume = &lab.volume;
        let mut random = Random::new(seed);
        let handles = lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let below = volume.make_directory(&root, b"below", AttributeChange::default()).await.result.unwrap().0;
            let (one, other) = (create(volume, &root, b"one").await, create(volume, &below, b"other").await);
            write(volume, &one, 0, &[1; 9000]).await;
            write(volume, &other, 0, &[2; 5000]).await;
            if random.below(2) == 0 {
                volume.sync(&one, 0, 0).await.result.unwrap();
            }
            volume.list(&root, 0, 10, false).await.unwrap();
            let (outcome, to) = volume.rename_how_by(OWN, &root, b"one", &below, b"other", RenameHow::Exchange).await;
            outcome.result.unwrap();
            assert!(outcome.consistency.before.unwrap().mtime < outcome.consistency.after.unwrap().mtime);
            assert!(to.before.unwrap().mtime < to.after.unwrap().mtime);
            assert!(Arc::ptr_eq(&volume.lookup(&root, b"one").await.unwrap().0, &other));
            assert!(Arc::ptr_eq(&volume.lookup(&below, b"other").await.unwrap().0, &one));
            let listed = volume.list(&root, 0, 10, false).await.unwrap().entries;
            let entry = listed.iter().find(|entry| &entry.name[..] == b"one").unwrap();
            assert_eq!((entry.fileid, listed.len()), (other.fileid(), 4));
            assert_eq!(read(volume, &one).await, [1; 9000]);
            assert_eq!(read(volume, &other).await, [2; 5000]);
            // A directory for a file, in one directory.
            volume.rename_how_by(OWN, &root, b"one", &root, b"below", RenameHow::Exchange).await.0.result.unwrap();
            assert!(Arc::ptr_eq(&volume.lookup(&root, b"one").await.unwrap().0, &below));
            volume.sync(&one, 0, 0).await.result.unwrap();
            volume.sync(&other, 0, 0).await.result.unwrap();
            write(volume, &one, 0, &[3; 100]).await;
            [&one, &other, &below].map(|object| volume.handle(object).as_bytes().to_vec())
        });
        lab.disk.crash();
        let tree = lab.tree.reopened(TreeOptions { by_identity: seed % 2 == 0, ..TreeOptions::default() });
        let volume = serve(&lab.world, &tree);
        lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let below = volume.lookup(&root, b"one").await.unwrap().0;
            let (one, other) =
                (volume.lookup(&below, b"other").await.unwrap().0, volume.lookup(&root, b"below").await.unwrap().0);
            assert_eq!([&one, &other, &below].map(|object| volume.handle(object).as_bytes().to_vec()), handles);
            assert_eq!(read(&volume, &one).await[100..], [1; 8900]);
            assert_eq!(read(&volume, &other).await, [2; 5000]);
        });
    }
}
