#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use super::*;

const SIZES: Sizes = Sizes { pages: 4096, frames: 256, touches: 40_000 };

fn made(name: &str) -> Vec<Touch> {
    generator_named(name).unwrap().sequence(SIZES, 1).touches
}

fn writes(touches: &[Touch]) -> u64 {
    touches.iter().filter(|touch| touch.write).count() as u64
}

#[test]
fn every_generator_makes_what_is_asked_for_and_the_same_again() {
    for generator in GENERATORS {
        let sequence = generator.sequence(SIZES, 7);
        assert_eq!(sequence.touches.len() as u64, SIZES.touches, "{}", generator.name);
        assert_eq!(sequence, generator.sequence(SIZES, 7), "{}", generator.name);
        assert!(u64::from(sequence.pages()) <= SIZES.pages + SIZES.touches, "{}", generator.name);
        assert!(sequence.files[0] == 0 && sequence.files.is_sorted());
        assert!(!generator.about.is_empty());
    }
    assert_ne!(made("zipf-0.8"), generator_named("zipf-0.8").unwrap().sequence(SIZES, 2).touches);
    assert!(generator_named("lru").err().unwrap().contains("zipf-0.8"));
}

#[test]
fn thirty_percent_write_where_it_is_said() {
    for name in ["zipf-0.8", "zipf-1.2", "shifting"] {
        let percent = 100 * writes(&made(name)) / SIZES.touches;
        assert!((28..=32).contains(&percent), "{name}: {percent}");
    }
    for name in ["loop", "recency", "independent", "streams"] {
        assert_eq!(writes(&made(name)), 0, "{name}");
    }
}

#[test]
fn the_loop_is_a_tenth_larger_than_the_cache() {
    let touches = made("loop");
    assert_eq!(touches.iter().map(|touch| touch.page).max(), Some(280));
    assert!(touches.windows(2).all(|two| two[1].page == (two[0].page + 1) % 281));
}

#[test]
fn a_scan_touches_each_of_its_pages_equally_often() {
    let mut counts = BTreeMap::new();
    let hot = SIZES.pages as u32 / 8;
    for touch in made("scan-hot").iter().filter(|touch| touch.page >= hot) {
        *counts.entry(touch.page).or_insert(0) += 1;
    }
    let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
    assert!(counts.len() as u64 == SIZES.pages * 7 / 8 && most - least <= 1, "{least} to {most}");
}

#[test]
fn a_stream_reads_its_pages_in_order_and_once() {
    let touches = made("streams");
    let read: Vec<u32> = touches.iter().filter(|touch| touch.ahead > 0).map(|touch| touch.page).collect();
    assert_eq!(read.len() as u64, SIZES.touches / 2);
    let mut sorted = read.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), read.len(), "each once");
    let files = generator_named("streams").unwrap().sequence(SIZES, 1).files;
    assert_eq!(files.len(), 1 + 4, "the hot set, and a file for each 1,024 pages");
    for file in &files[1..] {
        let end = files.iter().find(|other| *other > file).copied().unwrap_or(u32::MAX);
        let own: Vec<u32> = read.iter().copied().filter(|page| (*file..end).contains(page)).collect();
        assert!(own[0] == *file && own.windows(2).all(|two| two[1] == two[0] + 1));
    }
}

#[test]
fn small_reads_touch_a_page_four_times_in_a_row() {
    assert!(made("small-reads").chunks(4).all(|four| four.iter().all(|touch| touch.page == four[0].page)));
}

/// Of the repeated touches, the share whose distance is between these 1,000ths of the number of pages.
fn again_within(touches: &[Touch], from: u64, to: u64) -> f64 {
    let (mut last, mut within, mut all) = (BTreeMap::new(), 0, 0);
    for (at, touch) in touches.iter().enumerate() {
        if let Some(before) = last.insert(touch.page, at) {
            let time = (at - before) as u64 * 1000 / SIZES.pages;
            all += 1;
            within += u64::from((from..to).contains(&time));
        }
    }
    within as f64 / all as f64
}

#[test]
fn times_between_references_are_those_of_the_histogram() {
    let touches = made("recency");
    let (short, gap, middle) =
        (again_within(&touches, 8, 22), again_within(&touches, 24, 90), again_within(&touches, 90, 170));
    assert!((0.40..0.55).contains(&short) && gap < 0.02 && (0.2..0.35).contains(&middle), "{short} {gap} {middle}");
    let mixed = again_within(&made("recency+independent"), 24, 90);
    assert!(mixed > 0.05, "what is drawn by itself fills the gap: {mixed}");
}

#[test]
fn what_is_drawn_by_itself_has_its_shares() {
    let touches = made("independent");
    let share = |below: u64| touches.iter().filter(|touch| u64::from(touch.page) < below).count() as f64 / 40_000.0;
    assert!((0.58..0.62).contains(&share(81)) && (0.88..0.92).contains(&share(81 + 409)), "{}", share(490));
}

#[test]
fn the_working_set_moves() {
    let touches = made("shifting");
    let set = |range: std::ops::Range<usize>| {
        let mut pages: Vec<u32> = touches[range].iter().map(|touch| touch.page).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    };
    // A period is 640 touches.
    let (first, next, late) = (set(0..600), set(600..640), set(6400..7000));
    let common = |one: &[u32], other: &[u32]| {
        one.iter().filter(|page| other.binary_search(page).is_ok()).count() as f64 / one.len() as f64
    };
    assert!(
        common(&next, &first) > 0.8 && common(&late, &first) < 0.2,
        "{} {}",
        common(&next, &first),
        common(&late, &first)
    );
}

#[test]
fn a_scan_beside_a_set_touches_each_of_its_pages_once() {
    for name in ["zipf+scan", "loop+scan"] {
        let scanned: Vec<u64> =
            made(name).iter().map(|touch| u64::from(touch.page)).filter(|page| *page >= SIZES.pages).collect();
        assert_eq!(scanned, (SIZES.pages..SIZES.pages + SIZES.touches / 8).collect::<Vec<_>>(), "{name}");
    }
    let looped = made("loop+scan").iter().map(|touch| u64::from(touch.page)).filter(|page| *page < SIZES.pages).max();
    assert_eq!(looped, Some(SIZES.pages * 9 / 10 - 1));
}

#[test]
fn phases_have_a_third_of_the_pages_in_common() {
    let touches = made("two-phases");
    let (first, second) = (&touches[..SIZES.pages as usize], &touches[SIZES.pages as usize * 3 / 2..][..4096]);
    assert!(first.iter().all(|touch| touch.page < 2731) && second.iter().all(|touch| touch.page >= 1365));
}
