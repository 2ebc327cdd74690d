//! The fourth part: misses while the pages that were written are dirty for a while, and cannot go.
//!
//! Owns: when a written page is clean again, a row of the table.
//! Does not own: the policies and the page states (`ours`), the generators, tables (`findings`).
//! Invariants: a touch takes [`TOUCH_MS`]. A page is dirty from its write until it is [`DIRTY_MS`] old, but the oldest
//! are cleaned while more than a [`DIRTY_PART`]th of the frames are dirty: about what the engine's flushers do.

use std::collections::VecDeque;

use afflux_workloads::touches::{Generator, Sizes, Touch};

use super::ours::Ours;
use super::part::Part;
use super::ratios::ENGINES;
use super::references::{Cache, run};

const TOUCH_MS: u64 = 1;
const DIRTY_MS: u64 = 30_000;
const DIRTY_PART: usize = 5;

/// A generator that writes, with one cache size, under the engine's policies.
pub(super) struct DirtyCell {
    pub(super) generator: &'static str,
    /// The part of the pages that the cache holds.
    pub(super) part: Part,
    /// Misses after the warm-up in the order of [`ENGINES`]: if no page is ever dirty, and if written pages are.
    pub(super) misses: [[u64; 2]; ENGINES.len()],
}

impl DirtyCell {
    /// `None` if the generator writes nothing.
    pub(super) fn run(generator: &Generator, part: Part, sizes: Sizes, seed: u64) -> Option<Self> {
        let sequence = generator.sequence(sizes, seed);
        let (touches, warm) = (&sequence.touches, sequence.touches.len() / 4);
        touches.iter().any(|touch| touch.write).then(|| {
            let misses = ENGINES.map(|kind| {
                let (frames, pages) = (sizes.frames as usize, sequence.pages() as usize);
                let clean = run(&mut Ours::new(kind, frames, pages), touches, warm);
                let mut cache = WithDirty::new(Ours::new(kind, frames, pages), frames, pages);
                [clean.touches - clean.hits, cache.misses(touches, warm)]
            });
            Self { generator: generator.name, part, misses }
        })
    }
}

/// A cache some of whose pages are dirty.
struct WithDirty {
    cache: Ours,
    /// The most dirty pages.
    dirty_max: usize,
    /// Pages in the order of their writes, and when they are clean.
    dirty: VecDeque<(u64, u32)>,
    is_dirty: Vec<bool>,
}

impl WithDirty {
    fn new(cache: Ours, frames: usize, pages: usize) -> Self {
        Self { cache, dirty_max: frames / DIRTY_PART, dirty: VecDeque::new(), is_dirty: vec![false; pages] }
    }

    /// Makes all touches in order. The first `warm` are not counted.
    fn misses(&mut self, touches: &[Touch], warm: usize) -> u64 {
        let mut misses = 0;
        for (at, touch) in touches.iter().enumerate() {
            let now_ms = at as u64 * TOUCH_MS;
            self.clean(now_ms);
            misses += u64::from(!self.cache.holds(touch.page) && at >= warm);
            if touch.write {
                self.write(touch.page, now_ms);
            } else {
                run(&mut self.cache, std::slice::from_ref(touch), 0);
            }
        }
        misses
    }

    fn write(&mut self, page: u32, now_ms: u64) {
        self.cache.write(page);
        if !std::mem::replace(&mut self.is_dirty[page as usize], true) {
            self.dirty.push_back((now_ms + DIRTY_MS, page));
        }
    }

    /// Cleans what is old, and the oldest while too much is dirty.
    fn clean(&mut self, now_ms: u64) {
        while let Some((until_ms, page)) = self.dirty.front().copied()
            && (until_ms <= now_ms || self.dirty.len() > self.dirty_max)
        {
            self.dirty.pop_front();
            self.is_dirty[page as usize] = false;
            self.cache.clean(page);
        }
    }
}

#[cfg(test)]
mod tests;
