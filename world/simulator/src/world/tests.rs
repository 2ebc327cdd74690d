use std::sync::Mutex;

use afflux_engine::Platform;

use super::*;

fn world(seed: u64) -> World {
    World::new(WorldOptions::seed(seed))
}

type Log = Arc<Mutex<Vec<u64>>>;

/// Runs eight tasks that yield and sleep; returns the order of their steps, and the trace hash.
fn scramble(seed: u64) -> (Vec<u64>, u64) {
    let world = world(seed);
    let log = Log::default();
    for task in 0..8 {
        let (platform, log) = (Arc::clone(world.platform()), Arc::clone(&log));
        world.spawn("scrambled", async move {
            for turn in 0..4 {
                log.lock().unwrap().push(task * 10 + turn);
                platform.preemption_point().await;
                platform.sleep_until(Nanos(turn * 1000)).await;
            }
        });
    }
    world.run(world.platform().sleep_until(Nanos(1_000_000))).unwrap();
    let log = log.lock().unwrap().clone();
    (log, world.trace_hash())
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    assert_eq!(scramble(1), scramble(1));
    assert_ne!(scramble(1).1, scramble(2).1);
    assert_ne!(scramble(1).0, scramble(2).0);
    assert_eq!(scramble(1).0.len(), 32);
}

#[test]
fn a_sleep_ends_at_its_instant() {
    let world = World::new(WorldOptions { step_ns: 0, ..WorldOptions::seed(1) });
    let platform = Arc::clone(world.platform());
    let times = world
        .run(async move {
            let mut times = Vec::new();
            for at in [5, 5, 4, 1_000_000_007] {
                platform.sleep_until(Nanos(at)).await;
                times.push(platform.now().0);
            }
            times
        })
        .unwrap();
    assert_eq!(times, [5, 5, 5, 1_000_000_007]);
}

#[test]
fn a_dropped_sleep_takes_its_timer_along() {
    let world = world(1);
    let platform = Arc::clone(world.platform());
    world.run(async { drop(platform.sleep_until(Nanos(50))) }).unwrap();
    let mut sleep = Box::pin(world.platform().sleep_until(Nanos(1_000_000_000)));
    world
        .run(std::future::poll_fn(|cx| {
            assert!(sleep.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        }))
        .unwrap();
    drop(sleep);
    assert!(matches!(world.run(std::future::pending::<()>()), Err(RunError::Deadlock { .. })));
    assert!(world.platform().now().0 < 1_000_000, "the clock went to a timer that nobody waits for");
}

#[test]
fn a_deadlock_names_who_waits() {
    let world = world(3);
    world.spawn("philosopher", std::future::pending());
    let error = world.run(std::future::pending::<()>()).unwrap_err();
    assert_eq!(error, RunError::Deadlock { waiting: vec!["main #0".to_owned(), "philosopher #1".to_owned()] });
}

#[test]
fn a_run_is_bounded_in_steps_and_in_time() {
    let world = World::new(WorldOptions { steps_max: 1000, time_ns_max: 5_000_000, ..WorldOptions::seed(1) });
    let platform = Arc::clone(world.platform());
    let error = world.run(platform.sleep_until(Nanos(6_000_000))).unwrap_err();
    assert!(matches!(error, RunError::TimeUp { .. }), "{error}");
    let error = world
        .run(async {
            while platform.now().0 < u64::MAX {
                platform.preemption_point().await;
            }
        })
        .unwrap_err();
    assert!(matches!(error, RunError::StepsUp { .. }), "{error}");
}

#[test]
fn a_failed_check_ends_the_run_with_its_message() {
    let world = world(1);
    world.fail("first".to_owned());
    world.fail("second".to_owned());
    let error = world.run(std::future::pending::<()>()).unwrap_err();
    assert_eq!(error.to_string(), "first");
}

#[test]
fn dropping_the_world_drops_its_tasks() {
    let held = Arc::new(());
    let world = world(1);
    let (inside, platform) = (Arc::clone(&held), Arc::clone(world.platform()));
    world.spawn("holder", async move {
        std::future::pending::<()>().await;
        drop((inside, platform));
    });
    world.run(world.platform().sleep_until(Nanos(10))).unwrap();
    assert_eq!(Arc::strong_count(&held), 2);
    drop(world);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn counters_of_two_worlds_on_one_thread_stay_apart() {
    use afflux_engine::counters::Counter;
    let (first, second) = (world(1), world(2));
    first.platform().local().count(Counter::SyncCalls, 3);
    second.platform().local().count(Counter::SyncCalls, 5);
    first.platform().local().count(Counter::SyncCalls, 1);
    assert_eq!(first.platform().counters().get(Counter::SyncCalls), 4);
    assert_eq!(second.platform().counters().get(Counter::SyncCalls), 5);
}
