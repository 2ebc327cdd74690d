use afflux_frames::Frames;

use super::*;
use crate::eviction::EvictionKind;

fn places() -> Arc<GuardPlaces> {
    GuardPlaces::new(&Arc::new(PageCache::new(
        Frames::new(1 << 20).expect("a mebibyte"),
        EvictionKind::default(),
        None,
    )))
}

#[test]
fn a_small_limit_is_kept_to_the_page_wherever_guards_are_counted() {
    let places = places();
    let at = |number| PlaceNumber(number % PLACES);
    let mut guards: Vec<_> = (0..100).map(|page| places.admit(at(page), 100).expect("room")).collect();
    assert!(places.admit(at(3), 100).is_none() && places.admit(at(9), 100).is_none());
    assert_eq!(places.pages(), 100);
    guards.pop();
    assert!(places.admit_many(at(9), 2, 100).is_none() && places.admit_many(at(9), 1, 100).is_some());
    assert_eq!(places.pages(), 99);
    guards.truncate(95);
    let many = places.admit_many(at(7), 5, 100).expect("room");
    assert!(places.pages() == 100 && places.admit(at(7), 100).is_none());
    many.forget_more(4);
    drop(many);
    assert_eq!(places.pages(), 95);
}

#[test]
fn a_large_limit_is_passed_by_no_more_than_the_slack() {
    for max in [2_000, 8_192, 100_000] {
        let (places, mut guards) = (places(), Vec::new());
        for page in 0..2 * max {
            guards.extend(places.admit(PlaceNumber(page as usize % PLACES), max));
        }
        let held = places.pages();
        assert_eq!(held, guards.len() as u64);
        assert!(held >= max && held < max + max / SLACK_PART, "{held} of {max}");
        assert!(held < max + PLACES as u64 * SLACK_PAGES_MAX, "{held} of {max}");
        assert!(places.admit_many(PlaceNumber(0), max, max).is_none(), "many at once are always asked about");
        assert_eq!(places.pages(), held);
    }
}
