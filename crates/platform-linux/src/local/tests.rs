use engine::counters::Counter;

use super::*;

#[test]
fn blocks_of_ended_threads_are_used_again() {
    let counters = Counters::new();
    let number = u64::MAX;
    let address = |local: &Local| std::ptr::from_ref(local) as usize;
    let one = || {
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| {
                let local = of(number, &counters);
                local.count(Counter::SyncCalls, 1);
                let _ = of(number - 1, &counters);
                assert_eq!(address(local), address(of(number, &counters)));
                address(local)
            });
            counting.join().unwrap()
        })
    };
    let first = one();
    for _ in 0..100 {
        assert_eq!(one(), first);
    }
    assert_eq!(counters.get(Counter::SyncCalls), 101);
}
