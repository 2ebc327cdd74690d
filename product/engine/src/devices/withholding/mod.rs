//! Ranges of a file whose dirty pages stay off the device for now.
//!
//! A range is withheld until its holder lets go, or ordered until other bytes are durable. A file without such ranges
//! costs one branch: `FileInner::tag_dirty` asks whether the page is in one.
//!
//! Owns: the ranges, the bytes that each waits for, the count of the pages in them; the ordered maps that tell how many
//! ranges cover a page, and which ranges overlap others.
//! Does not own: the pages' tags (`tags`), when a range is let go and the limit of withheld pages (`withholding` of the
//! engine).
//! Invariants: a range that waits for bytes of a file is among those that the file lets go later. A number is given
//! once: who lets go of a range that waits for more by now lets go of nothing
//! (`a_range_that_waits_for_more_has_another_number`). A question about one page takes time in the logarithm of the
//! number of ranges, whatever their order and nesting (`questions_about_ranges_have_the_answers_of_a_plain_list`). A
//! question about overlaps visits the ranges of each size class within twice that size.
//!
//! A general map of ranges (the crate `rangemap`) would save half of `Coverage`, but each change would allocate. It
//! holds no overlapping ranges, as `Spans` does.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Weak};

mod tags;

/// The number of ranges that cover each page.
#[derive(Default)]
struct Coverage {
    /// How many ranges cover the pages from this one to the next key. Neighbours differ.
    counts: BTreeMap<u64, u32>,
}

impl Coverage {
    fn count_at(&self, page: u64) -> u32 {
        self.counts.range(..=page).next_back().map_or(0, |(_, count)| *count)
    }

    fn has_page(&self, page: u64) -> bool {
        self.count_at(page) > 0
    }

    /// The first covered page from `page` on.
    fn next_covered(&self, page: u64) -> Option<u64> {
        if self.has_page(page) {
            return Some(page);
        }
        // Neighbours differ, so the next key's pages are covered.
        self.counts.range(page.saturating_add(1)..).next().map(|(start, _)| *start)
    }

    fn add(&mut self, pages: &Range<u64>) {
        self.change(pages, |count| count + 1);
    }

    fn remove(&mut self, pages: &Range<u64>) {
        self.change(pages, |count| count - 1);
    }

    fn change(&mut self, pages: &Range<u64>, change: impl Fn(u32) -> u32) {
        if pages.is_empty() {
            return;
        }
        for border in [pages.start, pages.end] {
            let count = self.count_at(border);
            self.counts.insert(border, count);
        }
        self.counts.range_mut(pages.clone()).for_each(|(_, count)| *count = change(*count));
        for border in [pages.start, pages.end] {
            let before = self.counts.range(..border).next_back().map_or(0, |(_, count)| *count);
            if self.counts[&border] == before {
                self.counts.remove(&border);
            }
        }
    }
}

/// Ranges with a number each, found by their pages.
#[derive(Default)]
struct Spans {
    /// The size class of a range, its start, its number; and its end.
    ends: BTreeMap<(u32, u64, u64), u64>,
}

/// Ranges of a class have this length at least, and less than twice as much.
fn class(pages: &Range<u64>) -> u32 {
    (pages.end - pages.start).max(1).ilog2()
}

impl Spans {
    fn add(&mut self, pages: &Range<u64>, number: u64) {
        self.ends.insert((class(pages), pages.start, number), pages.end);
    }

    fn remove(&mut self, pages: &Range<u64>, number: u64) {
        self.ends.remove(&(class(pages), pages.start, number));
    }

    /// The numbers of the ranges that overlap `pages`.
    fn overlapping(&self, pages: &Range<u64>) -> impl Iterator<Item = u64> {
        let pages = pages.clone();
        let mut classes = self.ends.keys().next().map(|key| key.0);
        let next_class = move || {
            let class = classes?;
            classes = self.ends.range((class + 1, 0, 0)..).next().map(|(key, _)| key.0);
            Some(class)
        };
        std::iter::from_fn(next_class).flat_map(move |class| {
            let from = pages.start.saturating_sub((1_u64 << class).saturating_mul(2));
            let near = self.ends.range((class, from, 0)..(class, pages.end.max(from), 0));
            let start = pages.start;
            near.filter(move |(_, end)| **end > start).map(|(key, _)| key.2)
        })
    }
}

/// Names a withheld range of its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RangeId(u64);

/// Bytes of a file that become durable before a withheld range is written.
pub(crate) struct Earlier<F> {
    /// The engine holds a file until its bytes are durable, so they are if the file is gone.
    pub file: Weak<F>,
    /// Byte range in the file that is withheld.
    pub range: Range<u64>,
}

impl<F> Clone for Earlier<F> {
    fn clone(&self) -> Self {
        Self { file: Weak::clone(&self.file), range: self.range.clone() }
    }
}

/// A range of any file that waits for bytes of this file.
struct Later<F> {
    file: Weak<F>,
    number: RangeId,
    /// The bytes that it waits for.
    range: Range<u64>,
}

/// A file in a map, while a reference holds its memory.
fn address<F>(file: &Weak<F>) -> usize {
    file.as_ptr().addr()
}

