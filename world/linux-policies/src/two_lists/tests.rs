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

/// Pages of a GiB.
const GIB: u64 = 1 << GIB_BITS;

#[test]
fn the_active_list_may_be_longer_the_more_memory_there_is() {
    for (pages, ratio) in [(0, 1), (GIB - 1, 1), (GIB, 3), (4 * GIB, 6), (10 * GIB, 10), (100 * GIB, 31)] {
        assert_eq!(active_ratio(pages), ratio, "{pages}");
    }
}

/// How many pages of a set that takes two thirds of the cache are left after a stream of three times the cache.
fn left_of_hot_set(frames: u32) -> (u32, u32) {
    let hot = frames / 3 * 2;
    let (mut cache, in_frames) = clean(frames);
    (0..3).for_each(|_| in_frames[..hot as usize].iter().for_each(|frame| cache.read(*frame)));
    let (mut next, mut left) = (u64::from(frames), hot);
    for _ in 0..frames / 10 {
        cache.evict(32, |page| left -= u32::from(page < u64::from(hot)));
        while cache.has_free_frame() {
            cache.admit(next, Admitted::Demand).unwrap();
            next += 1;
        }
    }
    (left, hot)
}

#[test]
fn a_set_of_two_thirds_survives_a_stream_with_a_gib_and_not_with_less() {
    let (left, hot) = left_of_hot_set(GIB as u32 + 4096);
    assert_eq!(left, hot, "the inactive list may be a third of the active one");
    let (left, hot) = left_of_hot_set(GIB as u32 / 8);
    assert!(left < hot, "the lists are kept equal: {left} of {hot} pages are left");
}

#[test]
fn a_page_that_comes_back_soon_is_active_at_once_unless_it_is_rewritten() {
    for (why, goes_later) in [(Admitted::Demand, true), (Admitted::Written, false)] {
        let (mut cache, frames) = clean(64);
        // Half is in use, so that the active list has something.
        frames[..32].iter().for_each(|frame| cache.read(*frame));
        let gone = evicted(&mut cache, 4);
        let back = cache.admit(gone[0], why).unwrap();
        cache.clean(&[back]);
        let rest = evicted(&mut cache, 29);
        assert_eq!(!rest.contains(&gone[0]), goes_later, "{why:?}: {rest:?}");
    }
}

#[test]
fn a_page_that_comes_back_late_is_as_any_other() {
    let (mut cache, _) = clean(16);
    let gone = evicted(&mut cache, 16);
    for page in 100..116 {
        cache.admit(page, Admitted::Demand).unwrap();
    }
    evicted(&mut cache, 1);
    cache.admit(gone[0], Admitted::Demand).unwrap();
    assert_eq!(evicted(&mut cache, 16).last(), Some(&gone[0]), "no page is active, so no distance is short");
}
