//! Runs of many lines, compressed and not, in one volume.
//!
//! Owns: random changes of a file whose writers store their bytes in different forms, against the file's bytes in
//! memory; the feature of the volume's header.
//! Does not own: crashes (`scenarios`), whose runs are short.
//! Invariants: one seed is one run.

use bytes::Bytes;

use super::log::Log;
use super::random::Random;
use super::run::{LIMITS, Volume};
use super::store::{MS, Store};
use crate::format::extent::{ExtentSource, StoredExtent};
use crate::format::records::{COMPRESSED_RUNS, VolumeHeader};
use crate::{Compression, Fresh, LINE_BYTES, ObjectVolume, RecordDatabase, VolumeLimits, check};

/// The checker of the world leaves these files alone.
const INOS: [u64; 2] = [100, 101];
const FILE_BYTES: usize = 20 * LINE_BYTES as usize;
const SEEDS: u64 = 12;

fn open(store: &Store, compression: Compression) -> Volume {
    let log = store.finish(Log::open(store.clone())).unwrap();
    let fresh = Fresh {
        header: VolumeHeader { id: [1; 16], handle_key: [2; 16] },
        verifier: store.world().random.next(),
        is_alone: true,
    };
    let limits =
        VolumeLimits { segment_bytes: 1 << 20, compression, shared_bytes: 1 << 30, dead_ns: 10 * MS, ..LIMITS };
    store.finish(ObjectVolume::open(store.clone(), log, store.clone(), limits, fresh)).unwrap()
}

/// Bytes with less or more redundancy.
fn bytes(random: &mut Random, length: usize) -> Bytes {
    let letters = [1, 4, 64, 256][random.below(4) as usize];
    (0..length).map(|_| random.below(letters) as u8).collect()
}

struct Model {
    files: [Vec<u8>; 2],
}

impl Model {
    fn change(&mut self, store: &Store, volume: &Volume, random: &mut Random) {
        let file = random.below(2) as usize;
        let at = random.below(FILE_BYTES as u64 - 1) as usize;
        let most = if random.one_in(3) { 6 * u64::from(LINE_BYTES) } else { 9_000 };
        let length = (1 + random.below(most) as usize).min(FILE_BYTES - at);
        let part = at..at + length;
        match random.below(10) {
            0 => {
                volume.punch(INOS[file], at as u64, length as u64).unwrap();
                self.files[file][part].fill(0);
            }
            1 | 2 => {
                let other = 1 - file;
                let range = at as u64..(at + length) as u64;
                store.finish(volume.share(INOS[file], range, INOS[other], at as u64)).unwrap();
                let shared = self.files[file][part.clone()].to_vec();
                self.files[other][part].copy_from_slice(&shared);
            }
            _ => {
                let written = bytes(random, length);
                volume.write(INOS[file], at as u64, written.clone()).unwrap();
                self.files[file][part].copy_from_slice(&written);
            }
        }
    }

    fn is_read(&self, store: &Store, volume: &Volume, random: &mut Random) {
        for (ino, file) in INOS.into_iter().zip(&self.files) {
            let whole = store.finish(volume.read(ino, 0, FILE_BYTES as u64)).unwrap();
            assert!(whole == *file, "a read of the whole file differs");
            let at = random.below(FILE_BYTES as u64 - 10);
            let read = store.finish(volume.read(ino, at, 10)).unwrap();
            assert_eq!(read, file[at as usize..at as usize + 10]);
        }
    }
}

/// The numbers of raw and of compressed extents.
fn forms(store: &Store) -> (usize, usize) {
    let world = store.world();
    let records = world.checker.durable.range(vec![b'x']..vec![b'x' + 1]);
    let extents = records.map(|(key, value)| StoredExtent::decode(key, value).unwrap().1);
    let places = extents.filter_map(|extent| match extent.source {
        ExtentSource::Segment(place) => Some(place.stored.is_some()),
        ExtentSource::Inline(_) => None,
    });
    let (compressed, raw): (Vec<_>, Vec<_>) = places.partition(|is_compressed| *is_compressed);
    (raw.len(), compressed.len())
}

