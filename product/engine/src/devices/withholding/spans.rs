//! Ranges of pages, in ordered maps: how many ranges cover a page, and which ranges overlap others.
//!
//! Owns: both maps. Does not own: what a range means (`ranges`).
//! Invariants: a question about one page takes time in the logarithm of the number of ranges, whatever their order and
//! nesting (`questions_about_ranges_have_the_answers_of_a_plain_list`). A question about overlaps looks at the ranges
//! of each size class within twice that size.

use std::collections::BTreeMap;
use std::ops::Range;

/// The number of ranges that cover each page.
#[derive(Default)]
pub(super) struct Coverage {
    /// How many ranges cover the pages from this one to the next key. Neighbours differ.
    counts: BTreeMap<u64, u32>,
}

impl Coverage {
    fn count_at(&self, page: u64) -> u32 {
        self.counts.range(..=page).next_back().map_or(0, |(_, count)| *count)
    }

    pub(super) fn has_page(&self, page: u64) -> bool {
        self.count_at(page) > 0
    }

    /// The first covered page from `page` on.
    pub(super) fn next_covered(&self, page: u64) -> Option<u64> {
        if self.has_page(page) {
            return Some(page);
        }
        // Neighbours differ, so the next key's pages are covered.
        self.counts.range(page.saturating_add(1)..).next().map(|(start, _)| *start)
    }

    pub(super) fn add(&mut self, pages: &Range<u64>) {
        self.change(pages, |count| count + 1);
    }

    pub(super) fn remove(&mut self, pages: &Range<u64>) {
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
pub(super) struct Spans {
    /// The size class of a range, its start, its number; and its end.
    ends: BTreeMap<(u32, u64, u64), u64>,
}

/// Ranges of a class have this length at least, and less than twice as much.
fn class(pages: &Range<u64>) -> u32 {
    (pages.end - pages.start).max(1).ilog2()
}

impl Spans {
    pub(super) fn add(&mut self, pages: &Range<u64>, number: u64) {
        self.ends.insert((class(pages), pages.start, number), pages.end);
    }

    pub(super) fn remove(&mut self, pages: &Range<u64>, number: u64) {
        self.ends.remove(&(class(pages), pages.start, number));
    }

    /// The numbers of the ranges that overlap `pages`.
    pub(super) fn overlapping(&self, pages: &Range<u64>) -> impl Iterator<Item = u64> {
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

#[cfg(test)]
mod tests;