/// A range that waits for bytes of a file.
struct Order<F> {
    pages: Range<u64>,
    after: Earlier<F>,
}

impl<F> Order<F> {
    /// Orders with the same key become one.
    fn key(&self) -> (u64, u64, usize) {
        (self.pages.start, self.pages.end, address(&self.after.file))
    }
}

/// Why dirty bytes of a range are not written.
pub(crate) struct Obstacles<F> {
    /// A holder withholds some of them.
    pub holder: bool,
    /// Other bytes have to be durable before some of them.
    pub earlier: Option<(RangeId, Earlier<F>)>,
}

/// A new order, or a known one that waits for more.
pub(crate) struct Ordered {
    /// Its number: smaller for a range that was withheld earlier.
    pub number: RangeId,
    /// The number that the known one had.
    pub(crate) replaced: Option<RangeId>,
    /// The bytes that the range waits for.
    pub(crate) range: Range<u64>,
}

/// The withheld ranges of a file, and those of any file that wait for its bytes.
pub(crate) struct WithheldRanges<F> {
    next: u64,
    /// Ranges with a holder.
    holds: BTreeMap<RangeId, Range<u64>>,
    held: Coverage,
    /// Ranges that wait for bytes.
    orders: BTreeMap<RangeId, Order<F>>,
    known_orders: BTreeMap<(u64, u64, usize), RangeId>,
    ordered: Coverage,
    order_spans: Spans,
    /// Dirty pages with the tag.
    pages: u64,
    later: LaterRanges<F>,
}

impl<F> Default for WithheldRanges<F> {
    fn default() -> Self {
        Self {
            next: 0,
            holds: BTreeMap::new(),
            held: Coverage::default(),
            orders: BTreeMap::new(),
            known_orders: BTreeMap::new(),
            ordered: Coverage::default(),
            order_spans: Spans::default(),
            pages: 0,
            later: LaterRanges::default(),
        }
    }
}

impl<F> WithheldRanges<F> {
    /// Dirty pages that stay off the device.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether no page of the file has to be looked up here.
    pub(in crate::devices) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.orders.is_empty() && self.pages == 0
    }

    pub(in crate::devices) fn has_page(&self, page: u64) -> bool {
        self.held.has_page(page) || self.ordered.has_page(page)
    }

    /// A page got the tag, or lost it.
    pub(in crate::devices) fn note_tag(&mut self, on: bool) {
        self.pages = if on { self.pages + 1 } else { self.pages - 1 };
    }

    fn next_id(&mut self) -> RangeId {
        self.next += 1;
        RangeId(self.next)
    }

    /// Adds a range for a holder.
    pub(in crate::devices) fn hold(&mut self, pages: &Range<u64>) -> RangeId {
        let number = self.next_id();
        self.held.add(pages);
        self.holds.insert(number, pages.clone());
        number
    }

    /// Adds a range that waits for bytes. A known one that waits for the same file waits for more of its bytes instead.
    pub(in crate::devices) fn order(&mut self, pages: &Range<u64>, after: Earlier<F>) -> Ordered {
        let mut order = Order { pages: pages.clone(), after };
        let replaced = self.known_orders.get(&order.key()).copied();
        if let Some(known) = replaced.and_then(|number| self.take_order(number)) {
            let (known, more) = (known.after.range, &mut order.after.range);
            *more = more.start.min(known.start)..more.end.max(known.end);
        }
        let (number, range) = (self.next_id(), order.after.range.clone());
        self.known_orders.insert(order.key(), number);
        self.ordered.add(pages);
        self.order_spans.add(pages, number.0);
        self.orders.insert(number, order);
        Ordered { number, replaced, range }
    }

    fn take_order(&mut self, number: RangeId) -> Option<Order<F>> {
        let order = self.orders.remove(&number)?;
        self.known_orders.remove(&order.key());
        self.ordered.remove(&order.pages);
        self.order_spans.remove(&order.pages, number.0);
        Some(order)
    }

    /// Takes a range out; returns its pages.
    pub(in crate::devices) fn remove(&mut self, number: RangeId) -> Option<Range<u64>> {
        if let Some(pages) = self.holds.remove(&number) {
            self.held.remove(&pages);
            return Some(pages);
        }
        Some(self.take_order(number)?.pages)
    }

    /// Why dirty pages of a range are not written. `next_kept` gives the next page with the tag, from a page on.
    pub(in crate::devices) fn obstacles(
        &self,
        pages: &Range<u64>,
        next_kept: impl Fn(u64) -> Option<u64>,
    ) -> Obstacles<F> {
        let next_kept_in = |coverage: &Coverage| {
            let mut from = pages.start;
            loop {
                let kept = next_kept(from).filter(|kept| *kept < pages.end)?;
                match coverage.next_covered(kept)? {
                    covered if covered == kept => return Some(kept),
                    covered => from = covered,
                }
            }
        };
        let earlier = next_kept_in(&self.ordered).and_then(|page| {
            let number = RangeId(self.order_spans.overlapping(&(page..page + 1)).next()?);
            Some((number, self.orders.get(&number)?.after.clone()))
        });
        Obstacles { holder: next_kept_in(&self.held).is_some(), earlier }
    }

    /// The number of ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.holds.len() + self.orders.len()
    }

    /// The pages of a range that waits for bytes, if it still does.
    pub(crate) fn ordered_pages(&self, number: RangeId) -> Option<Range<u64>> {
        self.orders.get(&number).map(|order| order.pages.clone())
    }

    /// The bytes that ranges overlapping `pages` wait for.
    pub(crate) fn orders_within(&self, pages: &Range<u64>) -> Vec<Earlier<F>> {
        let orders = self.order_spans.overlapping(pages).filter_map(|number| self.orders.get(&RangeId(number)));
        orders.map(|order| order.after.clone()).collect()
    }

    /// A range that waits for other bytes.
    pub(crate) fn first_order(&self) -> Option<(RangeId, Earlier<F>)> {
        self.orders.first_key_value().map(|(number, order)| (*number, order.after.clone()))
    }

    /// Whether a page of `pages` would be withheld.
    pub(crate) fn has_any_in(&self, pages: &Range<u64>) -> bool {
        let touches = |coverage: &Coverage| coverage.next_covered(pages.start).is_some_and(|page| page < pages.end);
        touches(&self.held) || touches(&self.ordered)
    }

    /// The ranges that wait for bytes of this file.
    pub(crate) fn later(&mut self) -> &mut LaterRanges<F> {
        &mut self.later
    }
}

