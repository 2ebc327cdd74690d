//! Ranges of a file whose dirty pages stay off the device for now.
//!
//! Owns: the ranges, the bytes that each waits for, the count of the pages in them.
//! Does not own: the pages' tags (`withholding`), when a range is let go (`writeback::ordering`).
//! Invariants: a range that waits for bytes of a file is among those that the file lets go later.

use std::ops::Range;
use std::sync::{Arc, Weak};

/// Names a withheld range of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RangeNumber(u64);

/// Bytes of a file that become durable before a withheld range is written.
pub(crate) struct Earlier<F> {
    /// The engine keeps a file until its bytes are durable, so they are if the file is gone.
    pub(crate) file: Weak<F>,
    pub(crate) range: Range<u64>,
}

impl<F> Clone for Earlier<F> {
    fn clone(&self) -> Self {
        Self { file: Weak::clone(&self.file), range: self.range.clone() }
    }
}

/// A range of any file that waits for bytes of this file.
struct Later<F> {
    /// Later ones have higher numbers.
    place: u64,
    file: Weak<F>,
    number: RangeNumber,
    /// The bytes that it waits for.
    range: Range<u64>,
}

struct Entry<F> {
    number: RangeNumber,
    pages: Range<u64>,
    /// None: until its holder lets go.
    after: Option<Earlier<F>>,
}

/// Why dirty bytes of a range are not written.
pub(crate) struct Obstacles<F> {
    /// A holder withholds some of them.
    pub(crate) holder: bool,
    /// Other bytes have to be durable before some of them.
    pub(crate) earlier: Option<(RangeNumber, Earlier<F>)>,
}

pub(crate) struct Withheld<F> {
    next: u64,
    entries: Vec<Entry<F>>,
    /// Dirty pages with the tag.
    pages: u64,
    /// Ranges that wait for this file's bytes.
    later: Vec<Later<F>>,
    /// The place of the last of them.
    last_place: u64,
}

impl<F> Default for Withheld<F> {
    fn default() -> Self {
        Self { next: 0, entries: Vec::new(), pages: 0, later: Vec::new(), last_place: 0 }
    }
}

impl<F> Withheld<F> {
    /// Dirty pages that stay off the device.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether no page of the file needs a look here.
    pub(in crate::devices) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.pages == 0
    }

    pub(in crate::devices) fn covers(&self, page: u64) -> bool {
        self.entries.iter().any(|entry| entry.pages.contains(&page))
    }

    /// A page got the tag, or lost it.
    pub(in crate::devices) fn note_tag(&mut self, on: bool) {
        self.pages = if on { self.pages + 1 } else { self.pages - 1 };
    }

    /// Takes a range out; returns its pages.
    pub(in crate::devices) fn remove(&mut self, number: RangeNumber) -> Option<Range<u64>> {
        let at = self.entries.iter().position(|entry| entry.number == number)?;
        Some(self.entries.swap_remove(at).pages)
    }

    /// Why dirty pages of a range are not written. `keeps` says whether some pages have the tag.
    pub(in crate::devices) fn obstacles(&self, pages: &Range<u64>, keeps: impl Fn(Range<u64>) -> bool) -> Obstacles<F> {
        let mut obstacles = Obstacles { holder: false, earlier: None };
        for entry in &self.entries {
            if keeps(entry.pages.start.max(pages.start)..entry.pages.end.min(pages.end)) {
                match &entry.after {
                    None => obstacles.holder = true,
                    Some(earlier) => obstacles.earlier = Some((entry.number, earlier.clone())),
                }
            }
        }
        obstacles
    }

    /// The number of ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.entries.len()
    }

    /// Adds a range. A known range that waits for the same file waits for more of its bytes instead.
    pub(in crate::devices) fn add(&mut self, pages: Range<u64>, after: Option<Earlier<F>>) -> RangeNumber {
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
    pub(crate) fn earlier(&self, pages: &Range<u64>) -> Vec<Earlier<F>> {
        let overlapping = self.entries.iter().filter(|entry| overlap(&entry.pages, pages));
        overlapping.filter_map(|entry| entry.after.clone()).collect()
    }

    /// A range that waits for other bytes.
    pub(crate) fn first_order(&self) -> Option<(RangeNumber, Earlier<F>)> {
        self.entries.iter().find_map(|entry| Some((entry.number, entry.after.clone()?)))
    }

    /// Whether a page of `pages` would be withheld.
    pub(crate) fn touches(&self, pages: &Range<u64>) -> bool {
        self.entries.iter().any(|entry| overlap(&entry.pages, pages))
    }

    /// A range waits for bytes of this file, or for more of them.
    pub(crate) fn add_later(&mut self, file: &Arc<F>, number: RangeNumber, mut range: Range<u64>) {
        let is_same = |later: &Later<F>| later.number == number && std::ptr::eq(later.file.as_ptr(), Arc::as_ptr(file));
        if let Some(at) = self.later.iter().position(is_same) {
            let known = self.later.swap_remove(at).range;
            range = range.start.min(known.start)..range.end.max(known.end);
        }
        self.last_place += 1;
        self.later.push(Later { place: self.last_place, file: Arc::downgrade(file), number, range });
    }

    /// The bytes that other ranges wait for: from the first of them to the last.
    pub(crate) fn awaited(&self) -> Range<u64> {
        let bounds = |bounds: Option<Range<u64>>, later: &Later<F>| match bounds {
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
    pub(crate) fn take_later(&mut self, last: u64, range: &Range<u64>) -> Vec<(Weak<F>, RangeNumber)> {
        let within = |later: &mut Later<F>| {
            later.place <= last && range.start <= later.range.start && later.range.end <= range.end
        };
        self.later.extract_if(.., within).map(|later| (later.file, later.number)).collect()
    }
}

pub(crate) fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}
