use super::*;
use crate::magazines::Magazines;

#[test]
fn own_marks_leave_small_arenas_usable() {
    assert_eq!(Watermarks::of(64), Watermarks { min: 4, low: 8, high: 12 });
    assert_eq!(Watermarks::of(1 << 22), Watermarks { min: 1024, low: 8192, high: 12288 });
    let marks = Watermarks::of(1 << 17);
    assert_eq!([Effort::Reserve, Effort::Normal, Effort::NoRetry].map(|effort| marks.floor(effort)), [0, 64, 256]);
}

#[test]
fn marks_of_a_large_arena_are_some_half_a_hundredth() {
    for frames in (15..32).map(|bits| 1_u32 << bits) {
        let marks = Watermarks::of(frames);
        assert!(marks.high <= frames / 160 && marks.low >= BATCHES && marks.min < marks.low, "{frames}: {marks:?}");
    }
}

#[test]
fn frames_that_were_short_are_enough_once_reclaim_is_done() {
    for frames in (6..32).map(|bits| 1_u32 << bits) {
        let shared = &Magazines::new(frames.min(1 << 20)).shared;
        assert!(shared.enough <= shared.marks.high, "{frames}: {:?}", shared.marks);
    }
}
