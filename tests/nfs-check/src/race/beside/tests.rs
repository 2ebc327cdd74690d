use std::time::{Duration, Instant};

use super::{Written, mib_a_second};

#[test]
fn a_stream_counts_for_the_part_of_its_steps_that_the_calls_took() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let step = |begin, end, mib: u64| Written { begin: at(begin), end: at(end), bytes: mib << 20 };
    // Half of the first, all of the second, none of the third: 30 MiB in 150 ms.
    let written = [step(0, 100, 20), step(100, 200, 20), step(300, 400, 50)];
    assert!((mib_a_second(&written, at(50), at(200)) - 200.0).abs() < 1e-6);
    assert!(mib_a_second(&written, at(200), at(300)).abs() < 1e-6);
}
