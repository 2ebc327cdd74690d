//! The law's vectors for debts, and its properties.

mod curve;

use super::*;

const SECOND: u64 = 1_000_000_000;
const BAND: Band = Band { end_ns: SECOND };
/// A backlog at which a unit of cost waits for one.
const MIDDLE: u64 = 875 * MILLISECOND;

fn owing(debt_ns: u64) -> PayerDebt {
    let mut payer = PayerDebt::default();
    payer.charge(debt_ns);
    payer
}

#[test]
fn waits_are_those_of_the_law() {
    assert_eq!(owing(2_621_440).verdict(BAND, MIDDLE, 1), Verdict::Pause { ns: 2_621_440, of_ns: 2_621_440 });
    let many = owing(2_621_440).verdict(BAND, MIDDLE, 100);
    assert_eq!(many, Verdict::Pause { ns: PAUSE_NS_MAX, of_ns: 262_144_000 });
    assert_eq!(PayerDebt::wait_ns(2_621_440, 4266, 1), 10_920_960);
    assert_eq!(owing(21_845).verdict(BAND, MIDDLE, 1), Verdict::Continue);
}

#[test]
fn a_pause_pays_its_part() {
    let mut payer = owing(2_621_440);
    payer.slept(100 * MILLISECOND, 262_144_000);
    assert_eq!(payer.debt_ns(), 1_621_440);
    payer.slept(u64::MAX, 1);
    assert_eq!(payer.debt_ns(), 0, "a late wake-up is no credit");
}

#[test]
fn below_the_free_line_debt_is_forgiven_and_credit_is_not() {
    let mut payer = owing(SECOND);
    assert_eq!(payer.verdict(BAND, 750 * MILLISECOND, 1), Verdict::Continue);
    assert_eq!(payer.debt_ns(), 0);
    payer.idled(SECOND, BAND, BAND.entry(MIDDLE), 1);
    payer.verdict(BAND, 0, 1);
    assert_eq!(payer.debt_ns(), -125_000_000);
}

#[test]
fn who_is_light_enters_a_band_that_is_used_up_and_others_wait_in_the_queue() {
    let mut light = PayerDebt::default();
    light.idled(50 * MILLISECOND, BAND, BAND.entry(MIDDLE), 1);
    assert_eq!(light.debt_ns(), -50_000_000);
    light.charge(4096);
    assert_eq!(light.verdict(BAND, SECOND, 1), Verdict::Continue);
    assert_eq!(light.verdict(BAND, SECOND * 9 / 8, 1), Verdict::Queue);
    assert_eq!(owing(1).verdict(BAND, SECOND, 1), Verdict::Queue);
}

#[test]
fn credit_never_exceeds_its_part_nor_takes_credit_away() {
    let mut payer = PayerDebt::default();
    (0..10).for_each(|_| payer.idled(SECOND, BAND, BAND.entry(MIDDLE), 1));
    assert_eq!(payer.debt_ns(), -125_000_000);
    // Many more wait now, so that the most is less; what was earned stays.
    payer.idled(SECOND, BAND, BAND.entry(MIDDLE), 1000);
    assert_eq!(payer.debt_ns(), -125_000_000);
}

#[test]
fn new_prices_forgive_debts_of_old_ones() {
    let mut payer = owing(SECOND);
    payer.repriced(0);
    assert_eq!(payer.debt_ns(), SECOND as i64);
    payer.repriced(1);
    assert_eq!(payer.debt_ns(), 0);
}

/// Each of N payers in the middle of the band gets 1/N of the device: a cost of 1 takes N to pay.
#[test]
fn in_the_middle_of_the_band_the_device_is_divided_evenly() {
    for payers in [1, 2, 7, 100] {
        let Verdict::Pause { of_ns, .. } = owing(4 * MILLISECOND).verdict(BAND, MIDDLE, payers) else { panic!() };
        assert_eq!(of_ns, 4 * MILLISECOND * payers);
    }
}

#[test]
fn waits_grow_with_the_debt_and_with_those_who_wait() {
    let wait = |debt, payers| match owing(debt).verdict(BAND, MIDDLE, payers) {
        Verdict::Continue => 0,
        Verdict::Pause { of_ns, .. } => of_ns,
        Verdict::Queue => u64::MAX,
    };
    for step in 1..200 {
        assert!(wait(step * 50_000, 3) >= wait((step - 1) * 50_000, 3));
        assert!(wait(MILLISECOND, step + 1) >= wait(MILLISECOND, step));
    }
}

#[test]
fn what_was_dirtied_below_the_free_line_uses_up_credit_and_leaves_no_debt() {
    let mut payer = owing(0);
    payer.idled(SECOND, BAND, BAND.entry(MIDDLE), 1);
    let credit = payer.debt_ns();
    assert!(credit < 0);
    payer.charge_forgiven(1000);
    assert_eq!(payer.debt_ns(), credit + 1000);
    payer.charge_forgiven(SECOND);
    assert_eq!(payer.debt_ns(), 0);
    payer.charge(1000);
    payer.charge_forgiven(0);
    assert_eq!(payer.debt_ns(), 1000, "nothing was dirtied so");
}
