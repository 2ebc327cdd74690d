//! Stamps: 16 bytes with the file, page and version of a page, and a model of the versions that may show.
//!
//! Every write stamps the pages whose first bytes it covers with its version. A version may show unless it is
//! *superseded*: another write, which surely happened, began after its end and ended before the read began. Writes that
//! overlap in time may have happened in either order. A failed write, or one that lost its caller, happened in part, in
//! whole or not at all. After a power loss a page has the version of its last sync, or a later one. This is the rule of
//! [`FileModel`](crate::FileModel) for whole pages. It costs tens of nanoseconds a page, so that it can always be on.
//!
//! Owns: the history of one file's pages, as far as a later check may need it.
//! Does not own: the engine or a disk; callers pass in their answers.
//! Invariants: a check never rejects a legal answer of the engine. Memory beside the runs of pages is bounded by the
//! calls in progress and by failed writes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use crate::change::{Ending, Mismatch};
use crate::runs::{Cell, Runs};

const PAGE_BYTES: u64 = 4096;
/// Bytes of a stamp.
const STAMP_BYTES: u64 = afflux_frames::STAMP_BYTES as u64;

/// Most ranges written and not synced before they are joined.
const UNSYNCED_MAX: usize = 4096;

/// The first 16 bytes of a page. All zeros is a page that was never written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageStamp {
    /// The number of the file, as given to its model.
    pub file: u32,
    /// The number of the write, from 1.
    pub version: u32,
    /// The index of the page in the file.
    pub page: u64,
}

impl PageStamp {
    /// The bytes of the fields, in their order and little-endian.
    pub fn to_bytes(self) -> [u8; STAMP_BYTES as usize] {
        let word = u128::from(self.file) | u128::from(self.version) << 32 | u128::from(self.page) << 64;
        word.to_le_bytes()
    }

    /// Reads a stamp; `None` for zeros.
    pub fn from_bytes(bytes: [u8; STAMP_BYTES as usize]) -> Option<Self> {
        let word = u128::from_le_bytes(bytes);
        let stamp = Self { file: word as u32, version: (word >> 32) as u32, page: (word >> 64) as u64 };
        (word != 0).then_some(stamp)
    }
}

/// A write that has begun.
#[derive(Clone, Debug)]
pub struct StampWrite {
    file: u32,
    version: u32,
    began: u64,
    offset: u64,
    len: u64,
}

/// The pages whose stamps lie inside a range.
fn stamped(offset: u64, len: u64) -> Range<u64> {
    let first = offset.div_ceil(PAGE_BYTES);
    let end = offset.saturating_add(len);
    first..(end.saturating_add(PAGE_BYTES - STAMP_BYTES) / PAGE_BYTES).max(first)
}

/// The pages whose stamps lie partly inside a range.
fn parted(start: u64, end: u64) -> impl Iterator<Item = u64> {
    let cut = |at: u64| (1..STAMP_BYTES).contains(&(at % PAGE_BYTES)).then_some(at / PAGE_BYTES);
    [cut(start), cut(end)].into_iter().flatten()
}

impl StampWrite {
    /// Writes the stamps into bytes of the write, of which the first is byte `at` of the write.
    pub fn stamp(&self, at: u64, bytes: &mut [u8]) {
        let from = self.offset + at;
        for page in stamped(from, bytes.len() as u64) {
            let stamp = PageStamp { file: self.file, version: self.version, page };
            let start = (page * PAGE_BYTES - from) as usize;
            bytes[start..start + STAMP_BYTES as usize].copy_from_slice(&stamp.to_bytes());
        }
    }

