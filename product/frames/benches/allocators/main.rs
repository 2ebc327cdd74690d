//! Nanoseconds an allocation and a free cost, for each allocator, the sides alternating.
//!
//! `cargo bench -p afflux-frames -- [MiB ...]`: arenas of these sizes, 2048 if none is given.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, unreachable_pub, reason = "a measured program")]

mod shapes;

use afflux_frames::linux::{BatchedDrain, ListPerClass, SingleList, Zone, ZoneTunables};
use afflux_frames::{Allocator, Effort, Magazines, Mobility, Order};
use shapes::{Cost, Shape, Subject};

const ROUNDS: usize = 7;

struct Measured<A>(A);

impl<A: Allocator> Subject for Measured<A> {
    #[inline]
    fn get(&self, _core: usize, order: u8) -> Option<u32> {
        self.0.allocate(Order::new(order)?, Mobility::Movable, Effort::Reserve)
    }

    #[inline]
    fn put(&self, _core: usize, first: u32, order: u8) {
        if let Some(order) = Order::new(order) {
            self.0.free(first, order).expect("a block that was taken");
        }
    }
}

type Run = fn(Shape, u32, u8, usize) -> Cost;

fn run<A: Allocator>(shape: Shape, frames: u32, order: u8, threads: usize) -> Cost {
    let subject = Measured(A::new(frames));
    // One unmeasured run: memory that was not touched lately costs more.
    shapes::run(&subject, Shape::Bulk, frames, order, threads);
    shapes::run(&subject, shape, frames, order, threads)
}

const SIDES: [(&str, Run); 5] = [
    (Magazines::NAME, run::<Magazines>),
    (<Zone<SingleList> as Allocator>::NAME, run::<Zone<SingleList>>),
    (<Zone<ListPerClass> as Allocator>::NAME, run::<Zone<ListPerClass>>),
    (<Zone<BatchedDrain> as Allocator>::NAME, run::<Zone<BatchedDrain>>),
    (<Zone<ZoneTunables> as Allocator>::NAME, run::<Zone<ZoneTunables>>),
];

fn main() {
    let mut sizes: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes.push(2048);
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    println!("ns: lowest, median, highest of {ROUNDS} runs; repeat and full: allocation and free together");
    for mib in sizes {
        for shape in [Shape::Bulk, Shape::Repeat, Shape::Random, Shape::Full] {
            for order in if shape == Shape::Full { &[0][..] } else { &[0, 9] } {
                for threads in 1..=cpus.min(2) {
                    table(mib, shape, *order, threads);
                }
            }
        }
    }
}

fn table(mib: u32, shape: Shape, order: u8, threads: usize) {
    let mut costs: Vec<Vec<Cost>> = SIDES.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, run), costs) in SIDES.iter().zip(&mut costs) {
            costs.push(run(shape, mib * 256, order, threads));
        }
    }
    for ((name, _), costs) in SIDES.iter().zip(&costs) {
        let get = spread(costs, |cost| cost.get_ns);
        let put = spread(costs, |cost| cost.put_ns);
        println!("{mib:5} MiB {shape:?} order {order} threads {threads} {name:13} get {get} put {put}");
    }
}

fn spread(costs: &[Cost], of: fn(&Cost) -> f64) -> String {
    let mut costs: Vec<f64> = costs.iter().map(of).collect();
    costs.sort_by(f64::total_cmp);
    format!("{:6.1} {:6.1} {:6.1}", costs[0], costs[costs.len() / 2], costs[costs.len() - 1])
}
