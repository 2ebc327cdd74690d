//! The loops: the requests of S2's benchmarks to a page allocator, without the rest of a kernel.
//!
//! Owns: the loops of page_test, brk_test and kernbench, CPU time, the number of repetitions in a sample.
//! Does not own: passing buffers between threads (`exchange`), the state of a thread (`user`), the statistics.
//! Invariants: a loop gives back all frames before its end. Times are CPU times of the threads, so that other load on
//! the machine counts little.

mod exchange;
mod user;

use std::sync::{Barrier, Mutex, PoisonError};

use afflux_kernels::zone::Mobility;
use rustix::time::{ClockId, clock_gettime};

use exchange::{Mailboxes, Ring};
pub(super) use user::{Allocator, Memory};
use user::{Random, User};

/// Pages that page_test holds at a time, as with `sbrk` of 1 MiB.
const PAGES: usize = 256;
/// Pages of a heap that brk_test grows and shrinks; a page table comes with them.
const HEAP_PAGES: usize = 16;
/// Blocks that kernbench's loop holds at a time.
const BLOCKS: usize = 512;

/// A loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoopKind {
    /// Takes 256 pages, touches them, and gives them back in the same order, as aim9 does.
    PageTest,
    /// Grows a heap by 16 pages and a page table, and shrinks it, as aim9 does.
    BrkTest,
    /// A thread takes a buffer, fills it and passes it on; the receiver gives it back.
    Netperf {
        /// Size of a buffer. Buffers below a page share one.
        kib: u32,
    },
    /// 40 tasks a thread send each other small messages.
    Hackbench,
    /// Blocks of mixed sizes and classes come and go in random order.
    Kernbench,
}

const NETPERF: [LoopKind; 5] = [
    LoopKind::Netperf { kib: 1 },
    LoopKind::Netperf { kib: 2 },
    LoopKind::Netperf { kib: 4 },
    LoopKind::Netperf { kib: 8 },
    LoopKind::Netperf { kib: 16 },
];

impl LoopKind {
    /// The loops with this name, or all of them.
    pub(super) fn named(name: &str) -> Result<Vec<Self>, String> {
        Ok(match name {
            "page_test" => vec![Self::PageTest],
            "brk_test" => vec![Self::BrkTest],
            "netperf" => NETPERF.to_vec(),
            "hackbench" => vec![Self::Hackbench],
            "kernbench" => vec![Self::Kernbench],
            "all" => [&[Self::PageTest, Self::BrkTest], &NETPERF[..], &[Self::Hackbench, Self::Kernbench]].concat(),
            "none" => Vec::new(),
            _ => {
                return Err(format!(
                    "'{name}' is none of page_test, brk_test, netperf, hackbench, kernbench, all, none"
                ));
            }
        })
    }

    /// The name without the size.
    pub(super) fn loop_name(self) -> &'static str {
        match self {
            Self::PageTest => "page_test",
            Self::BrkTest => "brk_test",
            Self::Netperf { .. } => "netperf",
            Self::Hackbench => "hackbench",
            Self::Kernbench => "kernbench",
        }
    }

    /// The name, for netperf with the size of the buffer.
    pub(super) fn name(self) -> String {
        match self {
            Self::Netperf { kib } => format!("netperf {}", kib * 1024),
            other => other.loop_name().to_owned(),
        }
    }

    /// Whether it asks for single frames alone, so that an allocator of single frames can take part.
    pub(super) fn asks_single_frames(self) -> bool {
        !matches!(self, Self::Netperf { kib: 5.. } | Self::Kernbench)
    }

    /// Operations of a sample: some ten milliseconds of work.
    pub(super) fn operations(self, quick: bool) -> u64 {
        let all = match self {
            Self::PageTest | Self::BrkTest => 400_000,
            Self::Netperf { kib } => 480_000 / u64::from(kib.max(3)),
            Self::Hackbench | Self::Kernbench => 160_000,
        };
        if quick { all / 20 } else { all }
    }
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) work: LoopKind,
    pub(super) threads: usize,
    /// Operations of all threads together: pages, messages or blocks.
    pub(super) operations: u64,
    /// Whether to read the clock. Under valgrind the kernel's page with the clock is missing.
    pub(super) timed: bool,
}

