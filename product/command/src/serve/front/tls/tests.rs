use super::*;

#[test]
fn the_end_of_a_certificate_is_told_in_days() {
    let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
    let table = [
        (now + 14 * DAY, 14, "expires in 14 days: renew it"),
        (now + 2 * DAY - Duration::from_secs(1), 1, "expires in 1 day: renew it"),
        (now + Duration::from_secs(1), 0, "expires in less than a day: renew it"),
        (now - Duration::from_secs(1), -1, "expired less than a day ago, and clients refuse it: renew it"),
        (now - 3 * DAY, -4, "expired 3 days ago, and clients refuse it: renew it"),
    ];
    for (at, days, words) in table {
        assert_eq!((days_until(at, now), &*end_words(days)), (days, words));
    }
}
