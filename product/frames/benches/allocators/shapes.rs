//! The loops that allocators are measured with, the same for each.
//!
//! They are the loops with which LLFree was published: bulk, repeat, random. The file names no allocator and uses no
//! crate but rustix, so that another program can include it to measure its own allocator.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// The allocator that is measured.
pub trait Subject: Sync {
    /// Takes a block.
    fn get(&self, core: usize, order: u8) -> Option<u32>;
    /// Gives a block back.
    fn put(&self, core: usize, first: u32, order: u8);
}

/// A loop of allocations and frees that a bench runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Half of the memory is allocated, then freed, last first.
    Bulk,
    /// With half of the memory allocated, one block is allocated and freed again and again.
    Repeat,
    /// Half of the memory is allocated; all threads' blocks are shuffled, and each frees its part.
    Random,
    /// With all but a hundredth allocated, a random block is freed and another allocated.
    Full,
}

/// Nanoseconds of an allocation and of a free. `Repeat` and `Full` cannot tell them apart: `get_ns` then has the sum.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub get_ns: f64,
    pub put_ns: f64,
}

/// Runs a loop with `threads` threads, each on its own CPU, over `frames` frames; returns the mean of the threads.
pub fn run(subject: &impl Subject, shape: Shape, frames: u32, order: u8, threads: usize) -> Cost {
    let share = (frames >> order) as usize / 2 / threads;
    let barrier = Barrier::new(threads);
    let mut parts: Vec<Vec<u32>> = (0..threads).map(|_| Vec::with_capacity(share)).collect();
    let (subject, barrier) = (&subject, &barrier);
    let pinned = |core: usize, body: &mut dyn FnMut(usize) -> Cost| {
        pin(core);
        barrier.wait();
        body(core)
    };
    let costs: Vec<Cost> = match shape {
        Shape::Bulk => {
            on_threads(&mut parts, |core, part| pinned(core, &mut |core| bulk(*subject, core, order, part, share)))
        }
        Shape::Repeat => on_threads(&mut parts, |core, part| {
            take(*subject, core, order, part, share);
            let cost = pinned(core, &mut |core| repeat(*subject, core, order, (share << order).min(1 << 20)));
            part.drain(..).for_each(|first| subject.put(core, first, order));
            cost
        }),
        Shape::Random => random(*subject, &mut parts, order, share, &pinned),
        Shape::Full => on_threads(&mut parts, |core, part| {
            let share = ((frames as usize * 99 / 100) >> order) / threads;
            take(*subject, core, order, part, share);
            let cost = pinned(core, &mut |core| full(*subject, core, order, part));
            part.drain(..).for_each(|first| subject.put(core, first, order));
            cost
        }),
    };
    let mean = |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / costs.len() as f64;
    Cost { get_ns: mean(|cost| cost.get_ns), put_ns: mean(|cost| cost.put_ns) }
}

fn on_threads(parts: &mut [Vec<u32>], body: impl Fn(usize, &mut Vec<u32>) -> Cost + Sync) -> Vec<Cost> {
    std::thread::scope(|scope| {
        let body = &body;
        let mut threads = Vec::new();
        for (core, part) in parts.iter_mut().enumerate() {
            threads.push(scope.spawn(move || {
                // On the thread's own stack, so that the lists' lengths do not share a cache line.
                let mut own = std::mem::take(part);
                let cost = body(core, &mut own);
                *part = own;
                cost
            }));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn take(subject: &impl Subject, core: usize, order: u8, part: &mut Vec<u32>, count: usize) {
    part.extend((0..count).map(|_| subject.get(core, order).expect("memory")));
}

fn per(start: Instant, count: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / count.max(1) as f64
}

fn bulk(subject: &impl Subject, core: usize, order: u8, part: &mut Vec<u32>, share: usize) -> Cost {
    // Repeats until the larger blocks, too, take a measurable time.
    let rounds = 1 << order.min(6);
    let (mut get_ns, mut put_ns) = (0.0, 0.0);
    for _ in 0..rounds {
        let start = Instant::now();
        take(subject, core, order, part, share);
        get_ns += per(start, share);
        let start = Instant::now();
        while let Some(first) = part.pop() {
            subject.put(core, first, order);
        }
        put_ns += per(start, share);
    }
    Cost { get_ns: get_ns / f64::from(rounds), put_ns: put_ns / f64::from(rounds) }
}

fn repeat(subject: &impl Subject, core: usize, order: u8, count: usize) -> Cost {
    let start = Instant::now();
    for _ in 0..count {
        let first = black_box(subject.get(core, order).expect("memory"));
        subject.put(core, first, order);
    }
    Cost { get_ns: per(start, count), put_ns: 0.0 }
}

fn full(subject: &impl Subject, core: usize, order: u8, part: &mut [u32]) -> Cost {
    let mut random = Random(core as u64 + 1);
    let count = part.len().max(1 << 17);
    let start = Instant::now();
    for _ in 0..count {
        let at = random.below(part.len());
        subject.put(core, part[at], order);
        // Another thread may hold the remaining frames for a moment.
        part[at] = (0..1000).find_map(|_| subject.get(core, order)).expect("memory");
    }
    Cost { get_ns: per(start, count), put_ns: 0.0 }
}

fn random(
    subject: &impl Subject,
    parts: &mut [Vec<u32>],
    order: u8,
    share: usize,
    pinned: &(impl Fn(usize, &mut dyn FnMut(usize) -> Cost) -> Cost + Sync),
) -> Vec<Cost> {
    let rounds = 1 << order.min(6);
    let mut sums = vec![Cost { get_ns: 0.0, put_ns: 0.0 }; parts.len()];
    for round in 0..rounds {
        let gets = on_threads(parts, |core, part| {
            pinned(core, &mut |core| {
                let start = Instant::now();
                take(subject, core, order, part, share);
                Cost { get_ns: per(start, share), put_ns: 0.0 }
            })
        });
        shuffle(parts, &mut Random(round + 42));
        let puts = on_threads(parts, |core, part| {
            pinned(core, &mut |core| {
                let start = Instant::now();
                part.iter().for_each(|first| subject.put(core, *first, order));
                let put_ns = per(start, share);
                part.clear();
                Cost { get_ns: 0.0, put_ns }
            })
        });
        for (sum, (get, put)) in sums.iter_mut().zip(gets.iter().zip(&puts)) {
            sum.get_ns += get.get_ns / rounds as f64;
            sum.put_ns += put.put_ns / rounds as f64;
        }
    }
    sums
}

fn shuffle(parts: &mut [Vec<u32>], random: &mut Random) {
    let mut all: Vec<u32> = parts.iter().flatten().copied().collect();
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    let mut all = all.into_iter();
    parts.iter_mut().flatten().zip(&mut all).for_each(|(slot, first)| *slot = first);
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (((self.0 >> 32) * limit as u64) >> 32) as usize
    }
}

fn pin(core: usize) {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(core);
    // If pinning is not allowed, the run goes on without it.
    let _ = rustix::thread::sched_setaffinity(None, &cpus);
}
