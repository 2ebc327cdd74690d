//! rule: a stream that is read once leaves pages in use alone

use afflux_engine::eviction::{Admitted, Offline};

use super::*;

/// A cache with pages 0, 1, ..., each used once, for which they came; and their frames.
fn clean(frames: u32) -> (Offline, Vec<FrameId>) {
    let mut cache = Offline::new(TWO_LISTS, frames);
    let frames = (0..frames).map(|page| cache.admit(u64::from(page), Admitted::Demand).unwrap()).collect();
    (cache, frames)
}

fn evicted(cache: &mut Offline, want: usize) -> Vec<u64> {
    let mut pages = Vec::new();
    cache.evict(want, |page| pages.push(page));
    pages
}

#[test]
fn the_oldest_unused_pages_go_first() {
    let (mut cache, frames) = clean(8);
    cache.read(frames[1]);
    assert_eq!((evicted(&mut cache, 3), cache.scanned()), (vec![0, 2, 3], 4));
    assert_eq!(evicted(&mut cache, 100), [4, 5, 6, 7]);
    assert_eq!(evicted(&mut cache, 100), [1], "the active list moves down when it is the longer");
}

#[test]
fn dirty_pages_are_parked_until_they_are_clean() {
    let (mut cache, frames) = clean(4);
    cache.write(frames[0]);
    assert_eq!(evicted(&mut cache, 4), [1, 2, 3]);
    assert_eq!(evicted(&mut cache, 4), []);
    cache.clean(&frames[..1]);
    assert_eq!(evicted(&mut cache, 4), [], "it was used twice, and is active first");
    assert_eq!(evicted(&mut cache, 4), [0]);
}

#[test]
fn the_number_of_pages_looked_at_is_bounded() {
    let (mut cache, frames) = clean(512);
    frames.iter().for_each(|frame| cache.read(*frame));
    assert_eq!((evicted(&mut cache, 4), cache.scanned()), (vec![], 256));
}

#[test]
fn a_stream_that_is_read_once_leaves_pages_in_use_alone() {
    let (mut cache, frames) = clean(64);
    frames[..16].iter().for_each(|frame| cache.read(*frame));
    let mut next = 64;
    for _ in 0..20 {
        let gone = evicted(&mut cache, 8);
        assert!(!gone.is_empty() && gone.iter().all(|page| *page >= 16), "{gone:?}");
        for _ in gone {
            cache.admit(next, Admitted::Demand).unwrap();
            next += 1;
        }
    }
}
