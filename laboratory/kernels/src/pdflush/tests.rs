use super::*;

fn idle(when_i_went_to_sleep: u64) -> Idle {
    Idle { job: Arc::default(), wakes: WaitQueue::default(), when_i_went_to_sleep }
}

#[test]
fn a_thread_is_added_when_none_has_been_idle_for_a_second() {
    let mut pool = Pool { threads: 2, last_empty_jifs: 100, ..Pool::default() };
    assert!(!pool.grows(100 + HZ));
    assert!(pool.grows(101 + HZ));
    assert!(!pool.grows(102 + HZ), "the second begins anew");
    let grown = (1..20).filter(|second| pool.grows(second * 2 * HZ)).count();
    assert_eq!((pool.threads, grown), (THREADS_MAX, 5));
    pool.idle.push(idle(0));
    pool.threads = 2;
    assert!(!pool.grows(100 * HZ), "one is idle");
}

#[test]
fn a_thread_goes_when_one_has_slept_for_a_second() {
    let mut pool = Pool { threads: 4, ..Pool::default() };
    assert!(!pool.shrinks(10 * HZ), "none sleeps");
    pool.idle = vec![idle(0), idle(5 * HZ)];
    assert!(!pool.shrinks(HZ));
    assert!(pool.shrinks(HZ + 1));
    assert!(!pool.shrinks(HZ + 2), "one a second");
    assert!(pool.shrinks(3 * HZ) && !pool.shrinks(9 * HZ), "two stay");
}
