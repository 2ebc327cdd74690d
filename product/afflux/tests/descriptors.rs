//! Cached files without a handle cost no descriptors. The tests count the process's descriptors, and so run one at a
//! time.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use afflux::Cache;
use afflux_scratch::eventually;

const FILES: u64 = 8_000;

fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn eight_thousand_cached_files_cost_few_descriptors_and_are_hit_when_opened_again() {
    let (_alone, place) = (alone(), tempfile::tempdir().unwrap());
    let path = |number: u64| place.path().join(number.to_string());
    (0..FILES).for_each(|number| std::fs::write(path(number), number.to_le_bytes()).unwrap());
    // Otherwise each read past the host's cache would wait until the host has written the file.
    rustix::fs::syncfs(std::fs::File::open(place.path()).unwrap()).unwrap();
    let cache = Cache::builder().memory(64 << 20).descriptors(100).build().unwrap();
    let before = descriptors();
    let mut most = before;
    for number in 0..FILES {
        let file = cache.open_read(path(number)).unwrap();
        let mut bytes = [0; 8];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 8);
        assert_eq!(u64::from_le_bytes(bytes), number);
        drop(file);
        if number.is_multiple_of(500) {
            most = most.max(descriptors());
        }
    }
    assert!(most <= before + 120, "{most} descriptors, {before} before");
    let missed = cache.stats().counter("read_miss_pages").unwrap();
    assert!(missed >= FILES);
    for number in 0..FILES {
        let file = cache.open_read(path(number)).unwrap();
        let mut bytes = [0; 8];
        assert_eq!(file.try_read_at(&mut bytes, 0).unwrap(), 8, "file {number} is not in the cache");
        assert_eq!(u64::from_le_bytes(bytes), number);
    }
    assert_eq!(cache.stats().counter("read_miss_pages").unwrap(), missed);
    assert!(cache.stats().descriptors <= 100);
}

#[test]
fn files_that_were_written_give_their_descriptors_back_when_durable() {
    let (_alone, place) = (alone(), tempfile::tempdir().unwrap());
    let cache = Cache::builder().memory(32 << 20).descriptors(40).build().unwrap();
    let before = descriptors();
    for number in 0..300_u64 {
        let file = cache.create(place.path().join(number.to_string())).unwrap();
        file.write_at(&number.to_le_bytes(), 3).unwrap();
        drop(file);
        assert!(descriptors() <= before + 60, "{} descriptors at file {number}, {before} before", descriptors());
    }
    cache.drain().unwrap();
    // Requests opened the remaining ones.
    eventually("most descriptors are given back", || cache.stats().descriptors <= 20);
    for number in 0..300_u64 {
        let file = cache.open_read(place.path().join(number.to_string())).unwrap();
        let mut bytes = [9; 11];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes[..3], [0; 3]);
        assert_eq!(bytes[3..], number.to_le_bytes());
    }
}

#[test]
fn files_without_handles_are_bounded() {
    let (_alone, place) = (alone(), tempfile::tempdir().unwrap());
    let cache = Cache::builder().memory(16 << 20).idle_files(10).build().unwrap();
    for number in 0..50 {
        std::fs::write(place.path().join(number.to_string()), b"x").unwrap();
        cache.open_read(place.path().join(number.to_string())).unwrap().read_at(&mut [0], 0).unwrap();
    }
    assert!(cache.stats().files <= 11, "{}", cache.stats().files);
}
