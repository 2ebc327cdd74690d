use super::*;

const fn ms(ms: u64) -> Nanos {
    Nanos(ms * Nanos::MILLISECOND)
}

// rule: reads and writes of a device are submitted by threads that may wait while it syncs, or completes nothing
#[test]
fn a_device_holds_submitters_while_it_syncs_or_completes_nothing() {
    let pace = Pace::default();
    pace.begin_at(false, ms(10_000));
    assert!(!pace.holds_submitters_at(ms(10_000)), "the idle time before is none of the request's");
    pace.begin_at(false, ms(10_003));
    assert!(pace.holds_submitters_at(ms(10_003)), "nothing was completed for 3 ms");
    pace.end_at(false, ms(10_004));
    assert!(!pace.holds_submitters_at(ms(10_005)));
    pace.begin_at(true, ms(10_005));
    assert!(pace.holds_submitters_at(ms(10_005)), "a sync is in flight");
    pace.end_at(true, ms(10_006));
    assert!(!pace.holds_submitters_at(ms(10_006)));
}
