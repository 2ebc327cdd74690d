//! Textbook queues on virtual CPUs: clients that compute, then think, against closed formulas.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};
use afflux_simulator::{CostTable, CpuOptions, Random, Slice, World, WorldOptions};

const MS: u64 = 1_000_000;

/// The time that a client computes or thinks.
#[derive(Clone, Copy)]
enum Time {
    Always(u64),
    Exponential(u64),
}

impl Time {
    fn draw(self, random: &mut Random) -> u64 {
        match self {
            Self::Always(ns) => ns,
            Self::Exponential(mean_ns) => random.exponential(mean_ns),
        }
    }
}

struct Queue {
    clients: u64,
    cpus: usize,
    slice: Slice,
    service: Time,
    think: Time,
}

/// Visits per second, and the mean time of a visit and of its waits in the run queue, in nanoseconds.
struct Measured {
    per_second: f64,
    visit_ns: f64,
    wait_ns: f64,
}

impl Queue {
    fn options(&self, seed: u64) -> WorldOptions {
        let cpus = CpuOptions { slice: self.slice, costs: CostTable::free(), ..CpuOptions::count(self.cpus) };
        WorldOptions::machine(seed, cpus)
    }

    /// Runs for `warm_ns`, then measures for `ns`.
    fn run(&self, seed: u64, warm_ns: u64, ns: u64) -> Measured {
        let world = World::new(self.options(seed));
        let sums: [Arc<AtomicU64>; 3] = Default::default();
        let seeds = Random::new(seed);
        for client in 0..self.clients {
            let platform = Arc::clone(world.platform());
            let sums = sums.clone();
            let mut random = seeds.fork(client);
            let (service, think) = (self.service, self.think);
            world.spawn("client", async move {
                let (mut comes, mut waited_ns) = (Nanos(0), 0);
                loop {
                    platform.work(service.draw(&mut random)).await;
                    let now = platform.now();
                    let waited_before_ns = std::mem::replace(&mut waited_ns, platform.task_usage().wait_ns);
                    if (warm_ns + 1..=warm_ns + ns).contains(&now.0) {
                        let visit = [1, now.since(comes), waited_ns - waited_before_ns];
                        sums.iter().zip(visit).for_each(|(sum, more)| {
                            sum.fetch_add(more, Ordering::Relaxed);
                        });
                    }
                    comes = now.after(think.draw(&mut random));
                    platform.sleep_until(comes).await;
                }
            });
        }
        world.run(world.platform().sleep_until(Nanos(warm_ns + ns + 1))).unwrap();
        let [visits, in_visit_ns, wait_ns] = sums.map(|sum| sum.load(Ordering::Relaxed) as f64);
        Measured { per_second: visits / (ns as f64 / 1e9), visit_ns: in_visit_ns / visits, wait_ns: wait_ns / visits }
    }
}

/// Mean value analysis (Reiser and Lavenberg 1980) of thinking clients on one CPU, with processor sharing or with
/// exponential times first come, first served. Returns visits per second and the mean time of a visit.
fn mean_values(clients: u64, service_ns: f64, think_ns: f64) -> (f64, f64) {
    let (mut in_queue, mut visit_ns, mut rate) = (0.0, 0.0, 0.0);
    for count in 1..=clients {
        visit_ns = service_ns * (1.0 + in_queue);
        rate = count as f64 / (visit_ns + think_ns);
        in_queue = rate * visit_ns;
    }
    (rate * 1e9, visit_ns)
}

/// The machine repairman's birth-death equations: `cpus` servers, exponential times.
fn repairman(clients: u64, cpus: usize, service_ns: f64, think_ns: f64) -> (f64, f64) {
    let mut weight = vec![1.0_f64];
    for here in 0..clients {
        let arrivals = (clients - here) as f64 / think_ns;
        let departures = (here + 1).min(cpus as u64) as f64 / service_ns;
        weight.push(weight[here as usize] * arrivals / departures);
    }
    let total: f64 = weight.iter().sum();
    let mean = |of: &dyn Fn(usize) -> f64| weight.iter().enumerate().map(|(n, w)| of(n) * w).sum::<f64>() / total;
    let rate = mean(&|n| n.min(cpus) as f64) / service_ns;
    (rate * 1e9, mean(&|n| n as f64) / rate)
}

fn assert_near(what: &str, measured: f64, expected: f64, per_cent: f64) {
    let off = (measured / expected - 1.0).abs() * 100.0;
    assert!(off <= per_cent, "{what}: {measured} instead of {expected}, {off:.2} % off");
}

#[test]
fn fixed_times_give_the_exact_cycle() {
    // 20 clients on 4 CPUs, 3 ms each and 5 ms of thinking: a cycle takes 20 / 4 x 3 ms.
    let queue = Queue {
        clients: 20,
        cpus: 4,
        slice: Slice::Fixed(MS * 1000),
        service: Time::Always(3 * MS),
        think: Time::Always(5 * MS),
    };
    let measured = queue.run(1, 150 * MS, 15_000 * MS);
    assert_eq!(measured.per_second, 4.0 / 0.003);
    assert_eq!(measured.visit_ns, (15 - 5) as f64 * 1e6);
    assert_eq!(measured.wait_ns, (15 - 5 - 3) as f64 * 1e6);
}

#[test]
fn fewer_clients_than_cpus_never_wait() {
    let queue = Queue {
        clients: 4,
        cpus: 4,
        slice: Slice::Fixed(MS),
        service: Time::Always(3 * MS),
        think: Time::Always(5 * MS),
    };
    let measured = queue.run(1, 80 * MS, 8_000 * MS);
    assert_eq!((measured.per_second, measured.visit_ns, measured.wait_ns), (500.0, 3e6, 0.0));
}

