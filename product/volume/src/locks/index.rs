//! The search for a lock that excludes a wanted lock, in a file.
//!
//! Owns: a tree of spans for each kind of owner and each mode.
//! Does not own: the search in a tree (`tree`), the rule of exclusion (`owner`).
//! Invariants: a search looks into at most six trees.

use super::owner::{Lock, LockFamily, LockMode, LockOwner};
use super::span::Span;
use super::tree::SpanTree;

const FAMILIES: [LockFamily; 3] = [LockFamily::Single, LockFamily::Bytes, LockFamily::Files];
const MODES: [LockMode; 2] = [LockMode::Exclusive, LockMode::Shared];

/// Locks of a file, held or wanted, without their processes.
#[derive(Default)]
pub(super) struct LockIndex {
    trees: [[SpanTree; 2]; 3],
}

impl LockIndex {
    fn tree(&mut self, family: LockFamily, mode: LockMode) -> &mut SpanTree {
        &mut self.trees[family as usize][mode as usize]
    }

    pub(super) fn insert(&mut self, lock: &Lock) {
        self.tree(lock.owner.family, lock.mode).insert(lock.span, lock.owner);
    }

    pub(super) fn remove(&mut self, lock: &Lock) {
        self.tree(lock.owner.family, lock.mode).remove(lock.span.first, lock.owner);
    }

    /// Removes many locks at once.
    pub(super) fn retain(&mut self, stays: impl Fn(Span, &LockOwner) -> bool) {
        self.trees.iter_mut().flatten().for_each(|tree| tree.retain(&stays));
    }

    /// The trees whose locks exclude a wanted lock, but for locks of its owner.
    fn excluding(&self, wanted: &Lock) -> impl Iterator<Item = (&SpanTree, LockMode)> {
        let wanted = *wanted;
        let families = FAMILIES.into_iter().filter(move |family| wanted.owner.family.can_exclude(*family));
        let all = families.flat_map(|family| MODES.into_iter().map(move |mode| (family, mode)));
        let modes = all.filter(move |(_, mode)| wanted.mode == LockMode::Exclusive || *mode == LockMode::Exclusive);
        modes.map(|(family, mode)| (&self.trees[family as usize][mode as usize], mode))
    }

    /// The owner, the bytes and the mode of a lock in the way.
    pub(super) fn conflict(&self, wanted: &Lock) -> Option<(LockOwner, Span, LockMode)> {
        let found = self
            .excluding(wanted)
            .filter_map(|(tree, mode)| tree.find(wanted.span, wanted.owner).map(|(span, owner)| (owner, span, mode)));
        found.min_by_key(|(_, span, _)| span.first)
    }

    /// Shows the locks in the way, as long as `each` wants more.
    pub(super) fn show_conflicts(&self, wanted: &Lock, each: &mut dyn FnMut(LockOwner, Span, LockMode) -> bool) {
        for (tree, mode) in self.excluding(wanted) {
            let mut goes_on = true;
            tree.show_others(wanted.span, wanted.owner, &mut |span, owner| {
                goes_on = each(owner, span, mode);
                goes_on
            });
            if !goes_on {
                return;
            }
        }
    }

    /// All locks with any of these bytes.
    pub(super) fn overlapping(&self, span: Span) -> Vec<(LockOwner, Span, LockMode)> {
        let mut found = Vec::new();
        for (family, mode) in FAMILIES.into_iter().flat_map(|family| MODES.map(|mode| (family, mode))) {
            self.trees[family as usize][mode as usize].show(span, &mut |span, owner| {
                found.push((owner, span, mode));
                true
            });
        }
        found
    }
}
