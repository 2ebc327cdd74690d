//! The order in which a device's files get slices.
//!
//! A file is in several orders at once. By *slice*: first the files of the current round. When the round is over, its
//! files that have more to write follow, and the files that became dirty meanwhile. By *size*: the power of two of the
//! dirty pages not in flight, first come first served among equals, so that a file seldom moves while it is dirtied. By
//! *age*: the time when the file became dirty. Callers may pass over hot files, which are rewritten over and over. By
//! *look*, where files are written behind: the time to check whether they have been left alone.
//!
//! Owns: these orders, and their lists of numbers, which are rings of links in one vector. Does not own: the files, the
//! lock around this (`worklist`), which order is followed.
//! Invariants: holds no file alive. A number is in one list at most, leaves it from any position, and no step there
//! visits more than its neighbours. Taking a file costs at most a search by age among all files. One exception is
//! [`Ready::next_expired`], which visits the round's files up to the first old one; rounds are nearly in the order of
//! age. The other is [`Ready::next_queued`], which moves each file into a round once.

use std::collections::BTreeSet;
use std::sync::Weak;

use afflux_device::platform::Nanos;

/// Lists of files that wait for a slice.
const DIRTY: u32 = 0;
const ROUND: u32 = 1;
const MORE: u32 = 2;
/// The first list by size.
const SIZES: u32 = 3;
/// The number of different sizes.
const SIZE_COUNT: u32 = 64;

/// Where a newly listed file begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ListPosition {
    /// Behind the files that have had no slice.
    Dirty,
    /// Behind the files that had their slice and have more.
    More,
}

pub(super) struct Ready<F> {
    entries: Vec<Option<ReadyEntry<F>>>,
    free: Vec<u32>,
    rings: Rings,
    /// Indexed by whether files are hot.
    orders: [Orders; 2],
    looks: BTreeSet<(Nanos, u32)>,
}

/// By size and by age.
struct Orders {
    sizes: Rings,
    /// A bit for each size that some file has.
    sizes_used: u64,
    ages: BTreeSet<(Nanos, u32)>,
}

/// A file among the others.
pub(super) struct ReadyEntry<F> {
    pub(super) file: Weak<F>,
    /// The file's number, which stays valid when the file is gone.
    pub(super) slot: u32,
    pub(super) dirtied_at: Nanos,
    /// The most dirty pages found at a check.
    pub(super) size: Size,
    /// Whether the file is rewritten over and over.
    pub(super) hot: bool,
    /// When to check whether the file has been left alone; [`Nanos::NEVER`] if that does not matter.
    pub(super) look_at: Nanos,
}

/// The entry that a list had for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AsListed {
    /// Its dirty pages.
    pub size: Size,
    /// When it became dirty. A file that a sync has cleaned since, and that became dirty again, is younger.
    pub dirtied_at: Nanos,
}

/// A device's files that may be written, by their list in the order of slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ListedFiles {
    /// Files that became dirty and have had no slice. (The kernel's b_dirty.)
    pub dirty: u64,
    /// Files of the current round. (b_io.)
    pub round: u64,
    /// Files that have had their slice in it and have more. (b_more_io.)
    pub more: u64,
}

/// A file's position in the orders, as the file remembers it. The file may have left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ReadyPosition {
    number: u32,
    size: Size,
}

impl ReadyPosition {
    /// Whether a file with `pages` dirty pages belongs elsewhere.
    pub(crate) fn is_outgrown(self, pages: u64) -> bool {
        Size::of(pages) > self.size
    }
}

/// The power of two of a number of pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Size(u8);

impl Size {
    /// The size of a file with so many dirty pages.
    pub(crate) fn of(pages: u64) -> Self {
        Self(pages.checked_ilog2().unwrap_or(0) as u8)
    }

    fn list(self) -> u32 {
        u32::from(self.0)
    }
}

impl<F> Default for Ready<F> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            rings: Rings::new(SIZES),
            orders: [Orders::new(), Orders::new()],
            looks: BTreeSet::new(),
        }
    }
}

impl Orders {
    fn new() -> Self {
        Self { sizes: Rings::new(SIZE_COUNT), sizes_used: 0, ages: BTreeSet::new() }
    }