/// Ranges of any files that wait for bytes of one file.
pub(crate) struct LaterRanges<F> {
    /// By position. Later ones have higher positions.
    by_position: BTreeMap<u64, Later<F>>,
    by_id: BTreeMap<(usize, RangeId), u64>,
    /// First bytes that ranges wait for, with the ranges' positions.
    starts: BTreeSet<(u64, u64)>,
    /// Ends of the bytes that ranges wait for, with the ranges' positions.
    ends: BTreeSet<(u64, u64)>,
    spans: Spans,
    /// The position of the last of them.
    last_position: u64,
}

impl<F> Default for LaterRanges<F> {
    fn default() -> Self {
        Self {
            by_position: BTreeMap::new(),
            by_id: BTreeMap::new(),
            starts: BTreeSet::new(),
            ends: BTreeSet::new(),
            spans: Spans::default(),
            last_position: 0,
        }
    }
}

impl<F> LaterRanges<F> {
    /// A range waits for bytes of this file.
    pub(crate) fn add(&mut self, file: &Arc<F>, ordered: &Ordered) {
        let file = Arc::downgrade(file);
        let replaced = ordered.replaced.and_then(|number| self.by_id.get(&(address(&file), number)).copied());
        replaced.into_iter().for_each(|position| drop(self.take_at(position)));
        self.last_position += 1;
        let (position, range) = (self.last_position, ordered.range.clone());
        self.by_id.insert((address(&file), ordered.number), position);
        self.starts.insert((range.start, position));
        self.ends.insert((range.end, position));
        self.spans.add(&range, position);
        self.by_position.insert(position, Later { file, number: ordered.number, range });
    }

    fn take_at(&mut self, position: u64) -> Option<Later<F>> {
        let later = self.by_position.remove(&position)?;
        self.by_id.remove(&(address(&later.file), later.number));
        self.starts.remove(&(later.range.start, position));
        self.ends.remove(&(later.range.end, position));
        self.spans.remove(&later.range, position);
        Some(later)
    }

    /// The bytes that ranges wait for: from the first of them to the last.
    pub(crate) fn awaited(&self) -> Range<u64> {
        let bounds = self.starts.first().zip(self.ends.last());
        bounds.map_or(0..0, |((start, _), (end, _))| *start..*end)
    }

    /// The position of the last range; none if no range waits.
    pub(crate) fn last_position(&self) -> Option<u64> {
        (!self.by_position.is_empty()).then_some(self.last_position)
    }

    /// The ranges that wait for some of these bytes.
    pub(crate) fn after(&self, bytes: &Range<u64>) -> Vec<(Weak<F>, RangeId)> {
        let later = self.spans.overlapping(bytes).filter_map(|position| self.by_position.get(&position));
        later.map(|later| (Weak::clone(&later.file), later.number)).collect()
    }

    /// Takes out the ranges with positions up to `last` that wait for bytes within `range`, unless some of these bytes
    /// are withheld themselves.
    pub(crate) fn take(
        &mut self,
        last: u64,
        range: &Range<u64>,
        are_kept: impl Fn(&Range<u64>) -> bool,
    ) -> Vec<(Weak<F>, RangeId)> {
        let starts = self.starts.range((range.start, 0)..=(range.end, last)).map(|(_, position)| *position);
        let is_within = |position: &u64| {
            let waits_for = &self.by_position[position].range;
            *position <= last && waits_for.end <= range.end && !are_kept(waits_for)
        };
        let places: Vec<u64> = starts.filter(is_within).collect();
        let taken = places.into_iter().filter_map(|position| self.take_at(position));
        taken.map(|later| (later.file, later.number)).collect()
    }
}

/// Whether the ranges have a byte in common.
pub(crate) fn do_overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests;