    /// The first byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the write has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A read or a sync that has begun. Return it to the model in any case.
#[derive(Debug)]
pub struct StampLook {
    began: u64,
    size: u64,
    sync: bool,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    version: u32,
    /// `None` while the write may still happen.
    ended: Option<u64>,
}

/// The version of pages until a moment.
#[derive(Clone, Debug)]
struct Superseded {
    until: u64,
    pages: Range<u64>,
    version: u32,
}

/// The history of one file's pages.
#[derive(Clone, Debug)]
pub struct StampModel {
    file: u32,
    clock: u64,
    versions: u32,
    runs: Runs,
    /// Writes in progress, in the order of their begins, which is that of their versions.
    writing: Vec<StampWrite>,
    /// Writes that ended since the oldest of `writing` began: version and moment.
    ended: VecDeque<(u32, u64)>,
    /// Possible versions of pages beside the one in their run.
    contested: BTreeMap<u64, Vec<Candidate>>,
    /// The begins of reads and syncs in progress, and their number at each moment.
    looking: BTreeMap<u64, u32>,
    /// The number of syncs in progress, and the begin of the last one.
    syncing: (u32, u64),
    /// Versions replaced since the oldest of `looking` began, in the order of their replacement.
    superseded: VecDeque<Superseded>,
    /// Ranges written and not synced since, with the moments at which the writes ended, in that order.
    unsynced: VecDeque<(u64, Range<u64>)>,
    /// Most entries of `unsynced` before they are joined.
    unsynced_max: usize,
    /// Pages whose stamp was written in part.
    unknown: BTreeSet<u64>,
    /// The smallest and the largest possible size, and the moment of the last cut.
    sizes: (u64, u64, u64),
}

impl StampModel {
    /// A file of `size` bytes that are zero and durable. `file` must be a number of its own.
    pub fn new(file: u32, size: u64) -> Self {
        Self {
            file,
            clock: 0,
            versions: 0,
            runs: Runs::default(),
            writing: Vec::new(),
            ended: VecDeque::new(),
            contested: BTreeMap::new(),
            looking: BTreeMap::new(),
            syncing: (0, 0),
            superseded: VecDeque::new(),
            unsynced: VecDeque::new(),
            unsynced_max: UNSYNCED_MAX,
            unknown: BTreeSet::new(),
            sizes: (size, size, 0),
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Begins a write. The caller has to [stamp](StampWrite::stamp) its bytes.
    ///
    /// # Panics
    /// After four billion writes of the file.
    pub fn begin_write(&mut self, offset: u64, len: u64) -> StampWrite {
        assert!(self.versions < u32::MAX, "versions are 32 bits");
        self.versions += 1;
        let began = self.tick();
        let write = StampWrite { file: self.file, version: self.versions, began, offset, len };
        self.unknown.extend(parted(offset, offset + len));
        self.sizes.1 = self.sizes.1.max(offset + len);
        self.writing.push(write.clone());
        write
    }

    /// Ends a write.
    pub fn end_write(&mut self, write: StampWrite, ending: Ending) {
        let now = self.tick();
        if let Ok(at) = self.writing.binary_search_by_key(&write.version, |other| other.version) {
            self.writing.remove(at);
        }
        let pages = stamped(write.offset, write.len);
        match ending {
            Ending::Done => {
                self.sizes.0 = self.sizes.0.max(write.offset + write.len);
                self.happened(&write, pages, now);
            }
            Ending::Failed | Ending::Abandoned => {
                let ended = (ending == Ending::Failed).then_some(now);
                for page in pages {
                    self.contested.entry(page).or_default().push(Candidate { version: write.version, ended });
                }
            }
        }
        self.ended.push_back((write.version, now));
        let oldest = self.writing.first().map_or(u64::MAX, |write| write.began);
        while self.ended.front().is_some_and(|(_, ended)| *ended < oldest) {
            self.ended.pop_front();
        }
    }

    fn happened(&mut self, write: &StampWrite, pages: Range<u64>, now: u64) {
        if pages.is_empty() {
            return;
        }
        let looked_at = !self.looking.is_empty();
        if looked_at || !self.contested.is_empty() {
            self.drop_candidates(write, &pages, now);
        }
        let Self { runs, ended, contested, superseded, .. } = self;
        // No write has version 0.
        let beside = |version| {
            let mut since = ended.iter().rev().take_while(|(_, at)| version > 0 && *at > write.began);
            since.find(|(own, _)| *own == version)
        };
        runs.update(pages.clone(), |cell, pages| {
            if let Some((version, at)) = beside(cell.last) {
                let candidate = Candidate { version: *version, ended: Some(*at) };
                pages.for_each(|page| contested.entry(page).or_default().push(candidate));
            } else if looked_at {
                superseded.push_back(Superseded { until: now, pages, version: cell.last });
            }
            Cell { last: write.version, ..cell }
        });
        match self.unsynced.back_mut() {
            // If a sync began in between, it covers only one of the two.
            Some((at, last)) if last.end == pages.start && *at > self.syncing.1 => (*at, last.end) = (now, pages.end),
            _ => self.unsynced.push_back((now, pages)),
        }
        if self.unsynced.len() >= self.unsynced_max && self.syncing.0 == 0 {
            self.join_unsynced(now);
        }
    }

    /// Joins ranges: without syncs, a page may be written many times, and one entry is enough.
    fn join_unsynced(&mut self, now: u64) {
        let mut ranges: Vec<Range<u64>> = self.unsynced.drain(..).map(|(_, pages)| pages).collect();
        ranges.sort_unstable_by_key(|pages| pages.start);
        for pages in ranges {
            match self.unsynced.back_mut() {
                Some((_, last)) if pages.start <= last.end => last.end = last.end.max(pages.end),
                _ => self.unsynced.push_back((now, pages)),
            }
        }
        self.unsynced_max = (2 * self.unsynced.len()).max(UNSYNCED_MAX);
    }

    /// Drops the candidates of writes that ended before this one began.
    fn drop_candidates(&mut self, write: &StampWrite, pages: &Range<u64>, now: u64) {
        let touched: Vec<u64> = self.contested.range(pages.clone()).map(|(page, _)| *page).collect();
        for page in touched {
            let Some(candidates) = self.contested.get_mut(&page) else { continue };
            candidates.retain(|candidate| {
                let stays = candidate.ended.is_none_or(|ended| ended > write.began);
                if !stays && !self.looking.is_empty() {
                    let version = candidate.version;
                    self.superseded.push_back(Superseded { until: now, pages: page..page + 1, version });
                }
                stays
            });
            if candidates.is_empty() {
                self.contested.remove(&page);
            }
        }
    }

    /// Zeroes a range, by a punch or by a cut (`len` is [`u64::MAX`], the new size is `offset`). No write of the range
    /// may be in progress.
    pub fn zeroed(&mut self, offset: u64, len: u64) {
        let now = self.tick();
        let pages = offset.div_ceil(PAGE_BYTES)..offset.saturating_add(len).div_ceil(PAGE_BYTES);
        let looked_at = !self.looking.is_empty();
        let superseded = &mut self.superseded;
        let to = |cell: Cell, pages| {
            if looked_at {
                superseded.push_back(Superseded { until: now, pages, version: cell.last });
            }
            Cell::default()
        };
        if len == u64::MAX {
            self.runs.update_from(pages.start, to);
            self.sizes = (offset, offset, now);
        } else {
            self.runs.update(pages.clone(), to);
        }
        self.contested.retain(|page, _| !pages.contains(page));
        self.unknown.retain(|page| !pages.contains(page));
        self.unknown.extend(parted(offset, if len == u64::MAX { 0 } else { offset + len }));
    }

    /// Begins a read.
    pub fn begin_read(&mut self) -> StampLook {
        let began = self.tick();
        *self.looking.entry(began).or_default() += 1;
        StampLook { began, size: self.sizes.0, sync: false }
    }

    /// Begins a sync.
    pub fn begin_sync(&mut self) -> StampLook {
        let look = self.begin_read();
        self.syncing = (self.syncing.0 + 1, look.began);
        StampLook { sync: true, ..look }
    }

    /// Ends a read or a sync without a result.
    pub fn end_look(&mut self, look: StampLook) {
        self.syncing.0 -= u32::from(look.sync);
        if let Some(count) = self.looking.get_mut(&look.began) {
            *count -= 1;
            if *count == 0 {
                self.looking.remove(&look.began);
            }
        }
        let oldest = self.looking.first_key_value().map_or(u64::MAX, |(began, _)| *began);
        while self.superseded.front().is_some_and(|entry| entry.until < oldest) {
            self.superseded.pop_front();
        }
    }

    /// Ends a read of `len` bytes, and checks its result.
    pub fn end_read(&mut self, look: StampLook, offset: u64, len: u64, got: &[u8]) -> Result<(), Mismatch> {
        let result = self.check_read(&look, offset, len, got);
        self.end_look(look);
        result
    }

    fn check_read(&self, look: &StampLook, offset: u64, len: u64, got: &[u8]) -> Result<(), Mismatch> {
        let within = |size: u64| len.min(size.saturating_sub(offset));
        let count = got.len() as u64;
        let was_cut = self.sizes.2 > look.began;
        if !was_cut && !(within(look.size)..=within(self.sizes.1)).contains(&count) {
            let (least, most) = (look.size, self.sizes.1);
            return Err(self.wrong(format!(
                "a read of {len} at {offset} returned {count} bytes; the size is between {least} and {most}"
            )));
        }
        self.each_stamp(offset, got, |page, version, cell| {
            version == cell.last || self.may_show(page, version, look.began)
        })
    }

    /// Whether a page may show another version than the last one written.
    fn may_show(&self, page: u64, version: u32, since: u64) -> bool {
        let contested = || self.contested.get(&page).is_some_and(|all| all.iter().any(|one| one.version == version));
        let writing = || {
            let covers = |write: &&StampWrite| stamped(write.offset, write.len).contains(&page);
            self.writing.iter().filter(covers).any(|write| write.version == version)
        };
        let earlier = || {
            let since = self.superseded.iter().rev().take_while(|entry| entry.until > since);
            since.into_iter().any(|entry| entry.version == version && entry.pages.contains(&page))
        };
        self.unknown.contains(&page) || contested() || writing() || earlier()
    }

    /// Ends a successful sync of a range that began with `look`.
    pub fn end_sync(&mut self, look: StampLook, offset: u64, len: u64) {
        let range = stamped(offset, len);
        let count = self.unsynced.partition_point(|(at, _)| *at < look.began);
        let mut left = Vec::new();
        let covered: Vec<(u64, Range<u64>)> = self.unsynced.drain(..count).collect();
        for (at, pages) in covered {
            let inside = pages.start.max(range.start)..pages.end.min(range.end);
            if inside.is_empty() {
                left.push((at, pages));
                continue;
            }
            left.extend([pages.start..inside.start, inside.end..pages.end].map(|rest| (at, rest)));
            self.runs.update(inside, |cell, _| Cell { synced: cell.synced.max(cell.last), ..cell });
        }
        for entry in left.into_iter().rev().filter(|(_, pages)| !pages.is_empty()) {
            self.unsynced.push_front(entry);
        }
        self.lower_floors(&look, range);
        self.end_look(look);
    }

    /// Lowers the durable version of pages that were written during the sync, or may have several versions: to the
    /// version at the begin of the sync. A write in progress may be older than the page's version, and still come
    /// later.
    fn lower_floors(&mut self, look: &StampLook, range: Range<u64>) {
        let Self { runs, superseded, contested, writing, .. } = self;
        let mut lower = |pages: Range<u64>, version: u32| {
            let pages = pages.start.max(range.start)..pages.end.min(range.end);
            runs.update(pages, |cell, _| Cell { synced: cell.synced.min(version), ..cell });
        };
        for write in writing.iter() {
            lower(stamped(write.offset, write.len), write.version);
        }
        for (page, candidates) in contested.range(range.clone()) {
            for candidate in candidates {
                lower(*page..page + 1, candidate.version);
            }
        }
        for entry in superseded.iter().rev().take_while(|entry| entry.until > look.began) {
            lower(entry.pages.clone(), entry.version);
        }
    }

    /// Checks the bytes of a disk after a power loss.
    pub fn check_crashed(&self, offset: u64, got: &[u8]) -> Result<(), Mismatch> {
        self.each_stamp(offset, got, |page, version, cell| {
            (cell.synced..=self.versions).contains(&version) || self.unknown.contains(&page)
        })
    }

    /// The number of pages in a disk's bytes that lack their last write, among those whose last write surely happened.
    pub fn pages_lost(&self, offset: u64, got: &[u8]) -> u64 {
        let mut lost = 0;
        let look = |pages: Range<u64>, cell: Cell| {
            for page in pages.filter(|page| cell.last > 0 && !self.unknown.contains(page)) {
                let start = (page * PAGE_BYTES - offset) as usize;
                let stamp = PageStamp::from_bytes(got[start..].first_chunk().copied().unwrap_or_default());
                // A later version belongs to a write whose reply never came.
                lost += u64::from(stamp.is_none_or(|stamp| stamp.version < cell.last));
            }
            Ok::<(), ()>(())
        };
        // `look` never returns an error.
        let _ = self.runs.look(stamped(offset, got.len() as u64), look);
        lost
    }

    /// The smallest possible size of the file.
    pub fn size(&self) -> u64 {
        self.sizes.0
    }

    /// Checks the size of a disk's file after a power loss, if `synced` bytes had been synced before it.
    pub fn check_crashed_size(&self, synced: u64, size: u64) -> Result<(), Mismatch> {
        if (synced.min(self.sizes.0)..=self.sizes.1).contains(&size) {
            return Ok(());
        }
        Err(self.wrong(format!("the size is {size}; it may be {synced} to {}", self.sizes.1)))
    }

    /// The number of runs of pages with the same history, as a measure of memory.
    pub fn runs(&self) -> usize {
        self.runs.count()
    }

    fn wrong(&self, what: String) -> Mismatch {
        Mismatch { what: format!("file {}: {what}", self.file) }
    }

    fn each_stamp(&self, offset: u64, got: &[u8], right: impl Fn(u64, u32, Cell) -> bool) -> Result<(), Mismatch> {
        self.runs.look(stamped(offset, got.len() as u64), |pages, cell| {
            for page in pages {
                let start = (page * PAGE_BYTES - offset) as usize;
                let bytes = got[start..].first_chunk().copied().unwrap_or_default();
                let stamp = PageStamp::from_bytes(bytes);
                let own = stamp.is_none_or(|stamp| stamp.file == self.file && stamp.page == page && stamp.version > 0);
                let version = stamp.map_or(0, |stamp| stamp.version);
                if !(own && right(page, version, cell) || self.unknown.contains(&page)) {
                    return Err(self.mismatch(page, bytes, cell));
                }
            }
            Ok(())
        })
    }

    fn mismatch(&self, page: u64, bytes: [u8; STAMP_BYTES as usize], cell: Cell) -> Mismatch {
        let holds = match PageStamp::from_bytes(bytes) {
            None => "zeros".to_owned(),
            Some(_) if bytes.iter().all(|byte| *byte == 0xdb) => "memory that was never read into".to_owned(),
            Some(PageStamp { file, version, page }) => format!("version {version} of page {page} of file {file}"),
        };
        let Cell { last, synced } = cell;
        let also = self.contested.get(&page).into_iter().flatten().map(|one| one.version).collect::<Vec<_>>();
        self.wrong(format!("page {page} holds {holds}; written last was {last} (or one of {also:?}), synced {synced}"))
    }
}

#[cfg(test)]
mod tests;
