use super::*;

#[test]
fn a_small_limit_is_kept_to_the_page_wherever_guards_are_counted() {
    let counts = GuardCounts::new();
    for page in 0..100 {
        assert!(counts.admit(page % PLACES, 1, 100));
    }
    assert!(!counts.admit(3, 1, 100) && !counts.admit(9, 1, 100));
    assert_eq!(counts.pages(), 100);
    counts.forget(3, 1);
    assert!(!counts.admit(9, 2, 100) && counts.admit(9, 1, 100));
    (0..5).for_each(|_| counts.forget(0, 1));
    assert_eq!(counts.pages(), 95);
}

#[test]
fn a_large_limit_is_passed_by_no_more_than_the_slack() {
    let (counts, max) = (GuardCounts::new(), EXACT_BELOW_PAGES);
    let mut refused = 0;
    for page in 0..2 * max {
        refused += u64::from(!counts.admit(page as usize % PLACES, 1, max));
    }
    assert!(counts.pages() >= max, "{} of {max}", counts.pages());
    assert!(counts.pages() < max + PLACES as u64 * SLACK_PAGES, "{} of {max}", counts.pages());
    assert_eq!(counts.pages() + refused, 2 * max);
    assert!(!counts.admit(0, max, max) && counts.pages() + refused == 2 * max, "many at once are always asked about");
}
