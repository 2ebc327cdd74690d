use super::*;

#[test]
fn requests_that_fail_together_are_one_try() {
    let mut failures = FileFailures::default();
    assert_eq!(failures.backs_off(Nanos(0)), None);
    for (now, in_row, retry_at) in [(10, 1, 110), (20, 1, 110), (110, 2, 312), (310, 2, 312), (400, 3, 808)] {
        let first = failures.error().is_none();
        assert_eq!(failures.insert_error(DeviceError::Hung), first);
        failures.try_fails(Nanos(now), |tries| u64::from(100 + tries) << tries);
        let until = (Nanos(retry_at) > Nanos(now)).then_some(Nanos(retry_at));
        assert_eq!((failures.in_row(), failures.backs_off(Nanos(now))), (in_row, until), "at {now}");
    }
    assert!(failures.is_failing());
    failures.write_succeeds(7);
    assert_eq!((failures.is_failing(), failures.backs_off(Nanos(401)), failures.count()), (false, None, 5));
}

#[test]
fn pages_count_as_written_until_the_next_failure() {
    let mut failures = FileFailures::default();
    [3, 4].into_iter().for_each(|pages| failures.write_succeeds(pages));
    assert_eq!(failures.written_pages(), 7);
    failures.try_fails(Nanos(1), |_| 0);
    assert_eq!(failures.written_pages(), 0);
    failures.write_succeeds(1);
    assert_eq!(failures.written_pages(), 1);
}

#[test]
fn failed_pages_are_reported_as_failing_once_the_file_keeps_failing() {
    let mut failures = FileFailures::default();
    failures.add_pages(5);
    let report = |failures: &mut FileFailures| {
        let (before, now) = failures.report();
        ((before.all, before.failing), (now.all, now.failing))
    };
    assert_eq!(report(&mut failures), ((0, 0), (5, 0)));
    (0..3).for_each(|now| failures.try_fails(Nanos(now), |_| 0));
    failures.remove_pages(1);
    assert_eq!(report(&mut failures), ((5, 0), (4, 4)));
}
