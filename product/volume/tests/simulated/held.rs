//! Objects held beyond the last name, and files made without a name.

use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};
use afflux_simulator::{Random, SimPlatform, TreeOptions};
use afflux_volume::{AttributeChange, Caller, CreateHow, Held, VolumeError};
use bytes::Bytes;

use crate::client::{Files, Object, bytes_of};
use crate::clients::{VolumeFixture, serve};

const OWN: &Caller = &Caller::SERVER;

/// On trees that open identities, and on others.
fn fixtures(seed: u64) -> [VolumeFixture; 2] {
    [true, false].map(|by_identity| VolumeFixture::new(seed, TreeOptions { by_identity, ..TreeOptions::default() }))
}

pub(crate) async fn create(volume: &Files, directory: &Object, name: &[u8]) -> Object {
    let how = CreateHow::Guarded(AttributeChange::default());
    volume.create(directory, name, how).await.result.unwrap().0
}

pub(crate) async fn write(volume: &Files, inode: &Object, offset: u64, bytes: &[u8]) {
    volume.write(inode, offset, Bytes::copy_from_slice(bytes)).await.result.unwrap();
}

pub(crate) async fn read(volume: &Files, inode: &Object) -> Vec<u8> {
    bytes_of(&volume.read(inode, 0, 1 << 20).await.unwrap().bytes)
}

fn dirty_files(volume: &Files) -> usize {
    volume.engine().dirty_files(volume.engine().status().devices[0].id).len()
}

#[test]
fn a_held_file_is_used_without_a_name_until_its_last_holder_goes() {
    for lab in fixtures(1) {
        let volume = &lab.volume;
        lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let file = create(volume, &root, b"file").await;
            let handle = volume.handle(&file).as_bytes().to_vec();
            let (first, second) = (volume.hold(&file).unwrap(), volume.hold(&file).unwrap().clone());
            drop(file);
            write(volume, &first, 0, &[1; 9000]).await;
            volume.remove(&root, b"file").await.result.unwrap();
            assert_eq!(volume.lookup(&root, b"file").await.err(), Some(VolumeError::NotFound));
            let found = volume.resolve(&handle).await.unwrap();
            assert!(Arc::ptr_eq(&found, &first));
            drop(found);
            assert_eq!(volume.attributes(&first).await.unwrap().links, 0);
            assert_eq!(read(volume, &first).await, [1; 9000]);
            assert_eq!(dirty_files(volume), 1, "its dirty pages are kept");
            volume.sync(&first, 0, 0).await.result.unwrap();
            let size = AttributeChange { size: Some(5000), ..AttributeChange::default() };
            volume.set_attributes(&first, size, None).await.result.unwrap();
            // The host's answer is old, and the bytes are on the disk: the host is asked, and time goes on.
            lab.world.platform().sleep_until(Nanos(20_000_000_000)).await;
            volume.upkeep().await;
            let attributes = volume.attributes(&first).await.unwrap();
            assert_eq!((attributes.size, attributes.links), (5000, 0));
            drop(first);
            write(volume, &second, 5000, &[2; 100]).await;
            assert_eq!(read(volume, &second).await, [&[1; 5000][..], &[2; 100]].concat());
            let linked = volume.link(&second, &root, b"again").await.result;
            assert_eq!(linked.err(), Some(VolumeError::Stale), "a lost name does not come back");
            assert_eq!((lab.tree.objects(), dirty_files(volume)), (2, 1));
            drop(second);
            assert_eq!((lab.tree.objects(), dirty_files(volume)), (1, 0), "discarded with the last holder");
            assert_eq!(volume.resolve(&handle).await.err(), Some(VolumeError::Stale));
        });
    }
}

#[test]
fn what_has_ended_is_not_held() {
    for lab in fixtures(2) {
        let volume = &lab.volume;
        lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let (file, other) = (create(volume, &root, b"file").await, create(volume, &root, b"other").await);
            let held = volume.hold(&other).unwrap();
            // Replaced, not removed.
            volume.rename(&root, b"file", &root, b"other").await.0.result.unwrap();
            drop(held);
            assert_eq!(volume.hold(&other).err(), Some(VolumeError::Stale));
            let outcome = volume.write(&other, 0, Bytes::from_static(b"late")).await;
            assert_eq!(outcome.result.err(), Some(VolumeError::Stale));
            assert_eq!(volume.sync(&other, 0, 0).await.result.err(), Some(VolumeError::Stale));
            drop(volume.hold(&file).unwrap());
            write(volume, &file, 0, b"a holder that goes takes nothing from a file with a name").await;
        });
    }
}

