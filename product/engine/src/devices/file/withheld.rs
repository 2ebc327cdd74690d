//! Ranges of a file whose dirty pages stay off the device for now.
//!
//! Owns: the ranges, the bytes that each waits for, the tags of the pages in them, the count of these pages.
//! Does not own: when a range is let go (`writeback::ordering`), the lists of files.
//! Invariants: a dirty page in a range has the tag `Withheld`. It keeps `Dirty` only while a sync
//! that marked the page before has it written. Pages that are let go are listed as any dirty page.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::{FileInner, FileState};
use crate::cache::nodes::Tag;
use crate::wait::lock;

/// The most pages let go, or withheld, in one hold of the file's lock.
const PIECE_PAGES: u64 = 1024;

/// Names a withheld range of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RangeNumber(u64);

/// Bytes of a file that become durable before a withheld range is written.
#[derive(Clone)]
pub(crate) struct Earlier {
    /// The engine keeps a file until its bytes are durable, so they are if the file is gone.
    pub(crate) file: Weak<FileInner>,
    pub(crate) range: Range<u64>,
}

/// A range of any file that waits for bytes of this file.
struct Later {
    /// Later ones have higher numbers.
    place: u64,
    file: Weak<FileInner>,
    number: RangeNumber,
    /// The bytes that it waits for.
    range: Range<u64>,
}

struct Entry {
    number: RangeNumber,
    pages: Range<u64>,
    /// None: until its holder lets go.
    after: Option<Earlier>,
}

/// Why dirty bytes of a range are not written.
#[derive(Default)]
pub(crate) struct Obstacles {
    /// A holder withholds some of them.
    pub(crate) holder: bool,
    /// Other bytes have to be durable before some of them.
    pub(crate) earlier: Option<(RangeNumber, Earlier)>,
}

#[derive(Default)]
pub(crate) struct Withheld {
    next: u64,
    entries: Vec<Entry>,
    /// Dirty pages with the tag.
    pages: u64,
    /// Ranges that wait for this file's bytes.
    later: Vec<Later>,
    /// The place of the last of them.
    last_place: u64,
}

impl Withheld {
    /// Dirty pages that stay off the device.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether no page of the file needs a look here.
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.pages == 0
    }

    fn covers(&self, page: u64) -> bool {
        self.entries.iter().any(|entry| entry.pages.contains(&page))
    }

    /// The number of ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.entries.len()
    }

    /// Adds a range. A known range that waits for the same file waits for more of its bytes instead.
    fn add(&mut self, pages: Range<u64>, after: Option<Earlier>) -> RangeNumber {
        for entry in self.entries.iter_mut().filter(|entry| entry.pages == pages) {
            if let (Some(known), Some(more)) = (&mut entry.after, &after)
                && Weak::ptr_eq(&known.file, &more.file)
            {
                known.range = known.range.start.min(more.range.start)..known.range.end.max(more.range.end);
                return entry.number;
            }
        }
        let number = RangeNumber(self.next);
        self.next += 1;
        self.entries.push(Entry { number, pages, after });
        number
    }

    /// The bytes that ranges overlapping `pages` wait for.
    pub(crate) fn earlier(&self, pages: &Range<u64>) -> Vec<Earlier> {
        let overlapping = self.entries.iter().filter(|entry| overlap(&entry.pages, pages));
        overlapping.filter_map(|entry| entry.after.clone()).collect()
    }

    /// A range that waits for other bytes.
    pub(crate) fn first_order(&self) -> Option<(RangeNumber, Earlier)> {
        self.entries.iter().find_map(|entry| Some((entry.number, entry.after.clone()?)))
    }

    /// Whether a page of `pages` would be withheld.
    pub(crate) fn touches(&self, pages: &Range<u64>) -> bool {
        self.entries.iter().any(|entry| overlap(&entry.pages, pages))
    }

    /// A range waits for bytes of this file, or for more of them.
    pub(crate) fn add_later(&mut self, file: &Arc<FileInner>, number: RangeNumber, mut range: Range<u64>) {
        let is_same = |later: &Later| later.number == number && std::ptr::eq(later.file.as_ptr(), Arc::as_ptr(file));
        if let Some(at) = self.later.iter().position(is_same) {
            let known = self.later.swap_remove(at).range;
            range = range.start.min(known.start)..range.end.max(known.end);
        }
        self.last_place += 1;
        self.later.push(Later { place: self.last_place, file: Arc::downgrade(file), number, range });
    }

    /// The bytes that other ranges wait for: from the first of them to the last.
    pub(crate) fn awaited(&self) -> Range<u64> {
        let bounds = |bounds: Option<Range<u64>>, later: &Later| match bounds {
            None => Some(later.range.clone()),
            Some(bounds) => Some(bounds.start.min(later.range.start)..bounds.end.max(later.range.end)),
        };
        self.later.iter().fold(None, bounds).unwrap_or(0..0)
    }

    /// The place of the last range that waits for bytes of this file; none if no range waits.
    pub(crate) fn last_later(&self) -> Option<u64> {
        (!self.later.is_empty()).then_some(self.last_place)
    }

    /// Takes out the ranges with places up to `last` that wait for bytes within `range`.
    pub(crate) fn take_later(&mut self, last: u64, range: &Range<u64>) -> Vec<(Weak<FileInner>, RangeNumber)> {
        let within =
            |later: &mut Later| later.place <= last && range.start <= later.range.start && later.range.end <= range.end;
        self.later.extract_if(.., within).map(|later| (later.file, later.number)).collect()
    }
}

