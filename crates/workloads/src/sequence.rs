//! Which operation a clone of a job does next, by fio's rules.
//!
//! Owns: sizes of files, whose turn it is among them, offsets and lengths, when a sync is due, when
//! all is done.
//! Does not own: when an operation happens (`runner`), the operation itself.
//! Invariants: depends on the job and the generator alone. A job without `time_based` ends.

use crate::blocks::Blocks;
use crate::job::{BlockSizes, Distribution, Job};
use crate::zipf::Zipf;
use simulator::Random;

/// Which way bytes go; also the place in a job's pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read = 0,
    Write = 1,
}

/// One call that moves bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// Which file of the clone.
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// What a clone works on: a file's size, and how much of it belongs to the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub(crate) file_bytes: u64,
    pub(crate) job_bytes: u64,
}

/// The smallest block of a job, which sizes are rounded to.
fn block_min(job: &Job) -> u64 {
    job.block_bytes[0].min.min(job.block_bytes[1].min)
}

/// The sizes of a clone's files. `size` is divided among them, and what is left over makes the first
/// ones larger by a block; with `filesize` each has that, or a size drawn from the range.
pub(crate) fn shares(job: &Job, random: &mut Random) -> Vec<Share> {
    let block = block_min(job);
    let each = job.size / job.files;
    let larger = (job.size - each * job.files) / block;
    let share = |at: u64| match job.file_bytes {
        None => {
            let bytes = each + if at < larger { block } else { 0 };
            Share { file_bytes: bytes, job_bytes: bytes }
        }
        Some((low, high)) => {
            let file_bytes =
                if low == high { low } else { random.between(low, high).next_multiple_of(block).min(high) };
            let part = u128::from(file_bytes) * u128::from(job.size_percent) / 100;
            let rounded = if job.size_percent == 100 { file_bytes } else { part as u64 / block * block };
            Share { file_bytes, job_bytes: rounded }
        }
    };
    (0..job.files).map(share).collect()
}

/// How the next offset in a file is found.
#[derive(Clone, Debug)]
enum Order {
    /// The next byte to read, and to write.
    Sequential([u64; 2]),
    /// Each once, in units of so many bytes.
    Once(Blocks, u64),
    /// Any block any time; the number makes each file's favourites others.
    Skewed(Zipf, u64),
}

#[derive(Clone, Debug)]
struct FileState {
    bytes: u64,
    order: Order,
    done: bool,
}

/// The operations of one clone.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    block_bytes: [BlockSizes; 2],
    reads: bool,
    writes: bool,
    mix_read_percent: u64,
    fsync_every: u64,
    fdatasync_every: u64,
    time_based: bool,
    files: Vec<FileState>,
    turn: usize,
    /// Bytes after which the clone has done its part.
    total: u64,
    issued: u64,
    writes_issued: u64,
    synced_last: bool,
    rewound: Vec<usize>,
    random: Random,
}

impl Sequence {
    pub(crate) fn new(job: &Job, shares: &[Share], mut random: Random) -> Self {
        let whole: u64 = shares.iter().map(|share| share.job_bytes).sum();
        let part = |used: bool, at: usize| if used { job.block_bytes[at].min } else { u64::MAX };
        let unit = part(job.pattern.reads, 0).min(part(job.pattern.writes, 1));
        let order = |bytes: u64, random: &mut Random| match (job.pattern.random, job.distribution) {
            (false, _) => Order::Sequential([0; 2]),
            (true, Distribution::Uniform) => Order::Once(Blocks::new(bytes / unit), unit),
            (true, Distribution::Zipf(theta)) => Order::Skewed(Zipf::new((bytes / unit).max(1), theta), random.bits()),
        };
        let files = shares.iter().map(|share| FileState {
            bytes: share.job_bytes,
            order: order(share.job_bytes, &mut random),
            done: false,
        });
        Self {
            block_bytes: job.block_bytes,
            reads: job.pattern.reads,
            writes: job.pattern.writes,
            mix_read_percent: job.mix_read_percent,
            fsync_every: job.fsync_every,
            fdatasync_every: job.fdatasync_every,
            time_based: job.time_based,
            files: files.collect(),
            turn: 0,
            total: if job.size == 0 { whole } else { job.size.min(whole) },
            issued: 0,
            writes_issued: 0,
            synced_last: false,
            rewound: Vec::new(),
            random,
        }
    }

    /// Bytes that the clone moves unless time ends it.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Whether all has been issued. Never with `time_based`.
    pub(crate) fn is_done(&self) -> bool {
        !self.time_based && self.issued >= self.total
    }

