use afflux_frames::Frames;

use super::*;
use crate::eviction::EvictionKind;

fn slots() -> Arc<GuardSlots> {
    GuardSlots::new(&Arc::new(PageCache::new(Frames::new(1 << 20).expect("a mebibyte"), EvictionKind::default(), None)))
}

#[test]
fn a_small_limit_is_kept_to_the_page_wherever_guards_are_counted() {
    let slots = slots();
    let at = |number| GuardIndex(number % SLOTS);
    let mut guards: Vec<_> = (0..100).map(|page| slots.admit(at(page), 100).expect("room")).collect();
    assert!(slots.admit(at(3), 100).is_none() && slots.admit(at(9), 100).is_none());
    assert_eq!(slots.pages(), 100);
    guards.pop();
    assert!(slots.admit_many(at(9), 2, 100).is_none() && slots.admit_many(at(9), 1, 100).is_some());
    assert_eq!(slots.pages(), 99);
    guards.truncate(95);
    let many = slots.admit_many(at(7), 5, 100).expect("room");
    assert!(slots.pages() == 100 && slots.admit(at(7), 100).is_none());
    many.forget_more(4);
    drop(many);
    assert_eq!(slots.pages(), 95);
}

#[test]
fn a_large_limit_is_passed_by_no_more_than_the_slack() {
    for max in [2_000, 8_192, 100_000] {
        let (slots, mut guards) = (slots(), Vec::new());
        for page in 0..2 * max {
            guards.extend(slots.admit(GuardIndex(page as usize % SLOTS), max));
        }
        let held = slots.pages();
        assert_eq!(held, guards.len() as u64);
        assert!(held >= max && held < max + max / SLACK_PART, "{held} of {max}");
        assert!(held < max + SLOTS as u64 * SLACK_PAGES_MAX, "{held} of {max}");
        assert!(slots.admit_many(GuardIndex(0), max, max).is_none(), "many at once are always asked about");
        assert_eq!(slots.pages(), held);
    }
}
