use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;

use afflux_scratch::{Scratch, TestDirectory, eventually};

use super::*;
use crate::threads::wait;

const BYTES: u64 = 64 << 20;
const NAME: &str = "data/01/000001-0000000001";

fn scratch() -> Scratch {
    Scratch::new(&std::env::temp_dir(), "disk-cache").unwrap()
}

fn open(scratch: &Scratch) -> DiskCache {
    wait(DiskCache::open(scratch.path(), BYTES)).unwrap().unwrap()
}

fn parts(cache: &DiskCache, id: u8) -> VolumeParts {
    cache.of_volume([id; 16], "file:///volume", None, u64::from(id)).unwrap()
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// An object in a store that counts the bytes that it sends.
struct Source {
    bytes: Bytes,
    sent: Mutex<Vec<Range<u64>>>,
}

impl Source {
    fn new(length: usize, seed: u64) -> Self {
        let mut state = seed | 1;
        let mut bytes = vec![0; length];
        for eight in bytes.chunks_mut(8) {
            eight.copy_from_slice(&random(&mut state).to_le_bytes()[..eight.len()]);
        }
        Self { bytes: bytes.into(), sent: Mutex::default() }
    }

    async fn get(&self, range: Range<u64>) -> Result<ByteParts, ObjectError> {
        self.sent.lock().unwrap().push(range.clone());
        Ok(ByteParts(self.expected(&range).chunks(10_000).map(Bytes::copy_from_slice).collect()))
    }

    fn expected(&self, range: &Range<u64>) -> Bytes {
        let length = self.bytes.len() as u64;
        self.bytes.slice(range.start.min(length) as usize..range.end.min(length) as usize)
    }

    fn gets(&self) -> usize {
        std::mem::take(&mut *self.sent.lock().unwrap()).len()
    }

    fn read(&self, parts: &VolumeParts, name: &str, range: Range<u64>, arrivals: &Arrivals) {
        let read = wait(parts.read(name, range.clone(), arrivals, |range| self.get(range))).unwrap().unwrap();
        assert_eq!(read.joined(), self.expected(&range), "{name} {range:?}");
    }
}

fn line(number: u64) -> Range<u64> {
    number * PART_BYTES..(number + 1) * PART_BYTES
}

/// Waits until so many parts are on the disk.
fn written(cache: &DiskCache, parts: u64) {
    eventually("the parts are written", || cache.figures().written_bytes >= parts * DISK_BYTES);
}

/// Reads lines from the last to the first, which is no stream, and no faster than the disk takes them.
fn fill(source: &Source, volume: &VolumeParts, lines: u64) {
    for number in (0..lines).rev() {
        source.read(volume, NAME, line(number), Arrivals::NONE);
        if number % 20 == 0 {
            written(&volume.cache, lines - number);
        }
    }
}

#[test]
fn lines_that_a_reader_waited_for_are_read_from_the_disk_also_after_a_restart() {
    let scratch = scratch();
    let source = Source::new(100 * PART_BYTES as usize, 1);
    let cache = open(&scratch);
    let volume = parts(&cache, 1);
    fill(&source, &volume, 100);
    assert_eq!(source.gets(), 100);
    (0..100).rev().for_each(|number| source.read(&volume, NAME, line(number), Arrivals::NONE));
    assert_eq!((source.gets(), cache.figures().hits, cache.figures().misses), (0, 100, 100));
    drop((cache, volume));
    let cache = open(&scratch);
    let volume = parts(&cache, 1);
    (0..100).for_each(|number| source.read(&volume, NAME, line(number), Arrivals::NONE));
    assert_eq!((source.gets(), cache.figures().hits, cache.figures().written_bytes), (0, 100, 0));
}

#[test]
fn a_stream_is_not_written_until_it_is_read_again() {
    let scratch = scratch();
    let source = Source::new(8 << 20, 2);
    let cache = open(&scratch);
    let volume = parts(&cache, 1);
    let ahead = Arrivals::to(|_| ());
    let stream = || {
        (0..8).for_each(|number| source.read(&volume, NAME, number << 20..(number + 1) << 20, &ahead));
        source.gets()
    };
    assert_eq!(stream(), 8);
    let other = "data/02/000001-0000000002";
    // It is written behind whatever of the stream is.
    source.read(&volume, other, line(0), Arrivals::NONE);
    source.gets();
    written(&cache, 1);
    assert!(cache.figures().written_bytes < 3 * PART_BYTES, "{:?}", cache.figures());
    assert_eq!(stream(), 8);
    written(&cache, 100);
    // The last parts may be in flight.
    eventually("the stream is on the disk", || stream() == 0);
}

#[test]
fn a_stream_for_which_a_reader_waits_is_not_written_either() {
    let scratch = scratch();
    let source = Source::new(8 << 20, 3);
    let cache = open(&scratch);
    let volume = parts(&cache, 1);
    (0..64).for_each(|number| source.read(&volume, NAME, number << 17..(number + 1) << 17, Arrivals::NONE));
    // It is written behind whatever of the stream is. The first read of the stream could not be told.
    source.read(&volume, "data/02/000001-0000000002", line(0), Arrivals::NONE);
    written(&cache, 3);
    assert!(cache.figures().written_bytes < 6 * DISK_BYTES, "{:?}", cache.figures());
}

// rule: A range that is read by its parts has the bytes of the object, and ends with it.
#[test]
fn every_range_has_the_bytes_of_its_object() {
    let scratch = scratch();
    let (cache, mut state) = (open(&scratch), 0x1234_5678_9ABC_DEF1);
    let volume = parts(&cache, 1);
    let ahead = Arrivals::to(|_| ());
    let lengths = [1, 1_000, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, 300_000, 1_500_000];
    let objects: Vec<Source> = lengths.iter().map(|length| Source::new(*length as usize, *length)).collect();
    for _ in 0..3_000 {
        let at = random(&mut state) as usize % objects.len();
        let (source, name) = (&objects[at], format!("data/00/000001-{at:010x}"));
        let start = random(&mut state) % (lengths[at] + PART_BYTES);
        let bytes = random(&mut state) % if random(&mut state).is_multiple_of(2) { 5_000 } else { 1_200_000 } + 1;
        let arrivals = if random(&mut state).is_multiple_of(2) { &ahead } else { Arrivals::NONE };
        source.read(&volume, &name, start..start + bytes, arrivals);
    }
    let figures = cache.figures();
    assert!(figures.hits > 1_000 && figures.dropped == 0, "{figures:?}");
}

#[test]
fn another_volume_gets_none_of_its_bytes() {
    let scratch = scratch();
    let (one, two) = (Source::new(200_000, 3), Source::new(200_000, 4));
    let cache = open(&scratch);
    one.read(&parts(&cache, 1), NAME, 0..200_000, Arrivals::NONE);
    two.read(&parts(&cache, 2), NAME, 0..200_000, Arrivals::NONE);
    let moved = cache.of_volume([1; 16], "file:///copy", None, 3).unwrap();
    two.read(&moved, NAME, 0..200_000, Arrivals::NONE);
    assert_eq!((one.gets(), two.gets()), (1, 2));
}

fn files(scratch: &Scratch) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(scratch.path().join("parts-1")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Fills a disk cache, damages its files, and reads all again.
fn damage(while_open: bool, damage: impl Fn(&[PathBuf])) -> DiskCacheFigures {
    let scratch = scratch();
    let source = Source::new(300 * PART_BYTES as usize, 5);
    let mut cache = open(&scratch);
    let mut volume = parts(&cache, 1);
    fill(&source, &volume, 300);
    if while_open {
        damage(&files(&scratch));
    } else {
        drop((cache, volume));
        damage(&files(&scratch));
        cache = open(&scratch);
        volume = parts(&cache, 1);
    }
    for _ in 0..2 {
        (0..300).for_each(|number| source.read(&volume, NAME, line(number), Arrivals::NONE));
    }
    cache.figures()
}

fn flip(files: &[PathBuf]) {
    let mut state = 0xFEED_5EED;
    for file in files {
        let file = OpenOptions::new().read(true).write(true).open(file).unwrap();
        for _ in 0..8 {
            let (at, mut byte) = (random(&mut state) % (1 << 20), [0]);
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1 << (at % 8)], at).unwrap();
        }
    }
}