    /// Whether a sync comes before anything else: `true` for one of data alone. Writes are counted as they
    /// are issued, and the count is looked at again after a read too.
    pub(crate) fn sync_due(&self) -> Option<bool> {
        let due = |every: u64| every > 0 && self.writes_issued.is_multiple_of(every);
        if self.synced_last || self.writes_issued == 0 {
            None
        } else if due(self.fsync_every) {
            Some(false)
        } else {
            due(self.fdatasync_every).then_some(true)
        }
    }

    /// The file that a due sync is for: whose turn it is, as for a block.
    pub(crate) fn sync(&mut self) -> Option<usize> {
        self.synced_last = true;
        self.take_turn()
    }

    /// Whether the last operation was a sync: a closing one is left out then.
    pub(crate) fn synced_last(&self) -> bool {
        self.synced_last
    }

    /// Which way the next block goes.
    pub(crate) fn direction(&mut self) -> Direction {
        match (self.reads, self.writes) {
            (true, true) if self.random.below(100) < self.mix_read_percent => Direction::Read,
            (true, false) => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// The next block; nothing when every file is done.
    pub(crate) fn block(&mut self, direction: Direction) -> Option<Block> {
        loop {
            let Some(file) = self.take_turn() else {
                if !self.time_based || !self.rewind_all() {
                    return None;
                }
                continue;
            };
            let Some((offset, len)) = self.place(file, direction) else {
                self.files[file].done = true;
                continue;
            };
            self.issued += len;
            self.writes_issued += u64::from(direction == Direction::Write);
            self.synced_last = false;
            return Some(Block { file, offset, len });
        }
    }

    /// Files that began again from their start: what the cache has of them is to be dropped, as fio asks the
    /// kernel to.
    pub(crate) fn take_rewound(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.rewound)
    }

    /// One after the other, those that are done left out.
    fn take_turn(&mut self) -> Option<usize> {
        let count = self.files.len();
        let file = (0..count).map(|step| (self.turn + step) % count).find(|file| !self.files[*file].done)?;
        self.turn = (file + 1) % count;
        Some(file)
    }

    /// All files begin again. Not if none has room for a block.
    fn rewind_all(&mut self) -> bool {
        let smallest = self.block_bytes.iter().map(|sizes| sizes.min).min().unwrap_or(1);
        for (at, file) in self.files.iter_mut().enumerate() {
            file.done = file.bytes < smallest;
            match &mut file.order {
                Order::Sequential(next) => *next = [0; 2],
                Order::Once(blocks, _) => blocks.clear(),
                Order::Skewed(..) => {}
            }
            self.rewound.push(at);
        }
        let usable = |sizes: &BlockSizes| self.files.iter().any(|file| file.bytes >= sizes.min);
        // Of a mixed job the larger blocks may fit nowhere; then it could go round for ever.
        self.block_bytes.iter().all(usable)
    }

    /// Offset and length in this file, or nothing if it has no more.
    fn place(&mut self, at: usize, direction: Direction) -> Option<(u64, u64)> {
        let sizes = self.block_bytes[direction as usize];
        let file = &mut self.files[at];
        match &mut file.order {
            Order::Sequential(next) => {
                let offset = &mut next[direction as usize];
                let len = length(sizes, file.bytes.saturating_sub(*offset), &mut self.random)?;
                *offset += len;
                Some((*offset - len, len))
            }
            Order::Once(blocks, unit) => {
                if blocks.is_full() && self.time_based {
                    blocks.clear();
                }
                let slots = (file.bytes / sizes.min).max(1);
                let from = self.random.below(slots) * sizes.min / *unit;
                let first = blocks.next_free(from)?;
                let len = length(sizes, u64::MAX, &mut self.random)?;
                let taken = blocks.take(first, len.div_ceil(*unit));
                Some((first * *unit, len.min(taken * *unit)))
            }
            Order::Skewed(zipf, salt) => {
                let slots = file.bytes / sizes.min;
                let rank = zipf.draw(&mut self.random);
                let slot = scattered(rank, *salt).checked_rem(slots)?;
                let offset = slot * sizes.min;
                length(sizes, file.bytes - offset, &mut self.random).map(|len| (offset, len))
            }
        }
    }
}

/// The length of a block with so much room: multiples of the smallest, drawn as fio does, so that the
/// largest comes up more often than the others.
fn length(sizes: BlockSizes, room: u64, random: &mut Random) -> Option<u64> {
    let BlockSizes { min, max } = sizes;
    if room < min {
        return None;
    }
    if min == max {
        return Some(min);
    }
    let drawn = (min + random.below(max)) / min * min;
    Some(drawn.min(max).min(if room < max { room / min * min } else { max }))
}

/// Where a rank's block is: anywhere, but always there.
fn scattered(rank: u64, salt: u64) -> u64 {
    let mut mixed = (rank ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests;