#[test]
fn a_file_without_a_name_gets_one_and_keeps_its_bytes() {
    for lab in fixtures(3) {
        let volume = &lab.volume;
        let handle = lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let mode = AttributeChange { mode: Some(0o400), ..AttributeChange::default() };
            let (file, attributes) = volume.create_unnamed_by(OWN, &root, mode).await.unwrap();
            assert_eq!((attributes.mode, attributes.links, attributes.size), (0o400, 0, 0));
            write(volume, &file, 0, b"bytes").await;
            assert_eq!(volume.list(&root, 0, 100, false).await.unwrap().entries.len(), 2, "only . and ..");
            let linked = volume.link(&file, &root, b"named").await.result.unwrap();
            assert_eq!((linked.links, linked.size), (1, 5));
            let handle = volume.handle(&file).as_bytes().to_vec();
            drop(file);
            let (found, _) = volume.lookup(&root, b"named").await.unwrap();
            assert_eq!(read(volume, &found).await, b"bytes");
            // A file without a name ends with the last holder.
            let (dirty, _) = volume.create_unnamed_by(OWN, &root, AttributeChange::default()).await.unwrap();
            write(volume, &dirty, 0, &[3; 8192]).await;
            assert_eq!((lab.tree.objects(), dirty_files(volume)), (3, 2));
            drop(dirty);
            assert_eq!((lab.tree.objects(), dirty_files(volume)), (2, 1));
            let sized = AttributeChange { size: Some(1), ..AttributeChange::default() };
            let refused = volume.create_unnamed_by(OWN, &root, sized).await.err();
            assert!(matches!(refused, Some(VolumeError::Invalid { .. })), "{refused:?}");
            let refused = volume.create_unnamed_by(OWN, &found, AttributeChange::default()).await.err();
            assert_eq!(refused, Some(VolumeError::NotDirectory));
            let refused = volume.create_unnamed_by(&Caller::SERVER.reading_only(), &root, mode).await.err();
            assert_eq!(refused, Some(VolumeError::ReadOnly));
            volume.sync(&found, 0, 0).await.result.unwrap();
            handle
        });
        let tree = lab.tree.reopened(TreeOptions::default());
        let volume = serve(&lab.world, &tree);
        lab.run(async {
            let found = volume.resolve(&handle).await.unwrap();
            assert_eq!(read(&volume, &found).await, b"bytes");
        });
    }
}

/// Holders write and read while other tasks rename, replace and remove the files, in any order.
fn one_seed(seed: u64) {
    let options = TreeOptions { by_identity: seed.is_multiple_of(2), descriptors_max: 0, ..TreeOptions::default() };
    let lab = VolumeFixture::new(seed, options);
    let random = Random::new(seed).fork(5);
    let ended = Arc::new(Mutex::new(0));
    for holder in 0..3u64 {
        let (volume, mut random, ended) = (Arc::clone(&lab.volume), random.fork(holder), Arc::clone(&ended));
        lab.world.spawn("holder", async move {
            let root = volume.mount(b"").await.unwrap();
            for round in 0..6u64 {
                let name = format!("f{}", random.below(3));
                let how = CreateHow::Unchecked(AttributeChange::default());
                let held = if random.below(3) == 0 {
                    volume.create_unnamed_by(OWN, &root, AttributeChange::default()).await.unwrap().0
                } else {
                    let Ok((inode, _)) = volume.create(&root, name.as_bytes(), how).await.result else { continue };
                    // Another task may have removed it since.
                    let Ok(held) = volume.hold(&inode) else { continue };
                    held
                };
                use_held(&volume, &root, &held, &mut random, holder, round).await;
            }
            *ended.lock().unwrap() += 1;
        });
    }
    let (volume, mut random, over) = (Arc::clone(&lab.volume), random.fork(9), Arc::clone(&ended));
    lab.world.spawn("remover", async move {
        let root = volume.mount(b"").await.unwrap();
        while *over.lock().unwrap() < 3 {
            let (one, other) = (format!("f{}", random.below(3)), format!("f{}", random.below(3)));
            match random.below(3) {
                0 => _ = volume.remove(&root, one.as_bytes()).await,
                1 => _ = volume.rename(&root, one.as_bytes(), &root, other.as_bytes()).await,
                _ => volume.upkeep().await,
            }
        }
        *over.lock().unwrap() += 1;
    });
    lab.run(async {
        let platform = lab.world.platform();
        while *ended.lock().unwrap() < 4 {
            platform.sleep_until(platform.now().after(10_000_000)).await;
        }
        let root = lab.volume.mount(b"").await.unwrap();
        for name in ["f0", "f1", "f2"] {
            let _ = lab.volume.remove(&root, name.as_bytes()).await;
        }
        drop(root);
        assert_eq!((lab.tree.objects(), dirty_files(&lab.volume)), (1, 0), "seed {seed}: something stays");
    });
}

/// Every holder writes pages that no other holder writes, and checks them.
async fn use_held(
    volume: &Files,
    root: &Object,
    held: &Held<SimPlatform>,
    random: &mut Random,
    holder: u64,
    round: u64,
) {
    let (at, mut written) = (holder * 8192, None);
    for _ in 0..8 {
        match random.below(6) {
            0 | 1 => {
                let byte = random.bits() as u8;
                write(volume, held, at, &[byte; 6000]).await;
                written = Some(byte);
            }
            2 => volume.sync(held, 0, 0).await.result.unwrap(),
            3 => {
                let attributes = volume.attributes(held).await.unwrap();
                assert!(written.is_none() || attributes.size >= at + 6000);
            }
            4 => {
                let name = format!("l{holder}-{round}");
                if volume.link(held, root, name.as_bytes()).await.result.is_ok() {
                    volume.remove(root, name.as_bytes()).await.result.unwrap();
                }
            }
            _ => {
                let bytes = bytes_of(&volume.read(held, at, 6000).await.unwrap().bytes);
                let expected = written.map(|byte| vec![byte; 6000]);
                assert!(expected.is_none_or(|expected| bytes == expected), "holder {holder} has other bytes");
            }
        }
    }
}

#[test]
fn holders_and_removers_side_by_side_lose_no_byte_and_leave_none() {
    (0..60).for_each(one_seed);
}
