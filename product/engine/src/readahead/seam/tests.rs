use super::*;

#[test]
fn pages_spent_are_paid_back_or_earned() {
    let openings = Openings::new();
    let first = openings.remaining();
    openings.spend(10);
    assert_eq!(openings.remaining(), first - 10);
    openings.pay_back(4);
    assert_eq!(openings.remaining(), first - 6);
    openings.note_missed(6 * EARNS);
    assert_eq!(openings.remaining(), first);
}

#[test]
fn the_account_has_a_limit_and_overdrawn_leaves_nothing() {
    let openings = Openings::new();
    openings.note_missed(1 << 30);
    assert_eq!(openings.remaining(), PAGES_MAX as u64);
    openings.spend(2 * PAGES_MAX as u64);
    assert_eq!(openings.remaining(), 0);
    openings.note_missed(PAGES_MAX as u64 * EARNS);
    assert_eq!(openings.remaining(), 0, "what was overdrawn comes first");
    openings.note_missed(EARNS);
    assert_eq!(openings.remaining(), 1);
}

#[test]
fn a_large_call_is_granted_as_much_again_while_something_is_left() {
    let openings = Openings::new();
    assert_eq!(openings.granted(1), PAGES_MAX as u64);
    assert_eq!(openings.granted(256), 256);
    openings.spend(256);
    assert_eq!(openings.granted(256), 0);
}
