//! One file on a simulated disk: its live bytes, its durable bytes, and the changes between the two.
//!
//! Owns: the live image, the durable image, the log of completed changes that are not durable yet.
//! Does not own: the time and the failure of a change (`mod`, `fault`).
//! Invariants: the durable image with the whole log applied, in order, is the live image.

use std::collections::{BTreeSet, VecDeque};

use crate::random::Random;

use super::image::{IMAGE_BLOCK_BYTES, Image, WHOLE_PAGES, backed_before, backed_len, backed_of, pieces};

#[derive(Clone)]
pub(crate) enum Change {
    /// Carries the backed bytes of the write.
    Write {
        offset: u64,
        len: u64,
        backed: Vec<u8>,
    },
    SetSize {
        size: u64,
    },
    Punch {
        offset: u64,
        len: u64,
    },
    Reserve {
        offset: u64,
        len: u64,
    },
}

impl Change {
    fn apply(&self, image: &mut Image) {
        match self {
            Self::Write { offset, len, backed } => image.write_backed(*offset, *len, backed),
            Self::SetSize { size } => image.set_size(*size),
            Self::Punch { offset, len } => image.punch(*offset, *len),
            Self::Reserve { offset, len } => image.reserve(*offset, *len),
        }
    }

    fn written_bytes(&self) -> u64 {
        if let Self::Write { len, .. } = self { *len } else { 0 }
    }

    /// The range that a write fills or a reservation takes; `None` for changes that remove something.
    fn adds_to(&self) -> Option<(u64, u64)> {
        match self {
            Self::Write { offset, len, .. } | Self::Reserve { offset, len } => Some((*offset, *len)),
            Self::SetSize { .. } | Self::Punch { .. } => None,
        }
    }
}

/// The pieces of a write that tear apart: sectors, or pages on a disk that stores stamps only. Each has an offset, a
/// length and its backed bytes.
pub(crate) fn torn(
    offset: u64,
    len: u64,
    backed: &[u8],
    backed_bytes: u64,
    sector_bytes: u64,
) -> impl Iterator<Item = (u64, u64, &[u8])> {
    let unit = if backed_bytes == WHOLE_PAGES { sector_bytes } else { IMAGE_BLOCK_BYTES };
    pieces(offset, len, unit).map(move |(start, len)| {
        let from = (backed_before(start, backed_bytes) - backed_before(offset, backed_bytes)) as usize;
        (start, len, &backed[from..from + backed_len(start, len, backed_bytes)])
    })
}

/// The log is searched for chunks shared with newly durable changes only if at least one change in this many becomes
/// durable. So a cache that gives up its oldest write each time does not search the whole log.
const LOOKED_THROUGH_FOR: u64 = 8;

#[derive(Clone)]
pub(crate) struct DiskFile {
    pub(crate) live: Image,
    pub(crate) durable: Image,
    log: VecDeque<Change>,
    /// Bytes of the writes in the log; a rewritten byte counts twice.
    volatile_bytes: u64,
    /// Changes that have left the log. With this offset each change has a lasting number.
    log_start: u64,
    /// How often the bytes or the size were changed.
    pub(crate) changes: u64,
    /// Failed requests of this file.
    pub(crate) failures: u64,
    pub(crate) sync_failures: u64,
    /// How many sectors' writes were lost while the disk had power.
    pub(crate) sectors_lost: u64,
}

impl DiskFile {
    /// An empty file that stores this many bytes of each page.
    pub(crate) fn new(backed_bytes: u64) -> Self {
        let (live, durable) = (Image::new(backed_bytes), Image::new(backed_bytes));
        Self {
            live,
            durable,
            log: VecDeque::new(),
            volatile_bytes: 0,
            log_start: 0,
            changes: 0,
            failures: 0,
            sync_failures: 0,
            sectors_lost: 0,
        }
    }

    /// Applies a change. Without a volatile cache it is durable at once.
    pub(crate) fn change(&mut self, change: Change, volatile_cache: bool) {
        change.apply(&mut self.live);
        self.changes += u64::from(!matches!(change, Change::Reserve { .. }));
        self.volatile_bytes += change.written_bytes();
        self.log.push_back(change);
        if !volatile_cache {
            self.make_durable(self.log_end());
        }
    }

    /// Grows the file to the whole pages of a size that is ahead of its written bytes.
    pub(crate) fn make_longer(&mut self, accepted: u64, volatile_cache: bool) {
        let size = accepted - accepted % IMAGE_BLOCK_BYTES;
        if size > self.live.size() {
            self.change(Change::SetSize { size }, volatile_cache);
        }
    }

