use super::super::*;

const FILE_PAGES: u64 = 1 << 20;

fn balance(credit: &mut Credit, came: u64, used: u64, in_front: u64) -> u64 {
    balance_with(credit, came, used, Awaited { in_front, late: 0 })
}

fn balance_with(credit: &mut Credit, came: u64, used: u64, awaited: Awaited) -> u64 {
    credit.balance(PagesAhead { came: 7000 + came, used: 5000 + used }, FILE_PAGES, awaited).pages
}

fn new() -> Credit {
    let mut credit = Credit::default();
    assert!(credit.balance(PagesAhead { came: 7000, used: 5000 }, FILE_PAGES, Awaited::default()).none_lost);
    credit
}

#[test]
fn pages_nobody_used_are_paid_for_and_paid_back_when_somebody_does() {
    let mut credit = new();
    assert_eq!(balance(&mut credit, 0, 0, 0), FIRST_MAX);
    assert_eq!(balance(&mut credit, 20, 0, 0), FIRST_MAX - 20);
    assert_eq!(balance(&mut credit, 100, 0, 60), FIRST_MAX - 40, "60 are in front of their reader");
    assert_eq!(balance(&mut credit, 50, 31, 0), FIRST_MAX - 19);
    assert_eq!(balance(&mut credit, 1000, 0, 0), 0, "overdrawn");
}

#[test]
fn what_is_asked_for_earns_a_part_up_to_a_limit() {
    let mut credit = new();
    credit.note_missed(10 * MISSED_EARN);
    assert_eq!(balance(&mut credit, 5 * USED_EARN, 5 * USED_EARN, 0), FIRST_MAX + 15);
    credit.note_missed(1 << 30);
    assert_eq!(balance(&mut credit, 0, 0, 0), CREDIT_MAX as u64);
    assert_eq!(balance(&mut credit, 1000, 0, 0), CREDIT_MAX as u64 - 1000, "what was earned beyond is forgone");
}

#[test]
fn a_small_file_begins_with_less() {
    let begins = |file_pages| Credit::default().balance(PagesAhead::default(), file_pages, Awaited::default()).pages;
    assert_eq!([1, 4096, 1 << 30].map(begins), [FIRST_MIN, 4096 / FIRST_PART, FIRST_MAX]);
}

#[test]
fn late_calls_come_for_pages_of_their_own_stream_only() {
    let mut credit = new();
    let late = Awaited { in_front: 10, late: 50 };
    assert_eq!(balance_with(&mut credit, 40, 0, late), FIRST_MAX, "all are in front, or may be late");
    // The stream ends. The next one finds 30 of its pages unread; 10 more may find their reader again.
    credit.note_stream(PagesAhead { came: 7040, used: 5000 }, 10);
    assert_eq!(balance_with(&mut credit, 40, 0, late), FIRST_MAX - 30);
    assert_eq!(balance_with(&mut credit, 80, 10, late), FIRST_MAX - 30, "late calls may ask for 30 of the new ones");
    assert_eq!(balance_with(&mut credit, 80, 60, late), FIRST_MAX - 10 + 1, "a reader came for most");
}
