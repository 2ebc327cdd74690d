use afflux_device::policy::PolicyKnobs;
use afflux_device::settings::{Settings, TableKnob};

use super::*;

fn values(own: PolicyKnobs) -> KnobValues {
    KnobValues { own, ..KnobValues::default() }
}

#[test]
fn knobs_at_their_defaults_leave_everything_to_the_law() {
    let knobs = Knobs::of(&values(PolicyKnobs::defaults(&KNOBS)));
    let law = Knobs {
        budget_ns: 1_000_000_000,
        in_flight_ns: 30_000_000,
        background_ns: None,
        background_bytes: None,
        expire_ns: 30_000_000_000,
        portion_bytes: 8 << 20,
        idle: true,
    };
    assert_eq!(knobs, law);
}

#[test]
fn what_is_set_stands_in_place_of_what_follows() {
    let own = PolicyKnobs::defaults(&KNOBS);
    let of = |knob, value| Knobs::of(&values(own.with(knob, value)));
    assert_eq!(of(BudgetKnob::BudgetMs, 200).budget_ns, 200_000_000);
    assert_eq!(of(BudgetKnob::BudgetMs, 200).in_flight_ns, 20_000_000, "a tenth");
    assert_eq!(of(BudgetKnob::BudgetMs, 60_000).in_flight_ns, 30_000_000, "and no more than that");
    assert_eq!(of(BudgetKnob::InFlightMs, 500).in_flight_ns, 500_000_000);
    let set = Knobs::of(&KnobValues { background_centisecs: 50, ..values(own) });
    assert_eq!(set.background_ns, Some(500_000_000), "in place of the law's part");
    assert!(!set.idle, "and of writing in idle time");
    assert!(!of(BudgetKnob::IdleWriteback, 0).idle);
    assert!(!Knobs::of(&KnobValues { expire_ns: u64::MAX, ..values(own) }).idle, "nothing gets old");
}

#[test]
fn nonsense_is_told_with_the_value_and_the_range() {
    let mut settings = Settings::with([&KNOBS]);
    for (text, message) in [
        ("budget_ms=0", "budget_ms: 0 is out of range (200 to 60000 milliseconds; now 1000)"),
        ("budget_ms=31536000000", "budget_ms: 31536000000 is out of range (200 to 60000 milliseconds; now 1000)"),
        ("budget_ms=61s", "budget_ms: 61000 is out of range (200 to 60000 milliseconds; now 1000)"),
        (
            "budget_ms=-1",
            "budget_ms: '-1' is not a number, or a time such as 500ms, 30s or 5min (200 to 60000 milliseconds; now 1000)",
        ),
        (
            "budget_ms=1m",
            "budget_ms: '1m' is not a number, or a time such as 500ms, 30s or 5min (200 to 60000 milliseconds; now 1000)",
        ),
        (
            "budget_ms=",
            "budget_ms: '' is not a number, or a time such as 500ms, 30s or 5min (200 to 60000 milliseconds; now 1000)",
        ),
        ("budget=1000", "there is no knob 'budget' (did you mean 'budget_ms'?)"),
        (
            "writeback_in_flight_ms=501",
            "writeback_in_flight_ms: 501 is out of range (0, or 10 to 500 milliseconds; now 0)",
        ),
    ] {
        assert_eq!(settings.set_text(text).unwrap_err().to_string(), message);
    }
    assert_eq!(settings.get(BudgetKnob::BudgetMs), BudgetKnob::BudgetMs.info().default, "the old value stays");
}
