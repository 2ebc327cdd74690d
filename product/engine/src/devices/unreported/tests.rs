use super::*;

fn end(bytes: u64, latency_ns: u64) -> Completed {
    Completed {
        runs: 1,
        pages: bytes / 4096,
        bytes,
        latency_ns,
        in_flight: 2,
        unwatched_ns: 10,
        ..Completed::default()
    }
}

#[test]
fn each_end_is_in_one_sum() {
    let unreported = Unreported::default();
    assert_eq!(unreported.take(Nanos(1)), [None; 2]);
    assert!(!unreported.add(&end(4096, 500), Nanos(1000)));
    assert!(!unreported.add(&Completed { in_flight: 7, held_back: true, ..end(8192, 900) }, Nanos(1200)));
    let read = Completed { direction: Direction::Read, ..end(4096, 50) };
    assert!(!unreported.add(&read, Nanos(1300)));
    let sum = Completed { runs: 2, pages: 3, bytes: 12_288, in_flight: 7, held_back: true, ..end(0, 0) };
    // From the first submission to the telling.
    let writes = Completed { latency_ns: 1000, unwatched_ns: 20, ..sum };
    assert_eq!(unreported.take(Nanos(1300)), [Some(writes), Some(read)]);
    assert_eq!(unreported.take(Nanos(1400)), [None; 2]);
}

#[test]
fn a_sum_is_due_after_so_many_ends_and_after_so_long() {
    let unreported = Unreported::default();
    for ended in 1..=ENDS_MAX {
        assert_eq!(unreported.add(&end(4096, 1), Nanos(5)), ended == ENDS_MAX);
    }
    unreported.take(Nanos(5));
    assert!(!unreported.add(&end(4096, 1), Nanos(6)));
    assert!(!unreported.add(&end(4096, 1), Nanos(4 + AGE_NS)));
    assert!(unreported.add(&end(4096, 1), Nanos(5 + AGE_NS)));
    unreported.take(Nanos(5 + AGE_NS));
    assert!(unreported.add(&end(4096, AGE_NS), Nanos(2 * AGE_NS)), "a long request");
}
