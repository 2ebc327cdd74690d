use afflux_device::platform::Nanos;

use super::*;

const L: Cost = 100 * MILLISECOND;
/// The least bytes of a large request.
const LARGE: u64 = 1 << 20;

/// A small request, with another waiting.
fn bound() -> Completed {
    Completed { in_flight: 1000, held_back: true, ..Completed::default() }
}

/// The first completion, which shows that calls of 80 ms are the device's nature: from 121 ms on they are slow.
fn alone() -> Completed {
    Completed { latency_ns: 80 * MILLISECOND, in_flight: 1, bytes: LARGE, ..Completed::default() }
}

/// Completes a request like this one at an instant.
fn end(device: &mut Parallelism, now_ns: u64, done: Completed) {
    device.ended(&Completed { at: Nanos(now_ns), ..done }, L, LARGE);
}

/// Completes `count` requests like this one.
fn run(device: &mut Parallelism, now_ns: u64, count: u64, done: Completed) {
    (0..count).for_each(|_| end(device, now_ns, done));
}

#[test]
fn rounds_by_table() {
    let mut device = Parallelism::new(100);
    run(&mut device, 0, 4, alone());
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
        let ended = Completed { latency_ns: latency_ms * MILLISECOND, held_back, ..bound() };
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
        run(&mut device, 0, 4, alone());
        run(&mut device, 0, 1000, bound());
        assert_eq!(device.requests(), most);
        run(&mut device, 0, 10_000, Completed { latency_ns: 10 * L, ..bound() });
        assert_eq!(device.requests(), least);
        run(&mut device, 0, 10_000, bound());
        assert_eq!(device.requests(), most, "it grows again");
    }
}

#[test]
fn a_device_whose_requests_are_slow_by_nature_is_not_taken_for_loaded() {
    let mut device = Parallelism::new(64);
    let slow = Completed { latency_ns: 800 * MILLISECOND, ..alone() };
    end(&mut device, 0, Completed { bytes: LARGE - 1, ..slow });
    end(&mut device, 0, Completed { in_flight: 2, ..slow });
    assert_eq!(device.unloaded_ns(), None, "neither small requests nor others beside them say anything");
    end(&mut device, 0, slow);
    assert_eq!(device.unloaded_ns(), Some(800 * MILLISECOND));
    end(&mut device, 0, Completed { latency_ns: 1600 * MILLISECOND, ..slow });
    assert_eq!(device.unloaded_ns(), Some(900 * MILLISECOND));
    // 3/2 of 900.
    run(&mut device, 0, 4, Completed { latency_ns: 1350 * MILLISECOND, ..bound() });
    assert_eq!(device.requests(), 8);
    run(&mut device, 0, 8, Completed { latency_ns: 1351 * MILLISECOND, ..bound() });
    assert_eq!(device.requests(), 7);
}

#[test]
fn every_ten_seconds_a_round_with_half_as_many_measures_anew() {
    const SECOND: u64 = 1000 * MILLISECOND;
    let mut device = Parallelism::new(16);
    run(&mut device, 5 * SECOND, 4 + 8, bound());
    assert_eq!(device.requests(), 16);
    run(&mut device, 15 * SECOND - 1, 16, bound());
    assert_eq!(device.requests(), 16);
    let ended = |latency_ms, in_flight| Completed { latency_ns: latency_ms * MILLISECOND, in_flight, ..bound() };
    run(&mut device, 15 * SECOND, 16, Completed { held_back: false, ..ended(300, 16) });
    assert_eq!((device.requests(), device.learned()), (8, 16));
    run(&mut device, 16 * SECOND, 16, ended(900, 9));
    assert_eq!(device.unloaded_ns(), None, "these were submitted before");
    run(&mut device, 16 * SECOND, 4, ended(200, 8));
    run(&mut device, 16 * SECOND, 4, ended(300, 1));
    assert_eq!((device.requests(), device.unloaded_ns()), (16, Some(250 * MILLISECOND)));
    run(&mut device, 17 * SECOND, 1, Completed { bytes: LARGE, ..ended(900, 1) });
    assert_eq!(device.unloaded_ns(), Some(250 * MILLISECOND), "what was measured is better than a guess");
    // At the next measurement more are in flight all the time, so it is given up.
    run(&mut device, 26 * SECOND, 15, bound());
    assert_eq!(device.requests(), 8);
    run(&mut device, 26 * SECOND, 63, bound());
    assert_eq!(device.requests(), 8);
    run(&mut device, 26 * SECOND, 1, bound());
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
            end(device, now_ns, Completed { latency_ns: 150 * MILLISECOND, bytes: LARGE / p, ..bound() });
        }
        device.requests()
    };
    assert_eq!([100, 200, 226].map(|rate| round(&mut device, rate)), [8, 16, 32]);
    assert_eq!((round(&mut device, 250), device.learned()), (16, 32), "less than an eighth more: it is measured");
    let measured = |device: &mut Parallelism, latency_ms, bytes| {
        for _ in 0..device.requests() {
            end(device, 0, Completed { latency_ns: latency_ms * MILLISECOND, in_flight: 8, bytes, ..bound() });
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
            let done = Completed { at: Nanos(now_ns), latency_ns, in_flight: p, bytes: LARGE, ..bound() };
            device.ended(&done, 50 * MILLISECOND, LARGE);
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
    let fast = Completed { latency_ns: 1, ..bound() };
    run(&mut parallel, 0, 4 + 8 + 16, fast);
    assert_eq!((parallel.learned(), parallel.requests_max(0)), (32, 64));
    end(&mut parallel, 0, Completed { too_many: true, ..fast });
    assert_eq!(parallel.requests_max(0), 32, "at once");
    run(&mut parallel, 0, 31, fast);
    assert_eq!((parallel.learned(), parallel.requests_max(0)), (28, 28), "once a round");
    run(&mut parallel, REFUSED_NS - 1, 28, fast);
    assert_eq!(parallel.learned(), 28, "the refusal is recent");
    run(&mut parallel, REFUSED_NS, 28, fast);
    assert_eq!(parallel.learned(), 31, "it grows by an eighth");
    assert_eq!(parallel.requests_max(MEASURE_NS), 64);
}
