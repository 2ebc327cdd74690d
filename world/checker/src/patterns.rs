//! Tasks with a habit: sequences that programs repeat on files, and that random operations seldom produce in the right
//! order.
//!
//! Owns: the habits and their draws.
//! Does not own: random operations (`generate`), their meaning (`ops`).
//! Invariants: equal draws give equal tasks.

use afflux_simulator::Random;

use crate::offsets::{Offsets, PAGE};
use crate::text::Op;

const SECTOR: u64 = 512;

/// A task that appends and syncs, as a log does.
pub(super) fn log(random: &mut Random, offsets: &Offsets, count: u64, files: u64) -> Vec<Op> {
    let (file, sync_per_mille) = (random.below(files), random.pick(&[100, 500, 1000]));
    let mut offset = offsets.offset(random);
    let mut ops = Vec::new();
    while (ops.len() as u64) < count {
        let len = offsets.len(random);
        ops.push(Op::Write { file, offset, len });
        offset += len;
        if random.chance(sync_per_mille) {
            ops.push(Op::Sync { file, offset: 0, len: 0 });
        }
    }
    ops
}

/// A task that rewrites one range again and again, as a program rewrites a header.
pub(super) fn rewriter(random: &mut Random, offsets: &Offsets, count: u64, files: u64) -> Vec<Op> {
    let (file, offset) = (random.below(files), offsets.offset(random));
    let draw = |_| match random.below(8) {
        0 => Op::Sync { file, offset, len: PAGE },
        1 => Op::Read { file, offset, len: offsets.len(random) },
        2 => Op::Sleep { us: random.below(2_000) },
        3 | 4 => Op::TryWrite { file, offset, len: offsets.len(random).min(PAGE) },
        _ => Op::Write { file, offset, len: offsets.len(random).min(PAGE) },
    };
    (0..count).map(draw).collect()
}

/// A task that writes some sectors of an uncached page, with gaps between them, and syncs. On blocks of 512 bytes the
/// page is then valid in part, and takes two requests.
pub(super) fn sectors(random: &mut Random, offsets: &Offsets, count: u64, files: u64) -> Vec<Op> {
    let file = random.below(files);
    let mut ops = Vec::new();
    while (ops.len() as u64) < count {
        let page = random.below(offsets.pages) * PAGE;
        if random.chance(500) {
            ops.push(Op::Invalidate { file });
        }
        for _ in 0..random.between(2, 3) {
            let (sector, sectors) = (random.below(8), random.between(1, 3));
            let (offset, len) = (page + sector * SECTOR, sectors.min(8 - sector) * SECTOR);
            ops.push(if random.chance(200) {
                Op::TryWrite { file, offset, len }
            } else {
                Op::Write { file, offset, len }
            });
        }
        match random.below(4) {
            0 => ops.push(Op::Read { file, offset: page, len: PAGE }),
            1 => ops.push(Op::Sync { file, offset: page, len: PAGE }),
            _ => ops.push(Op::Sync { file, offset: 0, len: 0 }),
        }
    }
    ops
}

/// A few flushes of the file fail, and lose the bytes that they were to make durable.
fn losing_flushes(random: &mut Random, file: u64) -> Op {
    let (times, per_mille) = (random.pick(&[1, 1, 2]), random.pick(&[1000, 500]));
    Op::Fault { device: 0, target: 2, file: file + 1, offset: 0, len: u64::MAX, times, per_mille, what: 5, arg: 0 }
}

/// Callers that each write pages of one file and sync the file, as threads with a common log do. With `losing`, a few
/// flushes fail, and lose bytes.
pub(super) fn syncers(random: &mut Random, offsets: &Offsets, count: u64, file: u64, losing: bool) -> Vec<Vec<Op>> {
    let mut tasks = Vec::new();
    for _ in 0..random.between(2, 5) {
        let (page, mut ops) = (random.below(offsets.pages), Vec::new());
        while (ops.len() as u64) < count {
            let offset = (page + random.below(2)) * PAGE;
            ops.push(Op::Write { file, offset, len: random.pick(&[PAGE, PAGE, 2 * PAGE, 512]) });
            if losing && random.chance(50) {
                ops.push(losing_flushes(random, file));
            }
            ops.push(Op::Sync { file, offset: 0, len: 0 });
            if random.chance(300) {
                ops.push(Op::Sleep { us: random.below(6_000) });
            }
        }
        tasks.push(ops);
    }
    tasks
}

/// A task that lets the flusher write pages and drops them from the cache before it syncs. With `losing`, a failing
/// flush in between loses the pages.
pub(super) fn forgetter(random: &mut Random, offsets: &Offsets, count: u64, files: u64, losing: bool) -> Vec<Op> {
    let file = random.below(files);
    let mut ops = Vec::new();
    if losing {
        ops.push(losing_flushes(random, file));
    }
    while (ops.len() as u64) < count {
        ops.push(Op::Write { file, offset: offsets.offset(random), len: offsets.len(random) });
        ops.push(Op::Sleep { us: random.pick(&[200, 20_000, 200_000, 6_000_000, 40_000_000]) });
        match random.below(4) {
            0 => ops.push(Op::Read {
                file: random.below(files),
                offset: offsets.offset(random),
                len: offsets.len(random),
            }),
            1 => ops.push(Op::Sync { file, offset: 0, len: 0 }),
            _ => ops.push(Op::Invalidate { file }),
        }
        if random.chance(500) {
            ops.push(Op::Sync { file, offset: 0, len: 0 });
        }
    }
    ops
}

/// Three tasks around one page. The first writes and pins the page, the second cuts the file inside the page, and the
/// third writes past the cut.
pub(super) fn cut(random: &mut Random, offsets: &Offsets, count: u64, files: u64) -> [Vec<Op>; 3] {
    let (file, page) = (random.below(files), random.below(offsets.pages));
    let (start, size) = (page * PAGE, page * PAGE + random.between(1, PAGE - 1));
    let mut tasks = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..count.div_ceil(4) {
        tasks[0].push(Op::Write { file, offset: start, len: PAGE });
        tasks[0].push(Op::ReadPinned { file, offset: start, len: PAGE, hold_us: random.below(3_000) });
        tasks[1].push(Op::SetSize { file, size });
        tasks[1].push(Op::Sleep { us: random.below(500) });
        let (offset, len) = (size + random.below(2 * PAGE), random.between(1, 2 * PAGE));
        tasks[2].push(if random.chance(300) {
            Op::TryWrite { file, offset, len }
        } else {
            Op::Write { file, offset, len }
        });
        match random.below(3) {
            0 => tasks[2].push(Op::Read { file, offset, len }),
            1 => tasks[2].push(Op::Sync { file, offset: 0, len: 0 }),
            _ => tasks[2].push(Op::Sleep { us: random.below(300) }),
        }
    }
    tasks
}
