use std::time::{Duration, Instant};

use super::Stopping;

#[test]
fn a_stop_is_given_more_time_for_what_was_written_and_not_for_waiting() {
    let (begin, mut stopping) = (Instant::now(), Stopping::default());
    let table = [
        // A disk that hangs from the beginning gets no time but the manager's own.
        (0, 0, Some(false)),
        (500, 10, None),
        (1000, 10, Some(true)),
        (2000, 10, Some(false)),
        (9000, 10, Some(false)),
        (10_000, 11, Some(true)),
        // A second drain counts from zero.
        (11_000, 0, Some(false)),
        (12_000, 4, Some(true)),
    ];
    for (ms, written_bytes, told) in table {
        assert_eq!(stopping.next(begin + Duration::from_millis(ms), written_bytes), told, "after {ms} ms");
    }
}