#[test]
fn one_cpu_first_come_first_served_is_as_mean_value_analysis_says() {
    for clients in [1, 3, 10] {
        let queue = Queue {
            clients,
            cpus: 1,
            slice: Slice::Fixed(1_000_000 * MS),
            service: Time::Exponential(2 * MS),
            think: Time::Exponential(6 * MS),
        };
        let measured = queue.run(clients, 1000 * MS, 400_000 * MS);
        let (rate, visit_ns) = mean_values(clients, 2e6, 6e6);
        assert_near("visits a second", measured.per_second, rate, 1.0);
        assert_near("time of a visit", measured.visit_ns, visit_ns, 1.5);
    }
}

#[test]
fn four_cpus_are_as_the_repairmans_equations_say() {
    let (service, think) = (Time::Exponential(2 * MS), Time::Exponential(6 * MS));
    let queue = Queue { clients: 16, cpus: 4, slice: Slice::Fixed(1_000_000 * MS), service, think };
    let measured = queue.run(7, 1000 * MS, 200_000 * MS);
    let (rate, visit_ns) = repairman(16, 4, 2e6, 6e6);
    assert_near("visits a second", measured.per_second, rate, 1.0);
    assert_near("time of a visit", measured.visit_ns, visit_ns, 1.0);
    assert_near("wait", measured.wait_ns, visit_ns - 2e6, 2.0);
}

#[test]
fn small_slices_share_the_processor() {
    // Processor sharing does not depend on the distribution of service times. Fixed times, which in order of arrival
    // are far from mean value analysis, match it in small slices.
    let mut queue = Queue {
        clients: 8,
        cpus: 1,
        slice: Slice::Fixed(20_000),
        service: Time::Always(2 * MS),
        think: Time::Exponential(12 * MS),
    };
    let (rate, visit_ns) = mean_values(8, 2e6, 12e6);
    let shared = queue.run(3, 1000 * MS, 60_000 * MS);
    assert_near("visits a second", shared.per_second, rate, 1.0);
    assert_near("time of a visit", shared.visit_ns, visit_ns, 2.0);
    queue.slice = Slice::Exponential(20_000);
    let varying = queue.run(4, 1000 * MS, 60_000 * MS);
    assert_near("time of a visit, varying slices", varying.visit_ns, visit_ns, 2.0);
    queue.slice = Slice::Fixed(1_000_000 * MS);
    let in_order = queue.run(3, 1000 * MS, 60_000 * MS);
    assert!(in_order.visit_ns < 0.9 * visit_ns, "{} against {visit_ns}", in_order.visit_ns);
}

#[test]
fn unequal_jobs_that_share_a_cpu_end_when_they_should() {
    // Of 1, 2 and 3 ms begun together, the first ends after 3 x 1 ms, the second 2 x 1 ms later, and
    // the third 1 ms after that.
    let queue =
        Queue { clients: 0, cpus: 1, slice: Slice::Fixed(1000), service: Time::Always(0), think: Time::Always(0) };
    let world = World::new(queue.options(1));
    let ends = Arc::new(Mutex::new(Vec::new()));
    for job in 1..=3 {
        let (platform, ends) = (Arc::clone(world.platform()), Arc::clone(&ends));
        world.spawn("job", async move {
            platform.work(job * MS).await;
            ends.lock().unwrap().push((job, platform.now().0));
        });
    }
    world.run(world.platform().sleep_until(Nanos(7 * MS))).unwrap();
    let ends = ends.lock().unwrap().clone();
    assert_eq!(ends.iter().map(|end| end.0).collect::<Vec<_>>(), [1, 2, 3]);
    for ((_, at), expected) in ends.iter().zip([3 * MS, 5 * MS, 6 * MS]) {
        assert!(at.abs_diff(expected) <= 3000, "{at} instead of {expected}");
    }
    assert_eq!(world.cpu_usage().busy_ns(), 6 * MS);
}

#[test]
fn a_thousand_tasks_on_eight_cpus_wait_for_each_other() {
    // Each computes for ever; a rotation is 125 slices on each CPU.
    let cpus = CpuOptions { slice: Slice::Fixed(3 * MS), costs: CostTable::free(), ..CpuOptions::count(8) };
    let world = World::new(WorldOptions::machine(5, cpus));
    let usages = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..1000 {
        let (platform, usages) = (Arc::clone(world.platform()), Arc::clone(&usages));
        world.spawn("computes", async move {
            platform.work(30 * MS).await;
            usages.lock().unwrap().push((platform.task_usage(), platform.now().0));
        });
    }
    world.run(world.platform().sleep_until(Nanos(3751 * MS))).unwrap();
    let usages = usages.lock().unwrap();
    assert_eq!(usages.len(), 1000);
    for (usage, at) in usages.iter() {
        assert_eq!(usage.cpu_ns, 30 * MS);
        assert_eq!(usage.cpu_ns + usage.wait_ns, *at, "it ran or it waited");
        assert!((9 * 372 * MS..=3750 * MS).contains(&usage.wait_ns), "{usage:?}");
    }
    let usage = world.cpu_usage();
    assert_eq!(usage.busy_ns(), 30_000 * MS);
    assert!(usage.cpus.iter().all(|cpu| cpu.busy_ns == 3750 * MS), "{usage:?}");
    assert_eq!(usage.switches(), 10_000 + 2, "each slice, and the main future twice");
}
