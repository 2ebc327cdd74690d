//! Ranges of files that share their blocks, some pages of which are not on the host yet.

use afflux_simulator::{Random, TreeOptions};
use afflux_volume::{Caller, CloneSide, VolumeError};

use crate::client::{Files, Object};
use crate::clients::VolumeFixture;
use crate::held::{create, read, write};

const OWN: &Caller = &Caller::SERVER;
const PAGE: u64 = 4096;

fn side(inode: &Object, offset: u64) -> CloneSide<'_, afflux_simulator::SimPlatform> {
    CloneSide { caller: OWN, inode, offset }
}

async fn share(volume: &Files, from: (&Object, u64), to: (&Object, u64), len: u64) -> Result<(), VolumeError> {
    volume.clone_by(side(from.0, from.1), side(to.0, to.1), len).await.result
}

fn bytes(seed: u8, len: u64) -> Vec<u8> {
    (0..len).map(|at| seed.wrapping_add((at / 7) as u8)).collect()
}

#[test]
fn a_clone_has_dirty_bytes() {
    let lab = VolumeFixture::new(3, TreeOptions::default());
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        for len in [0, 100, PAGE, 5 * PAGE, 5 * PAGE + 100] {
            let source = create(volume, &root, format!("source {len}").as_bytes()).await;
            let target = create(volume, &root, format!("target {len}").as_bytes()).await;
            let expected = bytes(1, len);
            if len > 0 {
                write(volume, &source, 0, &expected).await;
            }
            let before = volume.attributes(&target).await.unwrap();
            share(volume, (&source, 0), (&target, 0), 0).await.unwrap();
            assert!(read(volume, &target).await == expected, "{len} bytes");
            let after = volume.attributes(&target).await.unwrap();
            assert!(after.size == len && (len == 0 || after.mtime > before.mtime), "{len} bytes");
            // From then on each has bytes of its own.
            write(volume, &source, 0, b"later").await;
            assert!(read(volume, &target).await == expected, "{len} bytes, the source changed");
            volume.sync(&target, 0, 0).await.result.unwrap();
            volume.engine().drop_clean_pages();
            assert!(read(volume, &target).await == expected, "{len} bytes, from the host");
        }
    });
}

#[test]
fn a_clone_replaces_the_pages_of_its_range_alone_clean_or_dirty() {
    let lab = VolumeFixture::new(4, TreeOptions::default());
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        for synced in [false, true] {
            let target = create(volume, &root, if synced { b"synced" } else { b"dirty" }).await;
            let mut expected = bytes(50, 9 * PAGE + 5);
            write(volume, &target, 0, &expected).await;
            if synced {
                volume.sync(&target, 0, 0).await.result.unwrap();
            }
            assert!(read(volume, &target).await == expected);
            // From its own end to its middle, and behind the end.
            share(volume, (&target, 6 * PAGE), (&target, 2 * PAGE), 3 * PAGE).await.unwrap();
            expected.copy_within(6 * PAGE as usize..9 * PAGE as usize, 2 * PAGE as usize);
            assert!(read(volume, &target).await == expected, "synced: {synced}");
            share(volume, (&target, 0), (&target, 12 * PAGE), PAGE).await.unwrap();
            expected.resize(12 * PAGE as usize, 0);
            expected.extend_from_within(..PAGE as usize);
            assert!(read(volume, &target).await == expected, "grown, synced: {synced}");
            volume.sync(&target, 0, 0).await.result.unwrap();
            volume.engine().drop_clean_pages();
            assert!(read(volume, &target).await == expected, "from the host, synced: {synced}");
        }
    });
}

#[test]
fn what_cannot_be_cloned_is_refused_and_changes_nothing() {
    let lab = VolumeFixture::new(5, TreeOptions::default());
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        let (source, target) = (create(volume, &root, b"source").await, create(volume, &root, b"target").await);
        write(volume, &source, 0, &bytes(1, 5 * PAGE + 9)).await;
        write(volume, &target, 0, b"target").await;
        let invalid = |result| matches!(result, Err(VolumeError::Invalid { .. }));
        for (from, to, len) in
            [(1, 0, PAGE), (0, 1, PAGE), (0, 0, PAGE + 1), (0, 0, 6 * PAGE), (5 * PAGE, 0, 10), (8 * PAGE, 0, PAGE)]
        {
            assert!(invalid(share(volume, (&source, from), (&target, to), len).await), "{from} {to} {len}");
        }
        assert!(invalid(share(volume, (&source, 0), (&source, PAGE), 2 * PAGE).await), "over its own source");
        let far = share(volume, (&source, 0), (&target, 1 << 63), PAGE).await;
        assert_eq!(far, Err(VolumeError::TooLarge));
        assert_eq!(share(volume, (&source, 0), (&target, 0), u64::MAX).await.map_err(|_| ()), Err(()));
        assert!(share(volume, (&root, 0), (&target, 0), PAGE).await.is_err());
        assert!(share(volume, (&source, 0), (&root, 0), PAGE).await.is_err());
        let reader = CloneSide { caller: &Caller::SERVER.reading_only(), ..side(&target, 0) };
        assert_eq!(volume.clone_by(side(&source, 0), reader, PAGE).await.result, Err(VolumeError::ReadOnly));
        assert_eq!(read(volume, &target).await, b"target");
    });
}

#[test]
fn writes_clones_and_reads_in_any_order_find_what_a_model_has() {
    for seed in 0..20 {
        let lab = VolumeFixture::new(100 + seed, TreeOptions::default());
        let volume = &lab.volume;
        let mut random = Random::new(seed);
        lab.run(async {
            let root = volume.mount(b"").await.unwrap();
            let mut files = Vec::new();
            for name in [b"a", b"b", b"c"] {
                files.push((create(volume, &root, name).await, Vec::<u8>::new()));
            }
            for step in 0..120 {
                let (from, to) = (random.below(3) as usize, random.below(3) as usize);
                match random.below(5) {
                    0 | 1 => {
                        let (offset, len) = (random.below(12 * PAGE), 1 + random.below(3 * PAGE));
                        let new = bytes(random.below(256) as u8, len);
                        let (file, model) = &mut files[to];
                        write(volume, file, offset, &new).await;
                        let end = (offset + len) as usize;
                        model.resize(model.len().max(end), 0);
                        model[offset as usize..end].copy_from_slice(&new);
                    }
                    2 | 3 => {
                        let (start, at) = (random.below(8) * PAGE, random.below(8) * PAGE);
                        let size = files[from].1.len() as u64;
                        let len = if random.below(2) == 0 { size.saturating_sub(start) } else { PAGE };
                        if len == 0 {
                            continue;
                        }
                        let fits = start + len <= size && (from != to || start.abs_diff(at) >= len);
                        let result = share(volume, (&files[from].0, start), (&files[to].0, at), len).await;
                        assert_eq!(result.is_ok(), fits, "seed {seed}, step {step}: {start} {at} {len} of {size}");
                        if fits {
                            let new = files[from].1[start as usize..(start + len) as usize].to_vec();
                            let (end, model) = ((at + len) as usize, &mut files[to].1);
                            model.resize(model.len().max(end), 0);
                            model[at as usize..end].copy_from_slice(&new);
                        }
                    }
                    _ if random.below(2) == 0 => _ = volume.engine().drop_clean_pages(),
                    _ => volume.sync(&files[to].0, 0, 0).await.result.unwrap(),
                }
                let (file, model) = &files[to];
                assert!(read(volume, file).await == *model, "seed {seed}, step {step}");
            }
        });
    }
}