    fn enter_size(&mut self, number: u32, size: Size) {
        self.sizes.push(size.list(), number);
        self.sizes_used |= 1 << size.0;
    }

    fn leave_size(&mut self, number: u32, size: Size) {
        self.sizes.remove(number);
        if self.sizes.first(size.list()).is_none() {
            self.sizes_used &= !(1 << size.0);
        }
    }

    /// The first file of the largest size, and that size.
    fn largest(&self) -> Option<(u32, u32)> {
        let size = self.sizes_used.checked_ilog2()?;
        self.sizes.first(size).map(|number| (size, number))
    }
}

impl<F> Ready<F> {
    /// The number of files in each list, in time proportional to the number of files.
    pub(super) fn counts(&self) -> ListedFiles {
        let count = |list| self.rings.iter(list).count() as u64;
        ListedFiles { dirty: count(DIRTY), round: count(ROUND), more: count(MORE) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.orders.iter().all(|order| order.ages.is_empty())
    }

    /// The order of files that are not hot, and of the hot ones if `hot`.
    fn orders(&self, hot: bool) -> &[Orders] {
        &self.orders[..1 + usize::from(hot)]
    }

    /// When the oldest dirty file became dirty; hot files count only if `hot`.
    pub(super) fn oldest(&self, hot: bool) -> Option<Nanos> {
        self.first_by_age(hot).map(|(dirtied_at, _)| dirtied_at)
    }

    fn first_by_age(&self, hot: bool) -> Option<(Nanos, u32)> {
        self.orders(hot).iter().filter_map(|order| order.ages.first()).min().copied()
    }

    /// When the next check for a file left alone is due.
    pub(super) fn look_at(&self) -> Option<Nanos> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// Lists a file behind others.
    pub(super) fn push(&mut self, entry: ReadyEntry<F>, behind: ListPosition) -> ReadyPosition {
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        let size = entry.size;
        self.rings.push(if behind == ListPosition::Dirty { DIRTY } else { MORE }, number);
        let order = &mut self.orders[usize::from(entry.hot)];
        order.ages.insert((entry.dirtied_at, number));
        order.enter_size(number, size);
        if entry.look_at < Nanos::NEVER {
            self.looks.insert((entry.look_at, number));
        }
        self.entries[number as usize] = Some(entry);
        ReadyPosition { number, size }
    }

    fn take(&mut self, number: u32) -> Option<ReadyEntry<F>> {
        let entry = self.entries[number as usize].take()?;
        self.rings.remove(number);
        let order = &mut self.orders[usize::from(entry.hot)];
        order.leave_size(number, entry.size);
        order.ages.remove(&(entry.dirtied_at, number));
        self.looks.remove(&(entry.look_at, number));
        self.free.push(number);
        Some(entry)
    }

    /// The file in the slot now has `pages` dirty pages. Returns its new position, if it is still listed.
    pub(super) fn grow(&mut self, position: ReadyPosition, slot: u32, pages: u64) -> Option<ReadyPosition> {
        let (number, size) = (position.number, Size::of(pages));
        let entry = self.entries.get_mut(number as usize)?.as_mut().filter(|entry| entry.slot == slot)?;
        let before = std::mem::replace(&mut entry.size, size);
        let order = &mut self.orders[usize::from(entry.hot)];
        order.leave_size(number, before);
        order.enter_size(number, size);
        Some(ReadyPosition { number, size })
    }

    /// Takes the next file of the round, or of the next round.
    pub(super) fn next_of_round(&mut self) -> Option<ReadyEntry<F>> {
        if self.rings.first(ROUND).is_none() {
            self.rings.append(ROUND, MORE);
            self.rings.append(ROUND, DIRTY);
        }
        self.rings.first(ROUND).and_then(|number| self.take(number))
    }

    /// Whether a file of a round waits for its slice, or had one and has more.
    pub(super) fn has_round(&self) -> bool {
        [ROUND, MORE].into_iter().any(|list| self.rings.first(list).is_some())
    }

    /// As [`Ready::next_of_round`], but a new round has the dirty files that have had no slice only up to the first one
    /// that became dirty after `before`. If the first dirty file is young, the old files behind it come.
    pub(super) fn next_queued(&mut self, before: Nanos) -> Option<ReadyEntry<F>> {
        if self.rings.first(ROUND).is_none() {
            self.rings.append(ROUND, MORE);
            let is_old = |entry: &ReadyEntry<F>| entry.dirtied_at <= before;
            while let Some(number) = self.rings.first(DIRTY)
                && self.entries[number as usize].as_ref().is_some_and(is_old)
            {
                self.rings.remove(number);
                self.rings.push(ROUND, number);
            }
        }
        match self.rings.first(ROUND) {
            Some(number) => self.take(number),
            None => self.next_expired(before),
        }
    }

    /// Takes the first file in the order of slices that has been dirty since `before` or longer.
    pub(super) fn next_expired(&mut self, before: Nanos) -> Option<ReadyEntry<F>> {
        self.oldest(true).filter(|oldest| *oldest <= before)?;
        let is_old =
            |number: &u32| self.entries[*number as usize].as_ref().is_some_and(|entry| entry.dirtied_at <= before);
        let number = [ROUND, MORE, DIRTY].into_iter().find_map(|list| self.rings.iter(list).find(is_old))?;
        self.take(number)
    }

    /// Takes the oldest dirty file, if it has been dirty since `before` or longer.
    pub(super) fn next_oldest(&mut self, before: Nanos, hot: bool) -> Option<ReadyEntry<F>> {
        let (_, number) = self.first_by_age(hot).filter(|(dirtied_at, _)| *dirtied_at <= before)?;
        self.take(number)
    }

    /// Takes the first file of the largest size.
    pub(super) fn next_largest(&mut self, hot: bool) -> Option<ReadyEntry<F>> {
        // Among files of the same size, takes one that is not hot.
        let largest = self.orders(hot).iter().rev().filter_map(Orders::largest).max_by_key(|(size, _)| *size);
        largest.and_then(|(_, number)| self.take(number))
    }

    /// Takes the file whose check for being left alone is due first, if it is due.
    pub(super) fn next_to_look_at(&mut self, now: Nanos) -> Option<ReadyEntry<F>> {
        let (_, number) = *self.looks.first().filter(|(at, _)| *at <= now)?;
        self.take(number)
    }
}

/// Lists of numbers, by number from 0.
pub(super) struct Rings {
    heads: u32,
    /// Links of the heads, then of the numbers.
    links: Vec<Link>,
}

#[derive(Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

impl Rings {
    /// `heads` empty lists.
    pub(super) fn new(heads: u32) -> Self {
        let alone = |at| Link { before: at, after: at };
        Self { heads, links: (0..heads).map(alone).collect() }
    }

