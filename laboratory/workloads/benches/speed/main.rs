//! The speed of virtual time: the figures with goals, and their parts: task switches, sleeps, page operations through
//! the engine, a stream.
//!
//! `cargo bench -p afflux-workloads --bench speed [-- --quick] [FILTER]`; the filter `goals` prints only the figures
//! with goals. Except for their stream, the device is a null device that answers at an instant of virtual time and
//! moves no bytes. So the benchmark measures the executor and the engine, in CPU time of the thread.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints")]

mod goals;
mod rig;

use afflux_engine::counters::Counter;
use afflux_engine::{Nanos, Platform};
use afflux_simulator::{CpuOptions, Slice, World, WorldOptions};
use std::sync::Arc;

use rig::{Rig, cpu_ns};

const ROUNDS: usize = 5;

/// Best and worst of several rounds, in nanoseconds for one of `count`.
fn time(count: u64, mut round: impl FnMut() -> f64) -> (f64, f64) {
    let times: Vec<f64> = (0..ROUNDS).map(|_| round() / count as f64).collect();
    (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(0.0, f64::max))
}

struct SpeedRun {
    quick: bool,
    filter: Option<String>,
}

impl SpeedRun {
    fn wants(&self, label: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| label.contains(filter.as_str()))
    }

    fn report(&self, label: &str, count: u64, round: impl Fn(u64) -> f64) {
        if !self.wants(label) {
            return;
        }
        let count = if self.quick { count / 50 } else { count };
        let (best, worst) = time(count, || round(count));
        println!("{label:<52} {best:>8.1} ns ({worst:.1})  {:>6.2} M/s", 1e3 / best);
    }

    fn executor(&self) {
        let free = |cpus| CpuOptions { slice: Slice::Fixed(1), ..CpuOptions::count(cpus) };
        let worlds = [
            ("shuffled", WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(1) }),
            ("1 CPU", WorldOptions::machine(1, free(1))),
            ("8 CPUs", WorldOptions::machine(1, free(8))),
        ];
        for (name, options) in &worlds {
            for tasks in [10, 1000] {
                self.report(&format!("task switch, {name}, {tasks} tasks"), 2_000_000, |count| {
                    loop_in_tasks(options, tasks, count, false)
                });
                self.report(&format!("sleep, {name}, {tasks} tasks"), 1_000_000, |count| {
                    loop_in_tasks(options, tasks, count, true)
                });
            }
        }
    }

    fn pages(&self) {
        let cpus = || WorldOptions::machine(1, CpuOptions::count(8));
        let shuffled = || WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(1) };
        let kinds: [(&str, u64, u64, u64); 5] = [
            ("hits", 4, 4096, 0),
            ("half misses", 16, 8192, 0),
            ("nearly all misses", 16, 1 << 20, 0),
            ("half misses, 3 in 10 writes", 16, 8192, 300),
            ("half misses, 1000 tasks", 1000, 8192, 0),
        ];
        for (name, tasks, file_pages, write_per_mille) in kinds {
            for (world, options) in [("shuffled", shuffled()), ("8 CPUs", cpus())] {
                self.report(&format!("page, {name}, {world}"), 1_000_000, |count| {
                    let rig = Rig::new(options.clone(), 5120, file_pages, 20_000, 4_000_000_000);
                    rig.random_pages(tasks, count / 10, 0);
                    let began = cpu_ns();
                    rig.random_pages(tasks, count, write_per_mille);
                    cpu_ns() - began
                });
            }
        }
    }

    /// 1 GB over a link of 100 Mbit/s, 11.8 MB/s of payload, to a disk of 25 MB/s.
    fn stream(&self) {
        let label = "stream";
        if !self.wants(label) {
            return;
        }
        let bytes: u64 = if self.quick { 20_000_000 } else { 1_000_000_000 };
        let piece = vec![3; 65536];
        for _ in 0..ROUNDS {
            let began = cpu_ns();
            let rig = Rig::new(WorldOptions::machine(1, CpuOptions::count(2)), 65536, 0, 100_000, 25_000_000);
            let (engine, file, platform) = (&rig.engine, &rig.file, &rig.platform);
            rig.world
                .run(async {
                    for at in 0..bytes / piece.len() as u64 {
                        let arrives = (at + 1) * piece.len() as u64 * 10_000 / 118;
                        platform.sleep_until(Nanos(arrives)).await;
                        engine.write(file, at * piece.len() as u64, &piece).await.unwrap();
                    }
                    engine.sync(file, 0..u64::MAX).await.unwrap();
                })
                .unwrap();
            let virtual_s = platform.now().0 as f64 / 1e9;
            let real_s = (cpu_ns() - began) / 1e9;
            let pages = platform.counters().get(Counter::PagesWritten);
            let ratio = virtual_s / real_s;
            println!("{label}: {pages} pages, {virtual_s:.1} s in {real_s:.3} s: {ratio:.0} s a second");
        }
    }
}

/// A total of `count` sleeps or switches by this many tasks; returns the nanoseconds.
fn loop_in_tasks(options: &WorldOptions, tasks: u64, count: u64, sleep: bool) -> f64 {
    let world = World::new(options.clone());
    for _ in 0..tasks {
        let platform = Arc::clone(world.platform());
        world.spawn("loops", async move {
            for at in 0..count / tasks {
                platform.charge_ns(2);
                if sleep {
                    platform.sleep_until(platform.now().after(1000 + at % 97)).await;
                } else {
                    platform.preemption_point().await;
                }
            }
        });
    }
    let began = cpu_ns();
    // Runs until all have ended and nothing is left to wait for.
    assert!(world.run(std::future::pending::<()>()).is_err());
    cpu_ns() - began
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let filter = arguments.into_iter().find(|argument| !argument.starts_with("--"));
    let bench = SpeedRun { quick, filter };
    if bench.wants("goals") {
        goals::goals(quick);
    }
    bench.executor();
    bench.pages();
    bench.stream();
}
