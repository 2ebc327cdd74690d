//! The engine's own eviction policies and page states, behind the study's cache trait.
//!
//! Owns: the frame of each page. Does not own: the policies and the page states.
//! Invariants: no page is dirty but those that a part makes dirty (`dirty`); pages that are held occur in the runs on
//! devices only (`device_time`).

use afflux_engine::eviction::{Admitted, EvictionKind, Offline};
use afflux_frames::FrameId;

use super::references::Cache;

/// A cache under a policy of the engine.
pub(super) struct Ours {
    cache: Offline,
    there: Vec<Option<FrameId>>,
}

impl Ours {
    pub(super) fn new(kind: EvictionKind, frames: usize, pages: usize) -> Self {
        Self { cache: Offline::new(kind, frames as u32), there: vec![None; pages] }
    }

    /// Writes to a page, which is dirty until it is cleaned.
    pub(super) fn write(&mut self, page: u32) {
        match self.there[page as usize] {
            Some(frame) => self.cache.write(frame),
            None => self.admit(page, Admitted::Written),
        }
    }

    /// A dirty page is written back.
    pub(super) fn clean(&mut self, page: u32) {
        self.there[page as usize].into_iter().for_each(|frame| self.cache.clean(&[frame]));
    }

    fn admit(&mut self, page: u32, why: Admitted) {
        let Self { cache, there } = self;
        while !cache.has_free_frame() {
            let looked = cache.evict(1, |page| there[page as usize] = None);
            assert!(looked > 0, "nothing can be evicted");
        }
        there[page as usize] = cache.admit(u64::from(page), why);
    }
}

impl Cache for Ours {
    fn used(&mut self, page: u32) {
        self.there[page as usize].into_iter().for_each(|frame| self.cache.read(frame));
    }

    fn insert(&mut self, page: u32, ahead: bool) {
        self.admit(page, if ahead { Admitted::Ahead } else { Admitted::Demand });
    }

    fn holds(&self, page: u32) -> bool {
        self.there[page as usize].is_some()
    }

    fn looked_at(&self) -> Option<u64> {
        Some(self.cache.scanned())
    }
}
