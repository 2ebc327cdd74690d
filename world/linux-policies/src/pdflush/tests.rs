use super::*;

const SECOND: u64 = Nanos::SECOND;

fn pool() -> Arc<Pool> {
    Pdflush::new(true).pool
}

#[test]
fn two_threads_at_first_and_one_more_a_second_up_to_eight() {
    let pool = pool();
    assert!(pool.begin(Nanos(0)) && pool.begin(Nanos(0)));
    assert!(!pool.begin(Nanos(SECOND - 1)), "both work, and that for less than a second");
    let mut now = SECOND;
    for threads in 3..=8 {
        // The call that finds no idle thread adds one for later calls.
        assert!(!pool.begin(Nanos(now)), "{threads}");
        assert!(pool.begin(Nanos(now)), "{threads}");
        assert_eq!(pool.lock().threads, threads);
        now += SECOND;
    }
    assert!(!pool.begin(Nanos(now)) && !pool.begin(Nanos(now + 9 * SECOND)));
    assert_eq!(pool.lock().working, 8);
}

#[test]
fn an_idle_thread_goes_after_a_second() {
    let pool = pool();
    assert!(pool.begin(Nanos(0)) && pool.begin(Nanos(0)));
    assert!(!pool.begin(Nanos(SECOND)) && pool.begin(Nanos(SECOND)));
    for _ in 0..3 {
        pool.end(Nanos(2 * SECOND));
    }
    assert!(pool.begin(Nanos(2 * SECOND)));
    assert_eq!(pool.lock().threads, 3);
    pool.end(Nanos(2 * SECOND));
    assert!(pool.begin(Nanos(4 * SECOND)));
    assert_eq!(pool.lock().threads, 2);
}
