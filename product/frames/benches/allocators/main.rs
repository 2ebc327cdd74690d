//! Nanoseconds an allocation and a free of one frame cost.
//!
//! `cargo bench -p afflux-frames -- [MiB ...]`: arenas of these sizes, 2048 if none is given.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, unreachable_pub, reason = "a measured program")]

mod shapes;

use afflux_figures::median_and_range;
use afflux_frames::{Effort, FrameId, Frames};
use shapes::{Cost, Shape, Subject};

const ROUNDS: usize = 7;

struct Measured(Frames);

impl Subject for Measured {
    #[inline]
    fn get(&self, _core: usize, _order: u8) -> Option<u32> {
        self.0.allocate(Effort::Reserve).map(FrameId::raw)
    }

    #[inline]
    fn put(&self, _core: usize, frame: u32, _order: u8) {
        self.0.free(FrameId::new(frame));
    }
}

fn run(shape: Shape, frames: u32, threads: usize) -> Cost {
    let subject = Measured(Frames::new(u64::from(frames) << 12).unwrap());
    // One unmeasured run: memory that was not touched lately costs more.
    shapes::run(&subject, Shape::Bulk, frames, 0, threads);
    shapes::run(&subject, shape, frames, 0, threads)
}

fn main() {
    let mut sizes: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes.push(2048);
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    println!("ns: lowest, median, highest of {ROUNDS} runs; repeat and full: allocation and free together");
    for mib in sizes {
        for shape in [Shape::Bulk, Shape::Repeat, Shape::Random, Shape::Full] {
            for threads in 1..=cpus.min(2) {
                let costs: Vec<Cost> = (0..ROUNDS).map(|_| run(shape, mib * 256, threads)).collect();
                let (get, put) = (spread(&costs, |cost| cost.get_ns), spread(&costs, |cost| cost.put_ns));
                println!("{mib:5} MiB {shape:?} threads {threads} get {get} put {put}");
            }
        }
    }
}

fn spread(costs: &[Cost], of: fn(&Cost) -> f64) -> String {
    let [median, least, most] = median_and_range(costs.iter().map(of)).unwrap();
    format!("{least:6.1} {median:6.1} {most:6.1}")
}
