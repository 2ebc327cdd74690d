use super::*;

const fn ms(ms: u64) -> Nanos {
    Nanos(10 * Nanos::SECOND + ms * Nanos::MILLISECOND)
}

// rule: the kernel's threads begin the reads of a device while it syncs slowly, or has completed nothing just now
#[test]
fn a_device_is_quick_for_a_moment_after_each_completion() {
    let pace = DevicePace::default();
    assert!(pace.is_slow_at(ms(0)), "it has completed nothing yet");
    pace.end_at(None, ms(4));
    assert!(!pace.is_slow_at(ms(6)));
    assert!(pace.is_slow_at(ms(7)), "another program may have made it hang since");
}

#[test]
fn a_device_is_slow_in_a_sync_that_takes_long_or_follows_such_a_one() {
    let pace = DevicePace::default();
    pace.syncs.begin(ms(0));
    for at in 0..4 {
        pace.end_at(None, ms(at));
    }
    assert!(!pace.is_slow_at(ms(2)), "a first sync may be quick");
    assert!(pace.is_slow_at(ms(3)), "it is not, although writes are completed");
    pace.end_at(Some(ms(0)), ms(4));
    assert!(!pace.is_slow_at(ms(4)), "no sync is in flight");
    pace.syncs.begin(ms(5));
    assert!(pace.is_slow_at(ms(5)), "the last one took long");
    pace.end_at(Some(ms(5)), ms(6));
    pace.syncs.begin(ms(7));
    assert!(!pace.is_slow_at(ms(8)), "the last one was quick");
}
