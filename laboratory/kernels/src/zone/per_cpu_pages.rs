//! One CPU's lists of free single frames (`struct per_cpu_pages`).
//!
//! Owns: the frames in them, the search of the single list, the drains.
//! Does not own: the buddy lists, the lock (the zone's, one a CPU).
//! Invariants: a drain takes at most the frames in the lists, so it never circles over empty lists.

use std::marker::PhantomData;

use super::form::{Drain, Form};
use super::mem_map::{BlockState, List, MemMap, Tag};
use super::{Mobility, Temperature};

#[cfg(test)]
mod tests;

/// The number of frames that the lists hold, and that move at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tunables {
    /// The number of frames at which a batch is given back.
    pub(super) high: u32,
    /// Frames moved at a time, at least 1.
    pub(super) batch: u32,
}

/// Events of the per-CPU lists, counted under their locks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Elements looked at to find a frame of the wanted class.
    pub elements_searched: u64,
    /// List heads examined in drains, empty or not.
    pub lists_examined: u64,
    /// Checks whether a list that is being drained still has frames.
    pub inner_checks: u64,
    /// Times that frames were brought in from the buddy lists.
    pub refills: u64,
    /// Times that frames were given back to the buddy lists.
    pub drains: u64,
}

pub(super) struct PerCpuPages<F> {
    /// By class; a form with one list uses the first only.
    lists: [List; Mobility::COUNT],
    pub(super) count: u32,
    /// The copy that forms without tunables in the zone use.
    pub(super) tunables: Tunables,
    pub(super) counters: Counters,
    /// How often the next drain is doubled (`free_factor`).
    doublings: u32,
    form: PhantomData<F>,
}

impl<F: Form> PerCpuPages<F> {
    pub(super) fn new(tunables: Tunables) -> Self {
        let counters = Counters::default();
        Self { lists: [List::EMPTY; Mobility::COUNT], count: 0, tunables, counters, doublings: 0, form: PhantomData }
    }

    fn list(&mut self, class: Mobility) -> &mut List {
        &mut self.lists[if F::LIST_PER_CLASS { class.index() } else { 0 }]
    }

    /// Takes a frame of that class. With a list a class, it takes the first frame from `end`; with one list, the first
    /// frame of the class from `end`.
    pub(super) fn take(&mut self, map: &MemMap, class: Mobility, end: Temperature) -> Option<u32> {
        let frame = if F::LIST_PER_CLASS {
            self.list(class).pop(map, end)?
        } else {
            let (found, searched) = self.lists[0].search(map, end, class);
            self.counters.elements_searched += searched;
            let frame = found?;
            self.lists[0].remove(map, frame);
            frame
        };
        self.count -= 1;
        self.doublings /= 2;
        Some(frame)
    }

    /// The number of frames that a drain of full lists takes.
    pub(super) fn bulk(&mut self, Tunables { high, batch }: Tunables) -> u32 {
        if !F::DOUBLES {
            return batch;
        }
        let most = high.saturating_sub(batch).max(batch);
        let bulk = batch << self.doublings;
        self.doublings += u32::from(bulk < most);
        bulk.min(most)
    }

    pub(super) fn put(&mut self, map: &MemMap, frame: u32, class: Mobility, end: Temperature) {
        map.set_tag(frame, Tag::new(BlockState::PerCpu, 0, class));
        self.list(class).push(map, frame, end);
        self.count += 1;
    }

    /// Adds frames from the buddy lists at the head, in the order in which they came.
    pub(super) fn refill(&mut self, map: &MemMap, class: Mobility, frames: &[u32]) {
        self.counters.refills += 1;
        frames.iter().rev().for_each(|frame| self.put(map, *frame, class, Temperature::Hot));
    }

    /// Takes `count` frames from the tails, in the form's order. `last` is the class of the last free.
    pub(super) fn drain(&mut self, map: &MemMap, count: u32, last: Mobility, give: impl FnMut(u32)) {
        let count = count.min(self.count);
        self.counters.drains += 1;
        self.count -= count;
        let mut run = Run { lists: &mut self.lists, counters: &mut self.counters, map, left: count, give };
        match F::DRAIN {
            Drain::OneList => run.one_list(),
            Drain::RoundRobin => run.round_robin(),
            Drain::Batched => run.batched(false),
            Drain::BatchedShortcut => run.batched(true),
            Drain::EmptyFirst => run.empty_first(last),
        }
    }
}

