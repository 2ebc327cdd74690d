use super::*;

const L: Cost = 100 * MILLISECOND;
const BOUND: Ended =
    Ended { latency_ns: 0, in_flight: 1000, held_back: true, is_large: false, bytes: 0, is_too_many: false };
/// The first completion, which shows that calls of 80 ms are the device's nature: from 121 ms on they are slow.
const ALONE: Ended = Ended {
    latency_ns: 80 * MILLISECOND,
    in_flight: 1,
    held_back: false,
    is_large: true,
    bytes: 1 << 20,
    is_too_many: false,
};

/// Completes `count` requests like this one.
fn run(device: &mut Parallelism, now_ns: u64, count: u64, ended: Ended) {
    (0..count).for_each(|_| device.ended(now_ns, L, &ended));
}

#[test]
fn rounds_by_table() {
    let mut device = Parallelism::new(100);
    run(&mut device, 0, 4, ALONE);
    // Latency in ms, held back, and p after p such completions.
    let table = [
        (100, true, 8),
        (100, false, 8),
        (99, true, 16),
        (500, false, 16),
        (1, true, 32),
        (121, true, 28),
        (121, true, 24),
        (100, true, 27),
        (100, true, 30),
        (100, false, 30),
        (100, true, 33),
        (1000, true, 28),
    ];
    for (number, (latency_ms, held_back, p)) in table.into_iter().enumerate() {
        let ended = Ended { latency_ns: latency_ms * MILLISECOND, held_back, ..BOUND };
        let before = device.requests();
        run(&mut device, 0, before - 1, ended);
        assert_eq!(device.requests(), before, "a round is p completions");
        run(&mut device, 0, 1, ended);
        assert_eq!(device.requests(), p, "round {number}");
    }
}

#[test]
fn p_stays_within_the_devices_depth_and_above_nothing() {
    for (depth, least, most) in [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4), (50, 1, 50)] {
        let mut device = Parallelism::new(depth);
        run(&mut device, 0, 4, ALONE);
        run(&mut device, 0, 1000, BOUND);
        assert_eq!(device.requests(), most);
        run(&mut device, 0, 10_000, Ended { latency_ns: 10 * L, ..BOUND });
        assert_eq!(device.requests(), least);
        run(&mut device, 0, 10_000, BOUND);
        assert_eq!(device.requests(), most, "it grows again");
    }
}

#[test]
fn a_device_whose_requests_are_slow_by_nature_is_not_taken_for_loaded() {
    let mut device = Parallelism::new(64);
    let alone = Ended { latency_ns: 800 * MILLISECOND, ..ALONE };
    device.ended(0, L, &Ended { is_large: false, ..alone });
    device.ended(0, L, &Ended { in_flight: 2, ..alone });
    assert_eq!(device.unloaded_ns(), None, "neither small requests nor others beside them say anything");
    device.ended(0, L, &alone);
    assert_eq!(device.unloaded_ns(), Some(800 * MILLISECOND));
    device.ended(0, L, &Ended { latency_ns: 1600 * MILLISECOND, ..alone });
    assert_eq!(device.unloaded_ns(), Some(900 * MILLISECOND));
    // 3/2 of 900.
    run(&mut device, 0, 4, Ended { latency_ns: 1350 * MILLISECOND, ..BOUND });
    assert_eq!(device.requests(), 8);
    run(&mut device, 0, 8, Ended { latency_ns: 1351 * MILLISECOND, ..BOUND });
    assert_eq!(device.requests(), 7);
}

#[test]
fn every_ten_seconds_a_round_with_half_as_many_measures_anew() {
    const SECOND: u64 = 1000 * MILLISECOND;
    let mut device = Parallelism::new(16);
    run(&mut device, 5 * SECOND, 4 + 8, BOUND);
    assert_eq!(device.requests(), 16);
    run(&mut device, 15 * SECOND - 1, 16, BOUND);
    assert_eq!(device.requests(), 16);
    let ended = |latency_ms, in_flight| Ended { latency_ns: latency_ms * MILLISECOND, in_flight, ..BOUND };
    run(&mut device, 15 * SECOND, 16, Ended { held_back: false, ..ended(300, 16) });
    assert_eq!((device.requests(), device.learned()), (8, 16));
    run(&mut device, 16 * SECOND, 16, ended(900, 9));
    assert_eq!(device.unloaded_ns(), None, "these were submitted before");
    run(&mut device, 16 * SECOND, 4, ended(200, 8));
    run(&mut device, 16 * SECOND, 4, ended(300, 1));
    assert_eq!((device.requests(), device.unloaded_ns()), (16, Some(250 * MILLISECOND)));
    run(&mut device, 17 * SECOND, 1, Ended { is_large: true, ..ended(900, 1) });
    assert_eq!(device.unloaded_ns(), Some(250 * MILLISECOND), "what was measured is better than a guess");
    // At the next measurement more are in flight all the time, so it is given up.
    run(&mut device, 26 * SECOND, 15, BOUND);
    assert_eq!(device.requests(), 8);
    run(&mut device, 26 * SECOND, 63, BOUND);
    assert_eq!(device.requests(), 8);
    run(&mut device, 26 * SECOND, 1, BOUND);
    assert_eq!((device.requests(), device.unloaded_ns()), (16, Some(250 * MILLISECOND)));
}

