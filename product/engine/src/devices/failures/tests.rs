use super::*;

fn amount(pages: u64, runs: u64) -> Amount {
    Amount { pages, runs }
}

fn failed(pages: u64, runs: u64) -> FileAmounts {
    FileAmounts { failed: amount(pages, runs), ..FileAmounts::default() }
}

#[test]
fn the_sums_follow_the_files_and_take_no_room_up_to_the_bound() {
    let unwritable = Unwritable::default();
    unwritable.set_most(100);
    assert!(!unwritable.has_any() && unwritable.roomless() == amount(0, 0));
    unwritable.note(failed(0, 0), failed(60, 6));
    unwritable.note(failed(0, 0), failed(40, 4));
    assert_eq!(unwritable.roomless(), amount(100, 10));
    unwritable.note(failed(40, 4), failed(140, 14));
    assert_eq!(unwritable.roomless(), amount(100, 10), "half of 200 pages in 20 runs");
    unwritable.note(failed(60, 6), failed(0, 0));
    unwritable.note(failed(140, 14), failed(1, 1));
    assert!(unwritable.has_any() && unwritable.roomless() == amount(1, 1));
}

#[test]
fn writes_that_do_not_end_take_room_while_the_device_hangs() {
    let stalled = Arc::new(AtomicBool::new(false));
    let unwritable = Unwritable::new(Arc::clone(&stalled));
    unwritable.set_most(100);
    unwritable.note(failed(0, 0), FileAmounts { aside: amount(30, 3), ..FileAmounts::default() });
    unwritable.note(failed(0, 0), failed(10, 1));
    assert_eq!(unwritable.roomless(), amount(40, 4));
    stalled.store(true, Ordering::Relaxed);
    assert_eq!(unwritable.roomless(), amount(10, 1));
    assert!(unwritable.are_all(40) && !unwritable.are_all(41), "one writer tries");
}

#[test]
fn withheld_pages_take_no_room_and_no_writer_tries_because_of_them() {
    let unwritable = Unwritable::default();
    unwritable.set_most(100);
    unwritable.note(failed(0, 0), FileAmounts { withheld_pages: 20, ..FileAmounts::default() });
    unwritable.note(failed(0, 0), failed(10, 1));
    assert!(unwritable.has_any() && unwritable.withheld_pages() == 20);
    assert_eq!(unwritable.roomless(), amount(30, 1));
    assert!(unwritable.are_all(10) && !unwritable.are_all(11), "a try would not write them");
}
