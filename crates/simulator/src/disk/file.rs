//! One file on a simulated disk: what a read gives, what survives a power loss, and what is between.
//!
//! Owns: the live image, the durable image, the log of completed changes that are not durable yet.
//! Does not own: when a change happens and whether it fails (`mod`, `fault`).
//! Invariants: the durable image with the whole log applied, in order, is the live image.

use crate::random::Random;

use super::image::Image;

#[derive(Clone)]
pub(crate) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetSize { size: u64 },
    Punch { offset: u64, len: u64 },
    Reserve { offset: u64, len: u64 },
}

impl Change {
    fn apply(&self, image: &mut Image) {
        match self {
            Self::Write { offset, bytes } => image.write(*offset, bytes),
            Self::SetSize { size } => image.set_size(*size),
            Self::Punch { offset, len } => image.punch(*offset, *len),
            Self::Reserve { offset, len } => image.reserve(*offset, *len),
        }
    }
}

#[derive(Default)]
pub(crate) struct DiskFile {
    pub(crate) live: Image,
    pub(crate) durable: Image,
    log: Vec<Change>,
    /// Changes that have left the log, so that a place in the log has a lasting number.
    log_start: u64,
    /// Requests of this file that did not succeed.
    pub(crate) failures: u64,
}

impl DiskFile {
    /// A change happens. On a disk without a volatile cache what is written is durable at once.
    pub(crate) fn change(&mut self, change: Change, volatile_cache: bool) {
        change.apply(&mut self.live);
        self.log.push(change);
        if !volatile_cache {
            self.make_durable(self.log_end());
        }
    }

    /// The number of the next change: a sync that is asked for now covers all before it.
    pub(crate) fn log_end(&self) -> u64 {
        self.log_start + self.log.len() as u64
    }

    /// Makes all changes before number `end` durable.
    pub(crate) fn make_durable(&mut self, end: u64) {
        let count = end.saturating_sub(self.log_start).min(self.log.len() as u64);
        for change in self.log.drain(..count as usize) {
            change.apply(&mut self.durable);
        }
        self.log_start += count;
    }

    /// Of the data written and not yet durable, some sectors are as they were before. Sizes and layout
    /// stay.
    pub(crate) fn lose_writes(&mut self, sector_bytes: usize, random: &mut Random) {
        let mut live = self.durable.clone();
        for change in std::mem::take(&mut self.log) {
            let Change::Write { offset, bytes } = change else {
                change.apply(&mut live);
                self.log.push(change);
                continue;
            };
            let size = live.size().max(offset + bytes.len() as u64);
            for (index, sector) in bytes.chunks(sector_bytes).enumerate() {
                if random.chance(500) {
                    let offset = offset + (index * sector_bytes) as u64;
                    live.write(offset, sector);
                    self.log.push(Change::Write { offset, bytes: sector.to_vec() });
                }
            }
            live.set_size(size);
            self.log.push(Change::SetSize { size });
        }
        self.live = live;
    }

    /// Power is lost: of the log, the first changes of size and layout survive up to a point drawn,
    /// and of each write any sectors.
    pub(crate) fn lose_power(&mut self, sector_bytes: usize, random: &mut Random) {
        let layout_until = random.below(self.log.len() as u64 + 1) as usize;
        for (at, change) in std::mem::take(&mut self.log).into_iter().enumerate() {
            let kept = at < layout_until;
            let Change::Write { offset, bytes } = change else {
                if kept {
                    change.apply(&mut self.durable);
                }
                continue;
            };
            let size_max = if kept { u64::MAX } else { self.durable.size() };
            for (index, sector) in bytes.chunks(sector_bytes).enumerate() {
                let start = offset + (index * sector_bytes) as u64;
                let len = sector.len().min(size_max.saturating_sub(start) as usize);
                if random.chance(500) {
                    self.durable.write(start, &sector[..len]);
                }
            }
            if kept {
                let size = self.durable.size().max(offset + bytes.len() as u64);
                self.durable.set_size(size);
            }
        }
        self.live = self.durable.clone();
        self.log_start = 0;
    }
}