/// Holds as long as calls take longer than the limit in flight, and none was alone and large.
#[test]
fn where_nothing_says_how_slow_calls_are_by_nature_p_doubles_while_that_brings_more() {
    let mut device = Parallelism::new(50);
    let mut now_ns = 0;
    let mut round = |device: &mut Parallelism, mib_per_s: u64| {
        let p = device.requests();
        for _ in 0..p {
            now_ns += 1000 * MILLISECOND / (mib_per_s * p);
            device.ended(now_ns, L, &Ended { latency_ns: 150 * MILLISECOND, bytes: (1 << 20) / p, ..BOUND });
        }
        device.requests()
    };
    assert_eq!([100, 200, 226].map(|rate| round(&mut device, rate)), [8, 16, 32]);
    assert_eq!((round(&mut device, 250), device.learned()), (16, 32), "less than an eighth more: it is measured");
    let measured = |device: &mut Parallelism, latency_ms, bytes| {
        for _ in 0..device.requests() {
            device.ended(0, L, &Ended { latency_ns: latency_ms * MILLISECOND, in_flight: 8, bytes, ..BOUND });
        }
    };
    measured(&mut device, 150, 1 << 20);
    assert_eq!((device.requests(), device.unloaded_ns()), (32, Some(150 * MILLISECOND)), "calls are as long alone");
    measured(&mut device, 160, 1 << 20);
    assert_eq!(device.requests(), 50, "so that more is right");
    // Slower, but larger: such calls may be as slow alone.
    measured(&mut device, 300, (2 << 20) + 2);
    assert_eq!((device.requests(), device.learned()), (25, 50));
    measured(&mut device, 280, 2 << 20);
    assert_eq!((device.requests(), device.unloaded_ns()), (50, Some(280 * MILLISECOND)));
    measured(&mut device, 421, 4 << 20);
    assert_eq!(device.requests(), 43, "and no larger: slow");
    // Larger again, but with half as many in flight calls take half as long: they wait for each other.
    measured(&mut device, 800, 8 << 20);
    assert_eq!((device.requests(), device.learned()), (21, 43));
    measured(&mut device, 400, 8 << 20);
    assert_eq!((device.requests(), device.unloaded_ns()), (21, Some(280 * MILLISECOND)));
    let mut deep = Parallelism::new(50);
    assert_eq!([100, 200, 400, 800].map(|rate| round(&mut deep, rate)), [8, 16, 32, 50]);
    assert_eq!([1600, 1600, 1600].map(|rate| round(&mut deep, rate)), [50; 3], "all that the device takes");
}

/// A device that works on 24 requests at once, 60 ms each at best; more wait for each other.
#[test]
fn p_finds_what_a_parallel_device_works_on() {
    let mut device = Parallelism::new(256);
    let (mut now_ns, mut most, mut least) = (0, 0, u64::MAX);
    // By nature slower than the limit in flight. Until the latency is measured, that looks like too many at once.
    for round in 0..400 {
        let p = device.requests();
        let latency_ns = 60 * MILLISECOND * p.max(24) / 24;
        for _ in 0..p {
            now_ns += latency_ns / p;
            device.ended(
                now_ns,
                50 * MILLISECOND,
                &Ended { latency_ns, in_flight: p, is_large: true, bytes: 1 << 20, ..BOUND },
            );
        }
        if round > 100 {
            (most, least) = (most.max(device.learned()), least.min(device.learned()));
        }
    }
    assert!(least >= 24 && most <= 40, "{least} to {most}");
}

#[test]
fn a_refusal_bounds_the_requests_by_p_and_takes_an_eighth_of_it() {
    let mut parallel = Parallelism::new(64);
    let fast = Ended { latency_ns: 1, ..BOUND };
    (0..4 + 8 + 16).for_each(|_| parallel.ended(0, L, &fast));
    assert_eq!((parallel.learned(), parallel.requests_max(0)), (32, 64));
    let refused = Ended { is_too_many: true, ..fast };
    parallel.ended(0, L, &refused);
    assert_eq!(parallel.requests_max(0), 32, "at once");
    (0..31).for_each(|_| parallel.ended(0, L, &fast));
    assert_eq!((parallel.learned(), parallel.requests_max(0)), (28, 28), "once a round");
    (0..28).for_each(|_| parallel.ended(REFUSED_NS - 1, L, &fast));
    assert_eq!(parallel.learned(), 28, "the refusal is recent");
    (0..28).for_each(|_| parallel.ended(REFUSED_NS, L, &fast));
    assert_eq!(parallel.learned(), 31, "it grows by an eighth");
    assert_eq!(parallel.requests_max(MEASURE_NS), 64);
}