/// Runs a load; returns CPU nanoseconds an operation, summed over the threads.
pub(super) fn run<A: Allocator>(allocator: &A, load: &Load, memory: &Memory) -> Result<f64, String> {
    let each = load.operations / load.threads as u64;
    let ring = Ring::new();
    let mailboxes = Mailboxes::new(load.threads);
    let barrier = Barrier::new(load.threads);
    let ended: Mutex<Vec<(u64, u64)>> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..load.threads {
            let (ring, mailboxes, barrier, ended) = (&ring, &mailboxes, &barrier, &ended);
            scope.spawn(move || {
                let mut user = User { allocator, cpu: thread, memory, random: Random(thread as u64 + 1), failed: 0 };
                barrier.wait();
                let began_ns = cpu_ns(load);
                match load.work {
                    LoopKind::PageTest => page_test(&mut user, each),
                    LoopKind::BrkTest => brk_test(&mut user, each),
                    LoopKind::Kernbench => kernbench(&mut user, each),
                    LoopKind::Hackbench => mailboxes.exchange(&mut user, thread, each),
                    LoopKind::Netperf { kib } => ring.netperf(&mut user, thread, load.threads, load.operations, kib),
                }
                let used_ns = cpu_ns(load) - began_ns;
                barrier.wait();
                if thread == 0 {
                    mailboxes.give_back(&mut user);
                }
                ended.lock().unwrap_or_else(PoisonError::into_inner).push((used_ns, user.failed));
            });
        }
    });
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed: u64 = ended.iter().map(|(_, failed)| failed).sum();
    if failed > 0 || ended.len() < load.threads {
        return Err(format!("{failed} calls failed of an allocator with free frames"));
    }
    Ok(ended.iter().map(|(used_ns, _)| used_ns).sum::<u64>() as f64 / load.operations as f64)
}

fn cpu_ns(load: &Load) -> u64 {
    if !load.timed {
        return 0;
    }
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn page_test<A: Allocator>(user: &mut User<'_, A>, pages: u64) {
    let mut held = Vec::with_capacity(PAGES);
    for _ in 0..pages.div_ceil(PAGES as u64) {
        for _ in 0..PAGES {
            if let Some(frame) = user.take(0, Mobility::Movable) {
                user.memory.fill(frame, 0, 8);
                held.push(frame);
            }
        }
        held.drain(..).for_each(|frame| user.give(frame, 0));
    }
}

fn brk_test<A: Allocator>(user: &mut User<'_, A>, pages: u64) {
    let mut held = Vec::with_capacity(HEAP_PAGES);
    for _ in 0..pages.div_ceil(HEAP_PAGES as u64) {
        let table = user.take(0, Mobility::Unmovable);
        for _ in 0..HEAP_PAGES {
            if let Some(frame) = user.take(0, Mobility::Movable) {
                user.memory.fill(frame, 0, 8);
                held.push(frame);
            }
        }
        while let Some(frame) = held.pop() {
            user.give(frame, 0);
        }
        table.into_iter().for_each(|frame| user.give(frame, 0));
    }
}

/// Sizes and classes as in a compilation: mostly pages of files and of processes, some tables and inodes, few larger
/// blocks. The shares are our own assumption; none were published.
fn kernbench<A: Allocator>(user: &mut User<'_, A>, blocks: u64) {
    let mut held: Vec<Option<(u32, u8)>> = vec![None; BLOCKS];
    for _ in 0..blocks {
        let at = user.random.below(BLOCKS as u64) as usize;
        if let Some((first, order)) = held[at].take() {
            user.give(first, order);
        }
        let class = match user.random.below(10) {
            0..6 => Mobility::Movable,
            6..8 => Mobility::Reclaimable,
            _ => Mobility::Unmovable,
        };
        let order = match user.random.below(100) {
            0..88 => 0,
            88..95 => 1,
            95..98 => 2,
            _ => 3,
        };
        held[at] = user.take(order, class).map(|first| (first, order));
    }
    held.into_iter().flatten().for_each(|(first, order)| user.give(first, order));
}

#[cfg(test)]
mod tests;
