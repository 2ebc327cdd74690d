//! Offset and length of a job's next call in a file, by fio's rules.
//!
//! Owns: orders of offsets, lengths, zones.
//! Does not own: the order of files (`sequence`), draws of skewed ranks (`zipf`).
//! Invariants: a call lies inside the job's part of the file, and is at least as long as the smallest block.

use crate::blocks::Blocks;
use crate::job::{BlockSizes, Distribution, Job, Zones};
use crate::shares::FileShare;
use crate::zipf::{Zipf, pareto};
use afflux_simulator::Random;

/// The direction of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read = 0,
    Write = 1,
    /// Bytes are given back to the disk.
    Trim = 2,
}

/// The number of directions.
pub(crate) const DIRECTIONS: usize = 3;

impl Direction {
    /// Its index in a job's pairs: trims have the sizes of writes.
    pub(crate) fn sizes(self) -> usize {
        usize::from(self != Self::Read)
    }
}

/// The rules that all files of a job share.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) block_bytes: [BlockSizes; 2],
    split: [Vec<(u64, u64)>; 2],
    sizes_by_order: bool,
    align: [u64; 2],
    pub(crate) time_based: bool,
    random: bool,
    random_percent: [u64; 2],
    random_every: u64,
    repeat_offset: bool,
    stride: i64,
    zones: Option<Zones>,
}

impl Rules {
    pub(crate) fn of(job: &Job) -> Self {
        let more = &job.more;
        let align = |at: usize| if more.align[at] == 0 { job.block_bytes[at].min } else { more.align[at] };
        Self {
            block_bytes: job.block_bytes,
            split: more.split.clone(),
            sizes_by_order: more.sizes_by_order,
            align: [align(0), align(1)],
            time_based: job.time_based,
            random: job.pattern.random,
            random_percent: more.random_percent,
            random_every: more.random_every.max(1),
            repeat_offset: more.repeat_offset,
            stride: more.stride,
            zones: more.zones,
        }
    }

    pub(crate) fn block_bytes_min(&self) -> u64 {
        self.block_bytes.iter().map(|sizes| sizes.min).min().unwrap_or(1)
    }

    pub(crate) fn block_bytes_max(&self) -> u64 {
        self.block_bytes.iter().map(|sizes| sizes.max).max().unwrap_or(1)
    }

    /// The length of a block in this much space: a multiple of the smallest block, or one from a list. It is drawn as
    /// in fio, so that the largest block is more frequent than the others.
    fn length(&self, direction: Direction, by_chance: bool, space: u64, random: &mut Random) -> Option<u64> {
        let at = if self.sizes_by_order { usize::from(by_chance) } else { direction.sizes() };
        let BlockSizes { min, max } = self.block_bytes[at];
        if space < min {
            return None;
        }
        if min == max {
            return Some(min);
        }
        if !self.split[at].is_empty() {
            return Some(listed(&self.split[at], space, random).unwrap_or(min));
        }
        let drawn = (min + random.below(max)) / min * min;
        Some(drawn.min(max).min(if space < max { space / min * min } else { max }))
    }
}

/// Draws a length from a list with percentages. If it does not fit, a later entry that fits replaces it. If none fits,
/// the draw is repeated.
fn listed(list: &[(u64, u64)], space: u64, random: &mut Random) -> Option<u64> {
    const DRAWS_MAX: usize = 1000;
    (0..DRAWS_MAX).find_map(|_| {
        let drawn = random.below(100);
        let mut sum = 0;
        list.iter().filter(|(_, percent)| *percent > 0).find_map(|(bytes, percent)| {
            sum += percent;
            (drawn < sum && *bytes <= space).then_some(*bytes)
        })
    })
}

/// The search for the next random offset in a file.
#[derive(Clone, Debug)]
enum Order {
    /// No offset is random.
    Sequential,
    /// Each block once, in units of this many bytes.
    Once(Blocks, u64),
    /// Any block at any time.
    Any,
    /// Any block at any time, skewed by rank; the number gives each file other favourites.
    Skewed(Zipf, u64),
    /// The same, by an exponent.
    Pareto(f64, u64),
    /// Around the middle, with a deviation in percent.
    Normal(f64),
    /// By parts of the file: the upper bound among 100 draws, and the part's start and end.
    Parts(Vec<(u64, u64, u64)>),
}

/// The offsets of calls in one file.
#[derive(Clone, Debug)]
pub(crate) struct Offsets {
    bytes: u64,
    start: u64,
    order: Order,
    /// The next byte to read, to write, and to trim, in sequence.
    next: [u64; DIRECTIONS],
    /// The offset of the last call in each direction.
    last: [u64; DIRECTIONS],
    /// Calls until one is random again.
    until_random: u64,
    /// The current zone: its start, and the bytes done in it.
    zone: (u64, u64),
    /// Fill level of each zone that has to be written in sequence.
    full: Vec<u64>,
    open: Vec<usize>,
}

