use afflux_engine::counters::Counter;

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

/// One thread uses many platforms, one after the other; other threads end before or after their platform.
#[test]
fn blocks_of_ended_platforms_are_given_back() {
    let first = u64::MAX - 1000;
    let ours = |platform: u64| (first..first + 200).contains(&platform);
    let in_list = || {
        let (mut count, mut at) = (0, ALL.get());
        while let Some(node) = at {
            count += usize::from(ours(node.platform));
            at = node.next.get();
        }
        count
    };
    let idle = || IDLE.lock().unwrap().iter().filter(|idle| ours(idle.0.platform)).count();
    for number in first..first + 100 {
        let counters = Counters::new();
        of(number, &counters).count(Counter::SyncCalls, 1);
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| of(number, &counters).count(Counter::SyncCalls, 1));
            counting.join().unwrap();
        });
        assert_eq!(counters.get(Counter::SyncCalls), 2);
        assert!(in_list() <= 2, "{}", in_list());
        assert!(idle() <= 2, "{}", idle());
    }
}
