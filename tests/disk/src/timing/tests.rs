use super::*;

#[test]
fn bytes_move_at_the_rate_and_a_full_queue_delays_the_next_request() {
    let rates = Rates {
        write_bytes_per_s: 1_000_000,
        latency: Duration::from_millis(10),
        queue: 2,
        flush: Duration::from_millis(7),
        ..Rates::default()
    };
    let zero = Instant::now();
    let at = |ms: u64| zero + Duration::from_millis(ms);
    let mut service = Service::new(zero);
    // 5,000 bytes take 5 ms. The latencies of two requests overlap, their bytes do not.
    assert_eq!(service.take_on(&rates, Kind::Write, 5_000, zero), at(15));
    assert_eq!(service.take_on(&rates, Kind::Write, 5_000, zero), at(20));
    // The third begins when the first has ended.
    assert_eq!(service.take_on(&rates, Kind::Write, 5_000, zero), at(30));
    assert_eq!(service.take_on(&rates, Kind::Read, 5_000, at(100)), at(110));
    assert_eq!(service.take_on(&rates, Kind::Flush, 0, at(200)), at(217));
}

#[test]
fn every_request_is_answered_also_at_the_end() {
    let clock = Clock::start(Rates { latency: Duration::from_secs(3600), ..Rates::default() });
    let (sender, answers) = std::sync::mpsc::channel();
    for number in 0..3 {
        let sender = sender.clone();
        clock.when_done(Kind::Read, 1, move || sender.send(number).unwrap());
    }
    assert!(answers.try_recv().is_err(), "they are due in an hour");
    drop((clock, sender));
    assert_eq!(answers.iter().collect::<Vec<_>>(), [0, 1, 2]);
}