/// Parts of a file, with cumulative percentages of the draws.
fn parts(list: &[(u64, u64)], size: impl Fn(u64) -> u64, bytes: u64) -> Vec<(u64, u64, u64)> {
    let (mut sum, mut at) = (0, 0);
    let part = |(percent, amount): &(u64, u64)| {
        sum += percent;
        let from = at;
        at = (at + size(*amount)).min(bytes);
        (sum, from, at)
    };
    list.iter().map(part).collect()
}

impl Offsets {
    pub(crate) fn new(job: &Job, rules: &Rules, share: &FileShare, random: &mut Random) -> Self {
        let used = |used: bool, at: usize| if used { job.block_bytes[at].min } else { u64::MAX };
        let unit = used(job.pattern.reads, 0).min(used(job.pattern.writes || job.pattern.trims, 1));
        let bytes = share.job_bytes;
        let extent = match rules.zones {
            Some(Zones::Strided { range, .. }) => range.min(bytes),
            _ => bytes,
        };
        let blocks = extent / unit;
        let order = match &job.more {
            _ if !job.pattern.random => Order::Sequential,
            more => match &job.distribution {
                Distribution::Uniform if more.any_block || more.align != [0; 2] => Order::Any,
                Distribution::Uniform => Order::Once(Blocks::new(blocks), unit),
                Distribution::Zipf(theta) => Order::Skewed(Zipf::new(blocks.max(1), *theta), random.bits()),
                Distribution::Pareto(share) => Order::Pareto(*share, random.bits()),
                Distribution::Normal(deviation) => Order::Normal(*deviation),
                Distribution::Zoned(list) => {
                    Order::Parts(parts(list, |percent| (u128::from(bytes) * u128::from(percent) / 100) as u64, bytes))
                }
                Distribution::ZonedBytes(list) => Order::Parts(parts(list, |amount| amount, bytes)),
            },
        };
        let full = match rules.zones {
            Some(Zones::Sequential { bytes: zone, .. }) if job.pattern.writes => {
                vec![0; usize::try_from(bytes / zone.max(1)).unwrap_or(0)]
            }
            _ => Vec::new(),
        };
        let mut offsets = Self {
            bytes,
            start: share.start,
            order,
            next: [0; DIRECTIONS],
            last: [0; DIRECTIONS],
            until_random: rules.random_every,
            zone: (0, 0),
            full,
            open: Vec::new(),
        };
        offsets.rewind();
        offsets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Starts over.
    pub(crate) fn rewind(&mut self) {
        self.next = [0; DIRECTIONS];
        if let Order::Once(blocks, _) = &mut self.order {
            blocks.clear();
        }
        self.zone = (0, 0);
    }

    /// Offset and length of the next call in the file; `None` if it has no more.
    pub(crate) fn next(&mut self, rules: &Rules, direction: Direction, random: &mut Random) -> Option<(u64, u64)> {
        let index = direction as usize;
        let (base, extent) = self.in_zone(rules, direction);
        let by_chance = rules.random && self.draw_random(rules, direction.sizes(), random);
        let (mut offset, len) = match by_chance {
            true => self.random_offset(rules, direction, extent, random)?,
            false if rules.random && rules.random_every > 1 && rules.repeat_offset => {
                let offset = self.last[index];
                (offset, rules.length(direction, false, extent.saturating_sub(offset), random)?)
            }
            false => match self.sequential_offset(rules, direction, extent, random) {
                Some(found) => found,
                None if rules.random => self.random_offset(rules, direction, extent, random)?,
                None => return None,
            },
        };
        if let (Some(Zones::Sequential { bytes, open }), Direction::Write, false) =
            (rules.zones, direction, self.full.is_empty())
        {
            offset = self.at_write_pointer(offset, len, bytes, open, random);
        }
        self.next[index] = offset + len;
        self.last[index] = offset;
        self.zone.1 += len;
        Some((self.start + base + offset, len))
    }

    fn draw_random(&mut self, rules: &Rules, index: usize, random: &mut Random) -> bool {
        if rules.random_every > 1 {
            self.until_random -= 1;
            if self.until_random > 0 {
                return false;
            }
            self.until_random = rules.random_every;
        }
        rules.random_percent[index] >= 100 || random.below(100) < rules.random_percent[index]
    }

    /// The start of the current zone, and the length of the range that calls choose from.
    fn in_zone(&mut self, rules: &Rules, direction: Direction) -> (u64, u64) {
        let Some(Zones::Strided { range, bytes, skip }) = rules.zones else { return (0, self.bytes) };
        if self.zone.1 >= bytes {
            let begins = self.zone.0 + range + skip;
            self.zone = (if begins + range > self.bytes { 0 } else { begins }, 0);
            self.next = [0; DIRECTIONS];
        }
        if self.next[direction as usize] >= range {
            self.next[direction as usize] = 0;
        }
        if let (Order::Once(blocks, _), true) = (&mut self.order, self.zone.1.is_multiple_of(range)) {
            blocks.clear();
        }
        (self.zone.0, range.min(self.bytes - self.zone.0))
    }

    fn sequential_offset(
        &mut self,
        rules: &Rules,
        direction: Direction,
        extent: u64,
        random: &mut Random,
    ) -> Option<(u64, u64)> {
        let mut offset = self.next[direction as usize];
        if rules.stride != 0 && offset != 0 {
            offset = self.strided(rules.stride, offset, extent)?;
        }
        let len = rules.length(direction, false, extent.saturating_sub(offset), random)?;
        Some((offset, len))
    }

    /// The offset behind a stride; `None` where the file has no more. As fio does, it compares an offset in the job's
    /// part of the file with the end of the whole file, and starts over at the offset in the part at which the part
    /// begins in the file.
    fn strided(&self, stride: i64, next: u64, extent: u64) -> Option<u64> {
        let steps = stride.unsigned_abs();
        if stride < 0 {
            let back = next.checked_sub(steps).filter(|moved| *moved < extent);
            return Some(back.unwrap_or(extent.saturating_sub(steps)));
        }
        let moved = next.saturating_add(steps);
        let found = if moved < self.start.saturating_add(extent) { moved } else { self.start };
        (next < extent && found < extent).then_some(found)
    }

    fn random_offset(
        &mut self,
        rules: &Rules,
        direction: Direction,
        extent: u64,
        random: &mut Random,
    ) -> Option<(u64, u64)> {
        let index = direction.sizes();
        let sizes = rules.block_bytes[index];
        // If blocks do not begin at multiples of their own size, the last one may not fit.
        let align = rules.align[index].max(1);
        let slots = extent.saturating_sub(sizes.min.saturating_sub(align)) / align;
        let offset = match &mut self.order {
            Order::Once(blocks, unit) => {
                if blocks.is_full() && rules.time_based {
                    blocks.clear();
                }
                let slots = (extent / sizes.min).max(1);
                let from = random.below(slots) * sizes.min / *unit;
                let first = blocks.next_free(from)?;
                let len = rules.length(direction, true, u64::MAX, random)?;
                let taken = blocks.take(first, len.div_ceil(*unit));
                return Some((first * *unit, len.min(taken * *unit)));
            }
            Order::Skewed(zipf, salt) => {
                let rank = zipf.draw(random);
                scattered(rank, *salt).checked_rem(slots)? * align
            }
            Order::Pareto(share, salt) => {
                let rank = pareto(slots, *share, random);
                scattered(rank, *salt).checked_rem(slots)? * align
            }
            Order::Normal(deviation) => normal(slots, *deviation, random)? * align,
            Order::Parts(parts) => {
                let drawn = random.below(100);
                let (_, from, to) = *parts.iter().find(|part| drawn < part.0).or(parts.last())?;
                let (first, count) = (from / align, (to - from) / align);
                (first + random.below(count.max(1))).min(slots.checked_sub(1)?) * align
            }
            Order::Any | Order::Sequential if slots == 0 => return None,
            Order::Any | Order::Sequential => random.below(slots) * align,
        };
        rules.length(direction, true, extent - offset, random).map(|len| (offset, len))
    }

    /// Moves a write to the write pointer of its zone; a full zone is restarted.
    fn at_write_pointer(&mut self, offset: u64, len: u64, zone: u64, open: u64, random: &mut Random) -> u64 {
        let mut at = ((offset / zone) as usize).min(self.full.len() - 1);
        if open > 0 && !self.open.contains(&at) {
            match (self.open.len() as u64) < open {
                true => self.open.push(at),
                false => at = self.open[random.below(open) as usize],
            }
        }
        if self.full[at] + len > zone {
            self.full[at] = 0;
        }
        let found = at as u64 * zone + self.full[at];
        self.full[at] += len;
        if self.full[at] + len > zone {
            self.open.retain(|open| *open != at);
        }
        found
    }
}

/// The block of a rank: anywhere in the file, but always the same.
fn scattered(rank: u64, salt: u64) -> u64 {
    let mut mixed = (rank ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

/// A block around the middle. Twelve uniform draws add up to an approximately normal one. A result outside of the file
/// is drawn again.
fn normal(slots: u64, deviation_percent: f64, random: &mut Random) -> Option<u64> {
    const DRAWS_MAX: usize = 100;
    if slots == 0 {
        return None;
    }
    let even = |random: &mut Random| (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    let drawn = (0..DRAWS_MAX).find_map(|_| {
        let sum: f64 = (0..12).map(|_| even(random)).sum();
        let at = slots as f64 * (0.5 + (sum - 6.0) * deviation_percent / 100.0);
        (at >= 0.0 && at < slots as f64).then_some(at as u64)
    });
    Some(drawn.unwrap_or(slots / 2))
}

#[cfg(test)]
mod tests;