// rule: Whatever form each writer gives its bytes, all later writers read, cut, share and move them.
#[test]
fn runs_of_each_form_are_read_shared_and_moved() {
    let mut found = (0, 0);
    for seed in 0..SEEDS {
        let (store, mut random) = (Store::new(seed), Random(seed));
        let mut model = Model { files: [vec![0; FILE_BYTES], vec![0; FILE_BYTES]] };
        for life in 0..4 {
            let compression = [Compression::Zstd(1), Compression::None, Compression::Lz4][((seed + life) % 3) as usize];
            let volume = open(&store, compression);
            for _ in 0..12 {
                model.change(&store, &volume, &mut random);
            }
            model.is_read(&store, &volume, &mut random);
            for ino in INOS {
                store.finish(volume.commit(ino)).unwrap();
            }
            store.finish(volume.compact()).unwrap();
            model.is_read(&store, &volume, &mut random);
            store.finish(volume.mark_dead()).unwrap();
            store.finish(store.sleep_ns(1_000 * MS));
            store.finish(volume.delete_dead()).unwrap();
            drop(volume);
            let log = store.finish(Log::open(store.clone())).unwrap();
            let report = store.finish(check(&store, &log, &store)).unwrap();
            assert!(report.is_sound(), "seed {seed}, life {life}: {report:?}");
        }
        let volume = open(&store, Compression::None);
        model.is_read(&store, &volume, &mut random);
        found = (found.0 + forms(&store).0, found.1 + forms(&store).1);
    }
    assert!(found.0 > 100 && found.1 > 100, "too little happened: {found:?}");
}

// rule: No batch names a compressed run before the header says that there are some.
#[test]
fn the_header_says_that_there_are_compressed_runs_before_a_record_names_one() {
    let (store, random) = (Store::new(0), &mut Random(1));
    let volume = open(&store, Compression::Lz4);
    let features = |store: &Store| VolumeHeader::decode(&store.world().checker.durable[VolumeHeader::KEY]).unwrap().1;
    let write = |length| {
        volume.write(INOS[0], 0, length).unwrap();
        store.finish(volume.flush()).unwrap();
        store.finish(volume.commit(INOS[0])).unwrap();
    };
    write((0..1_000).map(|_| random.below(256) as u8).collect());
    assert_eq!((forms(&store), features(&store), volume.has_compressed_runs()), ((1, 0), 0, false));
    write(Bytes::from(vec![7; 1_000]));
    assert_eq!((forms(&store), features(&store), volume.has_compressed_runs()), ((0, 1), COMPRESSED_RUNS, true));
    let mut said = false;
    for batch in store.world().log.iter().flat_map(|entry| &entry.batches) {
        for change in batch {
            let crate::RecordChange::Put(key, value) = change else { continue };
            said |= key == VolumeHeader::KEY && VolumeHeader::decode(value).unwrap().1 == COMPRESSED_RUNS;
            assert!(said || key[0] != b'x' || value[0] < 3, "a record names a compressed run");
        }
    }
    assert_eq!(volume.records().epoch(), 1);
}

#[test]
fn a_check_notices_lengths_of_lines_that_are_not_the_segments() {
    let store = Store::new(0);
    let volume = open(&store, Compression::Zstd(3));
    let written = bytes(&mut Random(5), 3 * LINE_BYTES as usize);
    volume.write(INOS[0], 0, [&written[..], &[7; 9_000]].concat().into()).unwrap();
    store.finish(volume.commit(INOS[0])).unwrap();
    let (key, mut value) = {
        let world = store.world();
        let found = world.checker.durable.range(vec![b'x']..).next().unwrap();
        (found.0.clone(), found.1.clone())
    };
    assert_eq!(value[0], 3, "it is compressed");
    *value.last_mut().unwrap() ^= 1;
    let sequence = volume.records().apply(vec![crate::RecordChange::Put(key, value)]).unwrap();
    store.finish(volume.records().durable(sequence)).unwrap();
    let log = store.finish(Log::open(store.clone())).unwrap();
    let report = store.finish(check(&store, &log, &store)).unwrap();
    let ranges: Vec<_> = report.damaged.values().flat_map(|(_, ranges)| ranges.clone()).collect();
    let last = u64::from(3 * LINE_BYTES);
    assert_eq!(ranges, [crate::FileRange { ino: INOS[0], start: last, end: last + 9_000 }], "{report:?}");
}
