//! Properties of every policy under any arrivals, uses, writes and truncations.

//! rule: an eviction policy loses no frame, and gives each frame once and only if it can go
//! kept in: `product/pages/src/eviction/mod.rs`

use std::collections::BTreeMap;

use super::*;
use crate::page::{GUARD, Word};

const FRAMES: u32 = 64;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A cache under random use, beside its expected contents.
struct Tried {
    cache: Offline,
    there: BTreeMap<u64, FrameId>,
    dirty: Vec<FrameId>,
    guarded: Vec<FrameId>,
    random: Random,
}

impl Tried {
    fn new(kind: EvictionKind, seed: u64) -> Self {
        let cache = Offline::new(kind, FRAMES);
        Self { cache, there: BTreeMap::new(), dirty: Vec::new(), guarded: Vec::new(), random: Random(seed) }
    }

    fn word(&self, frame: FrameId) -> Word {
        self.cache.pages.word(frame)
    }

    /// Takes victims, each of which must be present, clean and held by nobody.
    fn evict(&mut self, want: usize) -> u64 {
        let (there, dirty, guarded) = (&mut self.there, &self.dirty, &self.guarded);
        self.cache.evict(want, |page| {
            let frame = there.remove(&page).expect("a victim is in the cache");
            assert!(!dirty.contains(&frame) && !guarded.contains(&frame));
        })
    }

    fn come(&mut self, page: u64) {
        let mut looks = 0;
        while !self.cache.has_free_frame() && looks < 100 {
            self.evict(1);
            looks += 1;
        }
        let why = [Admitted::Demand, Admitted::Ahead, Admitted::Written][self.random.below(3) as usize];
        if let Some(frame) = self.cache.admit(page, why) {
            self.there.insert(page, frame);
            if why == Admitted::Written {
                self.dirty.push(frame);
            }
        }
    }

    fn step(&mut self) {
        let page = self.random.below(150);
        let Some(frame) = self.there.get(&page).copied() else {
            return self.come(page);
        };
        match self.random.below(10) {
            0..5 => self.cache.read(frame),
            5..7 if !self.guarded.contains(&frame) => {
                if !self.word(frame).has_any(DIRTY) {
                    self.dirty.push(frame);
                }
                self.cache.write(frame);
            }
            7 if !self.word(frame).has_any(DIRTY) && self.guarded.len() < 8 => {
                let _ = self.cache.pages.hold(frame, GUARD);
                self.guarded.push(frame);
            }
            8 => self.cut_off(page, frame),
            _ => self.end_some(),
        }
    }

    fn cut_off(&mut self, page: u64, frame: FrameId) {
        if self.guarded.contains(&frame) {
            return;
        }
        self.cache.policy.removed(&self.cache.pages, &[frame]);
        self.cache.pages.change(frame, DIRTY, 0);
        self.cache.pages.detach(frame);
        assert!(self.cache.pages.try_release(frame));
        self.cache.free.push(frame);
        self.dirty.retain(|other| *other != frame);
        self.there.remove(&page);
    }

    /// A write ends, and a guard goes.
    fn end_some(&mut self) {
        let ended = self.dirty.len() / 2;
        let ended: Vec<FrameId> = self.dirty.drain(..ended).collect();
        self.cache.clean(&ended);
        if let Some(frame) = self.guarded.pop() {
            assert!(!self.cache.pages.end_guard(frame).0);
        }
    }
}

#[test]
fn no_policy_loses_a_frame_or_evicts_one_twice_or_one_that_cannot_go() {
    let kind = EvictionKind::default();
    for seed in 1..40 {
        let mut tried = Tried::new(kind, seed);
        (0..2000).for_each(|_| tried.step());
        while !(tried.dirty.is_empty() && tried.guarded.is_empty()) {
            tried.end_some();
            let last: Vec<FrameId> = tried.dirty.drain(..).collect();
            tried.cache.clean(&last);
        }
        for _ in 0..1000 {
            tried.evict(7);
        }
        assert!(tried.there.is_empty(), "{}, seed {seed}: {:?} stay for ever", kind.name, tried.there);
        assert_eq!(tried.cache.unread(), 0);
    }
}

#[test]
fn a_victim_is_none_again_before_it_is_clean_anew() {
    let kind = EvictionKind::default();
    let mut cache = Offline::new(kind, 32);
    (0..32).for_each(|page| {
        let _ = cache.admit(page, Admitted::Demand);
    });
    let chosen = |cache: &Offline| -> Vec<FrameId> {
        let scan = cache.policy.victims(&cache.pages, 8, 1000);
        scan.victims.iter().map(|victim| victim.frame).collect()
    };
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.extend(chosen(&cache));
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((seen.len(), chosen(&cache)), (32, vec![]), "{}", kind.name);
    cache.policy.cleaned(&cache.pages, &mut seen.iter().copied());
    assert_eq!(chosen(&cache).len(), 8, "{}", kind.name);
}

#[test]
fn the_default_policy_looks_at_few_pages_for_each_that_goes() {
    let mut tried = Tried::new(EvictionKind::default(), 5);
    for round in 0..3000 {
        (0..20).for_each(|_| tried.step());
        let held = (tried.dirty.len() + tried.guarded.len()) as u64;
        let before = (tried.cache.scanned(), tried.there.len());
        tried.evict(1);
        let (looked, gone) = (tried.cache.scanned() - before.0, before.1 - tried.there.len());
        // Each parked page is found once, each held page as often as the scan comes round meanwhile.
        assert!(gone == 0 || looked <= 129 + 2 * held, "round {round}: {looked} looks with {held} that cannot go");
    }
}

#[test]
fn memory_besides_the_frame_table_is_less_than_nine_bytes_a_frame() {
    let kind = EvictionKind::default();
    let per_frame = (kind.make)(1 << 16).bytes() as f64 / f64::from(1 << 16);
    assert!(per_frame < 9.0, "{}: {per_frame}", kind.name);
}