    /// A program other than the engine changes the file; the change is durable at once.
    pub(crate) fn change_behind(&mut self, size: u64, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            let backed = backed_of(offset, bytes, self.live.backed_bytes());
            self.change(Change::Write { offset, len: bytes.len() as u64, backed }, true);
        }
        self.change(Change::SetSize { size }, true);
        self.make_durable(u64::MAX);
    }

    /// Written bytes that a power loss may take.
    pub(crate) fn volatile_bytes(&self) -> u64 {
        self.volatile_bytes
    }

    /// The number of the next change. A sync submitted now covers all changes before it.
    pub(crate) fn log_end(&self) -> u64 {
        self.log_start + self.log.len() as u64
    }

    /// Makes all changes before number `end` durable.
    pub(crate) fn make_durable(&mut self, end: u64) {
        let count = end.saturating_sub(self.log_start).min(self.log.len() as u64);
        let few = count < self.log.len() as u64 / LOOKED_THROUGH_FOR;
        let synced: Vec<Change> = self.log.drain(..count as usize).collect();
        self.log_start += count;
        self.volatile_bytes -= synced.iter().map(Change::written_bytes).sum::<u64>();
        if few || synced.iter().chain(&self.log).any(|change| change.adds_to().is_none()) {
            return synced.iter().for_each(|change| change.apply(&mut self.durable));
        }
        // A chunk without later changes already equals that of the live image: it is shared instead of copied.
        let chunks_of = |change: &Change, image: &Image| {
            change.adds_to().map_or(0..0, |(offset, len)| image.chunks_of(offset, len))
        };
        let later: BTreeSet<u64> = self.log.iter().flat_map(|change| chunks_of(change, &self.live)).collect();
        for change in &synced {
            let chunks = chunks_of(change, &self.live);
            if chunks.clone().any(|chunk| later.contains(&chunk)) {
                change.apply(&mut self.durable);
            }
            if let Change::Write { offset, len, .. } = change {
                self.durable.grow(offset + len);
            }
        }
        let shared: BTreeSet<u64> = synced.iter().flat_map(|change| chunks_of(change, &self.live)).collect();
        for chunk in shared.difference(&later) {
            self.durable.share_chunk(*chunk, &self.live);
        }
    }

    /// Some sectors that are written and not yet durable return to their old contents. Sizes and layout stay.
    pub(crate) fn lose_writes(&mut self, sector_bytes: u64, random: &mut Random) {
        let mut live = self.durable.clone();
        for change in std::mem::take(&mut self.log) {
            let Change::Write { offset, len, backed } = change else {
                change.apply(&mut live);
                self.log.push_back(change);
                continue;
            };
            let size = live.size().max(offset + len);
            for (offset, len, backed) in torn(offset, len, &backed, live.backed_bytes(), sector_bytes) {
                if random.chance(500) {
                    live.write_backed(offset, len, backed);
                    self.log.push_back(Change::Write { offset, len, backed: backed.to_vec() });
                } else {
                    self.sectors_lost += 1;
                }
            }
            live.set_size(size);
            self.log.push_back(Change::SetSize { size });
        }
        self.volatile_bytes = self.log.iter().map(Change::written_bytes).sum();
        self.live = live;
        self.changes += 1;
    }

    /// Power is lost. Changes of size and layout survive up to a random point of the log. Of each write any sectors
    /// survive.
    pub(crate) fn lose_power(&mut self, sector_bytes: u64, random: &mut Random) {
        let layout_until = random.below(self.log.len() as u64 + 1) as usize;
        for (at, change) in std::mem::take(&mut self.log).into_iter().enumerate() {
            let survives = at < layout_until;
            let Change::Write { offset, len, backed } = change else {
                if survives {
                    change.apply(&mut self.durable);
                }
                continue;
            };
            let size_max = if survives { u64::MAX } else { self.durable.size() };
            let backed_bytes = self.durable.backed_bytes();
            for (start, len, backed) in torn(offset, len, &backed, backed_bytes, sector_bytes) {
                let len = len.min(size_max.saturating_sub(start));
                if random.chance(500) {
                    self.durable.write_backed(start, len, &backed[..backed_len(start, len, backed_bytes)]);
                }
            }
            if survives {
                self.durable.grow(offset + len);
            }
        }
        self.live = self.durable.clone();
        self.volatile_bytes = 0;
        self.log_start = 0;
        self.changes += 1;
    }
}
