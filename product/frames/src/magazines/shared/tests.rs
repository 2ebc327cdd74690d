use super::*;

#[test]
fn own_marks_leave_small_arenas_usable() {
    assert_eq!(Watermarks::of(64), Watermarks { min: 4, low: 8, high: 12 });
    assert_eq!(Watermarks::of(1 << 19), Watermarks { min: 1024, low: 8192, high: 12288 });
    let marks = Watermarks::of(1 << 14);
    assert_eq!([Effort::Reserve, Effort::Normal, Effort::NoRetry].map(|effort| marks.floor(effort)), [0, 64, 256]);
}
