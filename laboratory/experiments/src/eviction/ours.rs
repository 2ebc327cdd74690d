//! The engine's own eviction policies and page states, behind the study's cache trait.
//!
//! Owns: the frame of each page. Does not own: the policies and the page states.
//! Invariants: no page is dirty; pages that cannot be evicted occur in the runs on devices only (`device_time`).

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
}

impl Cache for Ours {
    fn used(&mut self, page: u32) {
        self.there[page as usize].into_iter().for_each(|frame| self.cache.read(frame));
    }

    fn insert(&mut self, page: u32, ahead: bool) {
        let Self { cache, there } = self;
        while !cache.has_free_frame() {
            let looked = cache.evict(1, |page| there[page as usize] = None);
            assert!(looked > 0, "a cache of clean pages that nothing can be evicted from");
        }
        let why = if ahead { Admitted::Ahead } else { Admitted::Demand };
        there[page as usize] = cache.admit(u64::from(page), why);
    }

    fn holds(&self, page: u32) -> bool {
        self.there[page as usize].is_some()
    }

    fn looked_at(&self) -> Option<u64> {
        Some(self.cache.scanned())
    }
}