/// A drain under way.
struct Run<'a, G> {
    lists: &'a mut [List; Mobility::COUNT],
    counters: &'a mut Counters,
    map: &'a MemMap,
    left: u32,
    give: G,
}

impl<G: FnMut(u32)> Run<'_, G> {
    /// Gives one frame of that list back; the list is not empty.
    fn give_one(&mut self, list: usize) {
        if let Some(frame) = self.lists[list].pop(self.map, Temperature::Cold) {
            (self.give)(frame);
        }
        self.left -= 1;
    }

    /// The next list after `at` that has frames. The step comes first, so the walk starts at the second list.
    fn next_list(&mut self, at: usize, examined: &mut u32) -> usize {
        let mut at = at;
        loop {
            at = (at + 1) % self.lists.len();
            self.counters.lists_examined += 1;
            *examined += 1;
            if !self.lists[at].is_empty() {
                return at;
            }
        }
    }

    fn one_list(&mut self) {
        while self.left > 0 {
            self.counters.lists_examined += 1;
            self.give_one(0);
        }
    }

    fn round_robin(&mut self) {
        let mut at = 0;
        while self.left > 0 {
            at = self.next_list(at, &mut 0);
            self.give_one(at);
        }
    }

    fn batched(&mut self, shortcut: bool) {
        // The rest of the batch of a list that ran empty goes to the next list.
        let (mut at, mut batch) = (0, 0);
        while self.left > 0 {
            at = self.next_list(at, &mut batch);
            if shortcut && batch as usize == Mobility::COUNT {
                batch = self.left;
            }
            loop {
                self.give_one(at);
                batch = batch.saturating_sub(1);
                if self.left == 0 || batch == 0 {
                    break;
                }
                self.counters.inner_checks += 1;
                if self.lists[at].is_empty() {
                    break;
                }
            }
        }
    }

    fn empty_first(&mut self, last: Mobility) {
        // Linux 6.1 counts unmovable, movable, reclaimable.
        const ORDER: [Mobility; Mobility::COUNT] = [Mobility::Unmovable, Mobility::Movable, Mobility::Reclaimable];
        let (mut min, mut max) = (0, Mobility::COUNT - 1);
        let mut at = ORDER.iter().position(|class| *class == last).unwrap_or(0);
        while self.left > 0 {
            loop {
                self.counters.lists_examined += 1;
                if !self.lists[ORDER[at].index()].is_empty() {
                    break;
                }
                max -= usize::from(at == max);
                min += usize::from(at == min);
                at = if at + 1 > max { min } else { at + 1 };
            }
            while self.left > 0 && !self.lists[ORDER[at].index()].is_empty() {
                self.give_one(ORDER[at].index());
            }
            at = if at + 1 > max { min } else { at + 1 };
        }
    }
}

/// Drains `count` frames (or all, if there are fewer) from lists with these contents (unmovable, reclaimable, movable);
/// returns the classes of the frames in the order of their return. `last` is the class of the last free. Each class has
/// at most 65,536 frames.
pub fn drained<F: Form>(contents: [u32; Mobility::COUNT], count: u32, last: Mobility) -> (Counters, Vec<Mobility>) {
    let contents = contents.map(|frames| frames.min(1 << 16));
    let map = MemMap::new(contents.iter().sum());
    let mut lists = PerCpuPages::<F>::new(Tunables { high: u32::MAX, batch: 1 });
    let classes = Mobility::ALL.into_iter().flat_map(|class| (0..contents[class.index()]).map(move |_| class));
    for (frame, class) in classes.enumerate() {
        lists.put(&map, frame as u32, class, Temperature::Hot);
    }
    let mut order = Vec::new();
    lists.drain(&map, count, last, |frame| order.push(map.tag(frame).class));
    (lists.counters, order)
}