// rule: A damaged, cut or foreign disk cache costs requests, and no reader gets a wrong byte.
#[test]
fn flipped_bits_cost_requests_alone() {
    let figures = damage(true, flip);
    assert!(figures.dropped > 10 && figures.misses > 300, "{figures:?}");
    let figures = damage(false, flip);
    assert!(figures.misses > 10 && figures.hits > 300, "{figures:?}");
}

#[test]
fn files_that_were_cut_exchanged_or_overwritten_cost_requests_alone() {
    let cut = |files: &[PathBuf]| {
        for file in files {
            OpenOptions::new().write(true).open(file).unwrap().set_len(100_000).unwrap();
        }
    };
    assert!(damage(true, cut).misses > 300);
    assert!(damage(false, cut).misses >= 300, "all files are made anew");
    let exchange = |files: &[PathBuf]| {
        let other = files[0].with_extension("other");
        fs::rename(&files[0], &other).unwrap();
        fs::rename(&files[1], &files[0]).unwrap();
        fs::rename(&other, &files[1]).unwrap();
    };
    damage(false, exchange);
    let overwrite = |files: &[PathBuf]| files.iter().for_each(|file| fs::write(file, vec![0xA5; 1 << 20]).unwrap());
    assert!(damage(true, overwrite).misses > 300);
    assert!(damage(false, overwrite).misses >= 300);
}

