use std::future::Future;
use std::sync::{Arc, Mutex};

use afflux_engine::counters::Counter;
use afflux_engine::{Nanos, Platform};

use super::*;
use crate::costs::{Cost, CostOf};
use crate::world::{RunError, SimPlatform, World, WorldOptions};

const SLICE_NS: u64 = 1000;

fn costs(step_ns: u64, switch_ns: u64, hit_ps: u64) -> CostTable {
    let cost = |of, ps| Cost { of, ps, source: "test".to_owned() };
    let hit = cost(CostOf::Counter(Counter::ReadHitPages), hit_ps);
    CostTable::new("test", vec![cost(CostOf::Step, step_ns * 1000), cost(CostOf::Switch, switch_ns * 1000), hit])
}

fn machine(cpus: usize, costs: CostTable) -> World {
    let cpus = CpuOptions { slice: Slice::Fixed(SLICE_NS), costs, ..CpuOptions::count(cpus) };
    World::new(WorldOptions::machine(7, cpus))
}

type Log = Arc<Mutex<Vec<(&'static str, u64)>>>;

/// A world in which tasks note their steps and the times.
struct Noted {
    world: World,
    log: Log,
}

impl Noted {
    fn new(cpus: usize, costs: CostTable) -> Self {
        Self { world: machine(cpus, costs), log: Log::default() }
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        task: impl FnOnce(Arc<SimPlatform>, Note) -> F,
    ) {
        let platform = Arc::clone(self.world.platform());
        let note = Note { platform: Arc::clone(&platform), log: Arc::clone(&self.log), name };
        self.world.spawn(name, task(platform, note));
    }

    fn run_until(&self, ns: u64) -> Vec<(&'static str, u64)> {
        self.world.run(self.world.platform().sleep_until(Nanos(ns))).unwrap();
        self.log.lock().unwrap().clone()
    }
}

struct Note {
    platform: Arc<SimPlatform>,
    log: Log,
    name: &'static str,
}

impl Note {
    fn now(&self) {
        self.log.lock().unwrap().push((self.name, self.platform.now().0));
    }
}

#[test]
fn the_clock_moves_within_a_step_by_what_it_counts() {
    let world = machine(1, costs(100, 50, 1500));
    let platform = Arc::clone(world.platform());
    let times = world
        .run(async move {
            let mut times = vec![platform.now().0];
            platform.local().count(Counter::ReadHitPages, 1);
            times.push(platform.now().0);
            platform.local().count(Counter::ReadHitPages, 1);
            times.push(platform.now().0);
            platform.charge_ns(40);
            platform.local().count(Counter::SyncNs, 1_000_000);
            times.push(platform.now().0);
            times
        })
        .unwrap();
    assert_eq!(times, [150, 151, 153, 193]);
    assert_eq!(world.cpu_usage().busy_ns(), 193);
    assert_eq!(world.platform().now(), Nanos(193), "after the run it is where the run ended");
}

#[test]
fn what_is_left_of_a_nanosecond_is_not_lost_between_steps() {
    let world = machine(1, costs(0, 0, 300));
    let platform = Arc::clone(world.platform());
    world
        .run(async move {
            for turn in 1..=1000 {
                platform.local().count(Counter::ReadHitPages, 1);
                platform.sleep_until(Nanos(turn * 10)).await;
            }
        })
        .unwrap();
    assert_eq!(world.cpu_usage().busy_ns(), 300);
}

#[test]
fn what_is_counted_between_runs_is_nobodys_time() {
    let world = machine(1, costs(0, 0, 1000));
    world.platform().local().count(Counter::ReadHitPages, 500);
    world.platform().charge_ns(77);
    world.run(async {}).unwrap();
    assert_eq!((world.platform().now(), world.cpu_usage().busy_ns()), (Nanos(0), 0));
}

#[test]
fn a_task_woken_in_a_step_starts_no_earlier_than_it_was_woken() {
    // Two CPUs: one computes from 0 to 900 and spawns a task at 600, which the other runs.
    let noted = Noted::new(2, CostTable::free());
    noted.spawn("parent", |platform, note| {
        let child = Note { platform: Arc::clone(&platform), log: Arc::clone(&note.log), name: "child" };
        async move {
            platform.charge_ns(600);
            platform.spawn("child", async move { child.now() });
            platform.charge_ns(300);
            note.now();
        }
    });
    assert_eq!(noted.run_until(5000), [("parent", 900), ("child", 600)]);
}

#[test]
fn the_run_queue_is_in_the_order_in_which_tasks_became_ready() {
    // The first CPU's step runs as a whole and spawns a task at 600. Only then does the second's step spawn a task at
    // 150, which comes first.
    let noted = Noted::new(2, CostTable::free());
    for (parent, child, begins, works, ends) in [("long", "late", 0, 600, 300), ("short", "early", 100, 50, 0)] {
        noted.spawn(parent, |platform, note| {
            let child = Note { platform: Arc::clone(&platform), log: Arc::clone(&note.log), name: child };
            async move {
                platform.sleep_until(Nanos(begins)).await;
                platform.charge_ns(works);
                platform.spawn("child", async move { child.now() });
                platform.charge_ns(ends);
            }
        });
    }
    assert_eq!(noted.run_until(5000), [("early", 150), ("late", 600)]);
}

#[test]
fn a_task_that_is_still_computing_is_not_run_elsewhere() {
    // At 0 the task sleeps until 100, by a future that it polls once, and computes until 700. It continues at 700.
    let noted = Noted::new(2, CostTable::free());
    noted.spawn("busy", |platform, note| async move {
        let mut sleep = Box::pin(platform.sleep_until(Nanos(100)));
        let mut polls = 0;
        std::future::poll_fn(|cx| {
            note.now();
            polls += 1;
            let poll = sleep.as_mut().poll(cx);
            if polls == 1 {
                platform.charge_ns(700);
            }
            poll
        })
        .await;
    });
    assert_eq!(noted.run_until(5000), [("busy", 0), ("busy", 700)]);
    assert_eq!(noted.world.cpu_usage().wait_ns, 0);
}

#[test]
fn a_slice_that_is_used_up_ends_at_a_preemption_point_only() {
    let noted = Noted::new(1, CostTable::free());
    for name in ["first", "second"] {
        noted.spawn(name, |platform, note| async move {
            // Past its slice, without a preemption point in between.
            platform.charge_ns(SLICE_NS + 500);
            note.now();
            platform.preemption_point().await;
            note.now();
            // Within its slice.
            platform.charge_ns(10);
            platform.preemption_point().await;
            note.now();
        });
    }
    let log = noted.run_until(50_000);
    let times: Vec<u64> = log.iter().map(|(_, at)| *at).collect();
    assert_eq!(times, [1500, 3000, 3000, 3010, 3010, 3020]);
    let names: Vec<_> = log.iter().map(|(name, _)| *name).collect();
    assert_eq!((names[0], names[1]), (names[2], names[4]), "round robin: {log:?}");
    assert_ne!(names[0], names[1]);
    assert_eq!(noted.world.cpu_usage().preemptions, 2);
}

#[test]
fn nobody_else_there_costs_no_switch() {
    let world = machine(1, costs(100, 50, 0));
    let platform = Arc::clone(world.platform());
    world.run(async move { platform.work(20 * SLICE_NS).await }).unwrap();
    let usage = world.cpu_usage();
    assert_eq!((usage.switches(), usage.busy_ns(), usage.wait_ns), (1, 150 + 20 * SLICE_NS, 0), "{usage:?}");
}

#[test]
fn what_comes_earlier_happens_earlier_though_the_cpu_is_kept() {
    // A timer at 200 and a task on another CPU at 300 both come before the first continues at 500.
    let noted = Noted::new(2, CostTable::free());
    noted.spawn("first", |platform, note| async move {
        platform.charge_ns(500);
        platform.preemption_point().await;
        note.now();
    });
    noted.spawn("sleeps", |platform, note| async move {
        platform.sleep_until(Nanos(200)).await;
        note.now();
        platform.charge_ns(100);
        platform.preemption_point().await;
        note.now();
    });
    assert_eq!(noted.run_until(900), [("sleeps", 200), ("sleeps", 300), ("first", 500)]);
    assert_eq!(noted.world.cpu_usage().preemptions, 0);
}

#[test]
fn a_call_happens_at_its_instant_and_its_cost_delays_a_cpu() {
    let noted = Noted::new(1, costs(0, 0, 1000));
    let (platform, log) = (Arc::clone(noted.world.platform()), Arc::clone(&noted.log));
    noted.world.platform().call_at(Nanos(250), move || {
        platform.local().count(Counter::ReadHitPages, 30);
        platform.charge_ns(40);
        log.lock().unwrap().push(("call", platform.now().0));
    });
    noted.spawn("works", |platform, note| async move {
        platform.work(600).await;
        note.now();
        platform.preemption_point().await;
        note.now();
    });
    assert_eq!(noted.run_until(900), [("call", 250), ("works", 670), ("works", 670)]);
    let usage = noted.world.cpu_usage();
    assert_eq!((usage.busy_ns(), usage.cpus[0].interrupt_ns), (670, 70));
}

#[test]
fn each_cpu_counts_for_itself() {
    let world = machine(3, CostTable::free());
    let blocks = Arc::new(Mutex::new(Vec::new()));
    for task in 1..=3 {
        let (platform, blocks) = (Arc::clone(world.platform()), Arc::clone(&blocks));
        world.spawn("counts", async move {
            platform.local().count(Counter::SyncCalls, task);
            blocks.lock().unwrap().push(platform.local().counted(Counter::SyncCalls));
            platform.charge_ns(100);
        });
    }
    world.run(world.platform().sleep_until(Nanos(1000))).unwrap();
    let mut blocks = blocks.lock().unwrap().clone();
    blocks.sort_unstable();
    assert_eq!(blocks, [1, 2, 3]);
    assert_eq!(world.platform().counters().get(Counter::SyncCalls), 6);
}

#[test]
fn drawn_switches_take_the_cpu_at_preemption_points() {
    let switches = |switch_per_mille| {
        let cpus = CpuOptions { switch_per_mille, costs: CostTable::free(), ..CpuOptions::count(1) };
        let world = World::new(WorldOptions::machine(1, cpus));
        for _ in 0..2 {
            let platform = Arc::clone(world.platform());
            world.spawn("yields", async move {
                for _ in 0..1000 {
                    platform.charge_ns(1);
                    platform.preemption_point().await;
                }
            });
        }
        world.run(world.platform().sleep_until(Nanos(5_000))).unwrap();
        world.cpu_usage().preemptions
    };
    assert_eq!((switches(0), switches(1000)), (0, 2000));
    assert!((850..1150).contains(&switches(500)));
}

/// Nanoseconds of CPU time in 400 slices of a task that computes for half a slice, sleeps for a tenth, and so on,
/// beside three that always compute.
fn cpu_of_a_sleeper(order: RunOrder) -> u64 {
    let cpus = CpuOptions { slice: Slice::Fixed(SLICE_NS), order, costs: CostTable::free(), ..CpuOptions::count(1) };
    let world = World::new(WorldOptions::machine(7, cpus));
    for _ in 0..3 {
        let platform = Arc::clone(world.platform());
        world.spawn("computes", async move { platform.work(1000 * SLICE_NS).await });
    }
    let (platform, used) = (Arc::clone(world.platform()), Arc::new(Mutex::new(0)));
    let note = Arc::clone(&used);
    world.spawn("sleeps", async move {
        loop {
            platform.work(SLICE_NS / 2).await;
            *note.lock().unwrap() = platform.task_usage().cpu_ns;
            platform.sleep_until(platform.now().after(SLICE_NS / 10)).await;
        }
    });
    world.run(world.platform().sleep_until(Nanos(400 * SLICE_NS))).unwrap();
    *used.lock().unwrap()
}

#[test]
fn a_fair_queue_gives_a_sleeper_its_part_and_no_more() {
    // In the other queue each half slice waits for three whole ones: 400 / 3.6 times a half.
    let ready = cpu_of_a_sleeper(RunOrder::Ready) / SLICE_NS;
    assert!((50..=60).contains(&ready), "{ready}");
    for credit_ns in [SLICE_NS, 8 * SLICE_NS] {
        let fair = cpu_of_a_sleeper(RunOrder::Fair { credit_ns }) / SLICE_NS;
        assert!((94..=103).contains(&fair), "{fair}: a quarter of 400");
    }
    let without = cpu_of_a_sleeper(RunOrder::Fair { credit_ns: 0 }) / SLICE_NS;
    assert!(without < 94, "{without}: each sleep costs what others had meanwhile");
}

#[test]
fn a_task_that_may_not_go_ahead_waits_like_others() {
    let first = |may_go_ahead| {
        let cpus = CpuOptions { may_go_ahead, ..CpuOptions::count(1) };
        let cpus = CpuOptions { slice: Slice::Fixed(SLICE_NS), costs: CostTable::free(), ..cpus };
        let world = World::new(WorldOptions::machine(7, cpus));
        let (platform, log) = (Arc::clone(world.platform()), Log::default());
        let note = |name| (Arc::clone(&platform), Arc::clone(&log), name);
        let task = |(platform, log, name): (Arc<SimPlatform>, Log, _), at| async move {
            platform.sleep_until(Nanos(at)).await;
            platform.work(2 * SLICE_NS).await;
            log.lock().unwrap().push((name, platform.now().0));
        };
        platform.spawn("plain", task(note("plain"), 10));
        platform.spawn("other", task(note("other"), 20));
        platform.spawn_ahead("ahead", task(note("ahead"), 30));
        world.run(world.platform().sleep_until(Nanos(20 * SLICE_NS))).unwrap();
        log.lock().unwrap()[0].0
    };
    assert_eq!((first(true), first(false)), ("ahead", "plain"));
}

#[test]
fn a_deadlock_on_cpus_names_who_waits_and_a_livelock_is_bounded() {
    let world = machine(4, CostTable::free());
    world.spawn("philosopher", std::future::pending());
    let error = world.run(std::future::pending::<()>()).unwrap_err();
    assert_eq!(error.to_string(), "deadlock: nothing is ready and no timer is set; waiting: main #0, philosopher #1");
    let options = WorldOptions { steps_max: 1000, time_ns_max: 1_000_000, ..world_options() };
    let error = World::new(options.clone()).run(std::future::poll_fn::<(), _>(|cx| {
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    }));
    assert!(matches!(error, Err(RunError::StepsUp { .. })), "{error:?}");
    let world = World::new(options);
    let error = world.run(world.platform().sleep_until(Nanos(1_000_001)));
    assert_eq!(error, Err(RunError::TimeUp { waiting: vec!["main #0".to_owned()] }));
}

fn world_options() -> WorldOptions {
    WorldOptions::machine(1, CpuOptions { costs: CostTable::free(), ..CpuOptions::count(2) })
}

#[test]
#[should_panic(expected = "0 CPUs; allowed are 1 to 1024")]
fn a_machine_has_a_cpu() {
    let _ = World::new(WorldOptions::machine(1, CpuOptions::count(0)));
}

#[test]
fn a_task_that_goes_ahead_runs_next_but_cuts_no_slice_short() {
    let woken = |ahead: bool| {
        let noted = Noted::new(1, CostTable::free());
        let platform = Arc::clone(noted.world.platform());
        let note = Note { platform: Arc::clone(&platform), log: Arc::clone(&noted.log), name: "woken" };
        let task = {
            let platform = Arc::clone(&platform);
            async move {
                platform.sleep_until(Nanos(SLICE_NS / 2)).await;
                note.now();
                platform.work(2 * SLICE_NS).await;
                note.now();
            }
        };
        if ahead {
            platform.spawn_ahead("woken", task);
        } else {
            platform.spawn("woken", task);
        }
        for name in ["one", "two", "three"] {
            noted.spawn(name, |platform, _| async move { platform.work(5 * SLICE_NS).await });
        }
        noted.run_until(20 * SLICE_NS)
    };
    // Ahead: it runs at the end of the first slice, and later before the others run.
    assert_eq!(woken(true), [("woken", SLICE_NS), ("woken", 3 * SLICE_NS)]);
    let in_turn = woken(false);
    assert!(in_turn[1].1 - in_turn[0].1 >= 3 * SLICE_NS, "{in_turn:?}");
}