pub(crate) fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Obstacles {
    /// Whether all dirty bytes of the range may be written.
    pub(crate) fn are_none(&self) -> bool {
        !self.holder && self.earlier.is_none()
    }
}

impl FileInner {
    /// Changes the tag of a page in a withheld range, or of one that was in such a range. Returns false for any other
    /// page, which has the tag `Dirty` instead.
    pub(super) fn tag_withheld(&self, state: &mut FileState, page: u64, on: bool) -> bool {
        if state.withheld.is_empty() {
            return false;
        }
        let (nodes, index) = (&self.cache.nodes, &self.pages.index);
        let has = index.has_tag(nodes, page, Tag::Withheld);
        if has != (on && state.withheld.covers(page)) {
            index.set_tag(nodes, page, Tag::Withheld, !has);
            state.withheld.pages = if has { state.withheld.pages - 1 } else { state.withheld.pages + 1 };
            self.note_failed(state);
        }
        on && state.withheld.covers(page)
    }

    /// Withholds a range of pages from here on. Pages that a running sync has marked are still written.
    pub(crate) fn withhold(self: &Arc<Self>, pages: Range<u64>, after: Option<Earlier>) -> RangeNumber {
        self.withholds.store(true, Ordering::Release);
        let number = lock(&self.state).withheld.add(pages.clone(), after);
        let (nodes, index) = (&self.cache.nodes, &self.pages.index);
        let mut next = Some(pages.start);
        while let Some(from) = next {
            let state = &mut *lock(&self.state);
            let dirty = |page| index.next_tagged(nodes, page, Tag::Dirty).filter(|page| *page < pages.end);
            next = self.cache.visit_piece(PIECE_PAGES, from, dirty, |page| {
                if !index.has_tag(nodes, page, Tag::ToWrite) {
                    self.tag_dirty(state, page, false);
                    self.tag_dirty(state, page, true);
                }
            });
        }
        number
    }

    /// Whether a range of the file was ever withheld. Takes no lock.
    pub(crate) fn withholds(&self) -> bool {
        self.withholds.load(Ordering::Acquire)
    }

    /// Whether a sync that began earlier still has pages of the range written.
    pub(crate) fn is_marked_within(&self, pages: &Range<u64>) -> bool {
        let _state = lock(&self.state);
        let marked = self.pages.index.next_tagged(&self.cache.nodes, pages.start, Tag::ToWrite);
        marked.is_some_and(|page| page < pages.end)
    }

    /// Lets go of a range: its dirty pages may be written, unless another range covers them.
    pub(crate) fn let_go(self: &Arc<Self>, number: RangeNumber) {
        let entry = {
            let entries = &mut lock(&self.state).withheld.entries;
            let at = entries.iter().position(|entry| entry.number == number);
            at.map(|at| entries.swap_remove(at))
        };
        let Some(Entry { pages, .. }) = entry else { return };
        let (nodes, index) = (&self.cache.nodes, &self.pages.index);
        let mut next = Some(pages.start);
        while let Some(from) = next {
            let state = &mut *lock(&self.state);
            let withheld = |page| index.next_tagged(nodes, page, Tag::Withheld).filter(|page| *page < pages.end);
            next = self.cache.visit_piece(PIECE_PAGES, from, withheld, |page| {
                self.tag_dirty(state, page, true);
            });
            // A pause after a failure that has ended since is found at the next look.
            let now = state.marks.dirtied_at();
            self.requeue(state, now);
        }
        self.queue.wake_all();
    }

    /// Why dirty bytes of the range are not written.
    pub(crate) fn obstacles(&self, range: &Range<u64>) -> Obstacles {
        let (state, pages) = (lock(&self.state), Self::pages_of(range));
        let (nodes, index) = (&self.cache.nodes, &self.pages.index);
        let mut obstacles = Obstacles::default();
        for entry in &state.withheld.entries {
            let (from, end) = (entry.pages.start.max(pages.start), entry.pages.end.min(pages.end));
            if index.next_tagged(nodes, from, Tag::Withheld).is_some_and(|page| page < end) {
                match &entry.after {
                    None => obstacles.holder = true,
                    Some(earlier) => obstacles.earlier = Some((entry.number, earlier.clone())),
                }
            }
        }
        obstacles
    }
}
