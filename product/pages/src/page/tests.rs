use super::*;

// rule: 3: page states change as the table says
// kept in: `product/pages/src/page/mod.rs`
#[test]
fn every_row_of_the_table_of_transitions() {
    let clean = PRESENT | UPTODATE;
    let legal_steps = [
        (0, PRESENT | READING),
        (0, PRESENT | DIRTY),
        (0, clean),
        (PRESENT | READING, clean),
        (PRESENT | READING, DETACHED | READING),
        (DETACHED | READING, DETACHED),
        (clean, clean | DIRTY),
        (PRESENT, PRESENT | READING),
        (PRESENT | DIRTY, PRESENT | DIRTY | READING),
        (clean | DIRTY, PRESENT | UPTODATE | WRITEBACK),
        (PRESENT | WRITEBACK, clean),
        (PRESENT | WRITEBACK, PRESENT | DIRTY | FAILED),
        (PRESENT | WRITEBACK, DETACHED | WRITEBACK),
        (clean, DETACHED),
        (PRESENT | DIRTY, DETACHED),
        (DETACHED, 0),
    ];
    for (from, to) in legal_steps {
        assert!(is_legal(from, to), "{from:#x} to {to:#x}");
    }
    let illegal_steps = [
        (clean, clean | DIRTY | WRITEBACK),
        (0, PRESENT | WRITEBACK),
        (clean, 0),
        (clean, clean | WRITEBACK),
        (PRESENT | DIRTY, 0),
        (PRESENT | WRITEBACK, PRESENT | WRITEBACK | READING),
        (DETACHED, PRESENT),
        (DETACHED, DETACHED | DIRTY),
        (0, DIRTY),
        (clean, clean | DETACHED),
    ];
    for (from, to) in illegal_steps {
        assert!(!is_legal(from, to), "{from:#x} to {to:#x}");
    }
}

#[test]
fn holders_do_not_disturb_each_other() {
    let pages = PageTable::new(1);
    let frame = afflux_frames::FrameId::new(0);
    pages.occupy(frame, PageIdentity { file: 3, index: 9 }, PRESENT | UPTODATE);
    for _ in 0..1000 {
        let _ = pages.hold(frame, PIN);
    }
    let word = pages.hold(frame, GUARD);
    assert!(!word.is_guarded() && word.is_held());
    assert!(pages.word(frame).is_guarded() && pages.word(frame).is_stable());
    let _ = pages.hold(frame, WRITER);
    assert!(pages.word(frame).is_being_written_to() && !pages.word(frame).has_other_writers());
    assert!(!pages.unhold(frame, WRITER).has(DETACHED) && !pages.end_guard(frame).0);
    for _ in 0..1000 {
        assert!(!pages.unhold(frame, PIN).has(DETACHED));
    }
    assert_eq!(pages.word(frame).0, PRESENT | UPTODATE);
}

#[test]
fn a_detached_frame_is_released_once_by_the_last_holder() {
    let pages = PageTable::new(1);
    let frame = afflux_frames::FrameId::new(0);
    pages.occupy(frame, PageIdentity { file: 0, index: 0 }, PRESENT | UPTODATE);
    let _ = pages.hold(frame, PIN);
    assert!(!pages.try_detach_idle(frame), "held");
    pages.detach(frame);
    assert!(!pages.try_release(frame), "still held");
    assert!(pages.unhold(frame, PIN).has(DETACHED), "tells the holder to try");
    assert!(pages.try_release(frame));
    assert!(!pages.try_release(frame));
}

#[test]
fn a_passing_pin_survives_reuse_of_the_frame() {
    let pages = PageTable::new(1);
    let frame = afflux_frames::FrameId::new(0);
    let late = pages.hold(frame, PIN);
    assert!(!late.has(PRESENT));
    pages.occupy(frame, PageIdentity { file: 1, index: 2 }, PRESENT | READING);
    assert!(!pages.unhold(frame, PIN).has(DETACHED));
    assert_eq!(pages.word(frame).flags(), PRESENT | READING);
}

#[test]
fn a_page_is_not_claimed_under_a_writer() {
    let pages = PageTable::new(1);
    let frame = afflux_frames::FrameId::new(0);
    pages.occupy(frame, PageIdentity { file: 0, index: 0 }, PRESENT | UPTODATE | DIRTY);
    let _ = pages.hold(frame, WRITER);
    assert!(pages.change_unless(frame, PRIOR, DIRTY, WRITEBACK).is_err());
    assert!(!pages.unhold(frame, WRITER).has(DETACHED));
    assert!(pages.change_unless(frame, PRIOR, DIRTY, WRITEBACK).is_ok());
    assert!(pages.hold(frame, WRITER).is_stable(), "who comes after it sees that the page is stable");
}

#[test]
fn a_copy_stands_until_the_frame_is_used_anew_however_often() {
    let pages = PageTable::new(1);
    let frame = afflux_frames::FrameId::new(0);
    let identity = PageIdentity { file: 7, index: (1 << 51) - 1 };
    pages.occupy(frame, identity, PRESENT | UPTODATE);
    let first = pages.begin_optimistic_read(frame, identity).expect("the page is there");
    assert!(first.is_valid());
    // More reuses than the word counts.
    for reuse in 1..5000 {
        pages.detach(frame);
        assert!(first.is_valid() == (reuse == 1), "a page that goes has the bytes that it had");
        assert!(pages.try_release(frame) && !pages.try_release(frame));
        assert!(pages.begin_optimistic_read(frame, identity).is_none());
        pages.occupy(frame, identity, PRESENT | UPTODATE);
        assert_eq!(pages.identity(frame), identity);
        assert_eq!(pages.word(frame).flags(), PRESENT | UPTODATE);
        let now = pages.begin_optimistic_read(frame, identity).expect("it is back");
        assert!(now.is_valid() && !first.is_valid(), "after {reuse} reuses");
    }
}