#[test]
fn a_forgotten_segment_is_read_from_the_store() {
    let scratch = scratch();
    let source = Source::new(200_000, 6);
    let cache = open(&scratch);
    let volume = parts(&cache, 1);
    source.read(&volume, NAME, 0..200_000, Arrivals::NONE);
    volume.forget(NAME);
    source.read(&volume, NAME, 0..200_000, Arrivals::NONE);
    source.read(&volume, NAME, 0..200_000, Arrivals::NONE);
    assert_eq!((source.gets(), cache.figures().dropped), (3, 4));
    (0..1_000).for_each(|number| volume.forget(&number.to_string()));
    assert_eq!(volume.distrusted().len(), DISTRUSTED_MAX);
}

#[test]
fn more_parts_than_the_disk_has_space_for_push_the_oldest_out() {
    let scratch = scratch();
    let cache = open(&scratch);
    let volume = parts(&cache, 1);
    let source = Source::new(100 * PART_BYTES as usize, 7);
    let ahead = Arrivals::to(|_| ());
    for object in 0..15 {
        let name = format!("data/00/000001-{object:010x}");
        for number in 0..100 {
            // The second read enters, whatever the credit is.
            source.read(&volume, &name, line(number), &ahead);
            source.read(&volume, &name, line(number), &ahead);
            if number % 20 == 19 {
                written(&cache, 100 * object + number + 1);
            }
        }
    }
    source.gets();
    (0..100).for_each(|number| source.read(&volume, "data/00/000001-000000000e", line(number), Arrivals::NONE));
    let newest = source.gets();
    (0..100).for_each(|number| source.read(&volume, "data/00/000001-0000000000", line(number), Arrivals::NONE));
    assert!(newest < 20 && source.gets() > 90, "{newest} of the newest parts are gone");
}

#[test]
fn a_full_disk_is_refused_and_gets_its_space_back() {
    let Some(full) = TestDirectory::mounted("tmpfs", 32 << 20, "") else { return };
    let refused = wait(DiskCache::open(full.path(), BYTES)).unwrap().unwrap_err();
    let why = "there is too little space".to_owned();
    assert_eq!(refused, DiskCacheError::Unusable { directory: full.path().display().to_string(), why });
    assert_eq!(fs::read_dir(full.path().join("parts-1")).unwrap().count(), 0);
}

#[test]
fn a_disk_that_is_missing_is_refused_with_words() {
    let refused = wait(DiskCache::open(Path::new("/nowhere/at/all"), BYTES)).unwrap().unwrap_err();
    assert!(refused.to_string().starts_with("/nowhere/at/all: No such file"), "{refused}");
    let small = wait(DiskCache::open(Path::new("/tmp"), 1 << 20)).unwrap().unwrap_err();
    assert_eq!(small.to_string(), "the size of a disk cache is 64 MiB to 1024 GiB");
}