    fn join(&mut self, before: u32, after: u32) {
        self.links[before as usize].after = after;
        self.links[after as usize].before = before;
    }

    /// Puts a number that is in no list at the end of one.
    pub(super) fn push(&mut self, list: u32, number: u32) {
        let at = self.heads + number;
        while self.links.len() <= at as usize {
            let new = self.links.len() as u32;
            self.links.push(Link { before: new, after: new });
        }
        let last = self.links[list as usize].before;
        self.join(last, at);
        self.join(at, list);
    }

    /// Takes a number out of its list.
    pub(super) fn remove(&mut self, number: u32) {
        let at = self.heads + number;
        let Link { before, after } = self.links[at as usize];
        self.join(before, after);
        self.links[at as usize] = Link { before: at, after: at };
    }

    /// Moves the numbers of one list to the end of another.
    pub(super) fn append(&mut self, to: u32, from: u32) {
        let Link { before: last, after: first } = self.links[from as usize];
        if first == from {
            return;
        }
        let end = self.links[to as usize].before;
        self.join(end, first);
        self.join(last, to);
        self.links[from as usize] = Link { before: from, after: from };
    }

    fn number(&self, at: u32) -> Option<u32> {
        at.checked_sub(self.heads)
    }

    pub(super) fn first(&self, list: u32) -> Option<u32> {
        self.number(self.links[list as usize].after)
    }

    /// A list's numbers, from the first.
    pub(super) fn iter(&self, list: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(list), |number| self.number(self.links[(self.heads + number) as usize].after))
    }
}

#[cfg(test)]
mod tests;
