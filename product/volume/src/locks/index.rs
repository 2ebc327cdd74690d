//! The search for a lock that excludes a wanted lock, in a file.
//!
//! Owns: a tree of spans for each kind of owner and each mode, in the order of their first bytes; the search in a tree
//! for a span of another owner; the count of steps that the tables of locks take, of this thread and in tests alone.
//! Does not own: the rule of exclusion (`owner`), the bounds of steps (`table/tests.rs`).
//! Invariants: a search goes through at most six trees. The steps of a search, an insertion and a removal are the
//! logarithm of the number of spans. Each subtree knows its last end, and the last end of a second owner. Each access
//! to an entry of a table is a step, so that a test finds a walk over all (`table/tests.rs`).

use crate::locks::owner::{Lock, LockFamily, LockMode, LockOwner, Span};

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

    /// Removes the locks of an owner that are meant, in one walk.
    pub(super) fn remove_all(&mut self, owner: LockOwner, is_meant: impl Fn(&Lock) -> bool) {
        for mode in MODES {
            let meant = |span, of: LockOwner| of == owner && is_meant(&Lock { owner, span, mode, process: 0 });
            self.tree(owner.family, mode).retain(|span, of| !meant(span, *of));
        }
    }

    /// The trees whose locks exclude a wanted lock, but for locks of its owner.
    fn excluding(&self, wanted: &Lock) -> impl Iterator<Item = (&SpanTree, LockMode)> {
        let wanted = *wanted;
        let families = FAMILIES.into_iter().filter(move |family| wanted.owner.family.can_exclude(*family));
        let all = families.flat_map(|family| MODES.into_iter().map(move |mode| (family, mode)));
        let modes = all.filter(move |(_, mode)| wanted.mode == LockMode::Exclusive || *mode == LockMode::Exclusive);
        modes.map(|(family, mode)| (&self.trees[family as usize][mode as usize], mode))
    }

    /// The owner, the bytes and the mode of a conflicting lock.
    pub(super) fn conflict(&self, wanted: &Lock) -> Option<(LockOwner, Span, LockMode)> {
        let found = self
            .excluding(wanted)
            .filter_map(|(tree, mode)| tree.find(wanted.span, wanted.owner).map(|(span, owner)| (owner, span, mode)));
        found.min_by_key(|(_, span, _)| span.first)
    }

    /// Shows the conflicting locks, as long as `each` wants more.
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

/// The last end of the spans in a part of the tree, and the last end of a second owner.
#[derive(Clone, Copy)]
struct Ends {
    last: u64,
    owner: LockOwner,
    other: Option<(u64, LockOwner)>,
}

impl Ends {
    fn of(last: u64, owner: LockOwner) -> Self {
        Self { last, owner, other: None }
    }

    fn add(&mut self, last: u64, owner: LockOwner) {
        match () {
            () if owner == self.owner => self.last = self.last.max(last),
            () if last > self.last => *self = Self { last, owner, other: Some((self.last, self.owner)) },
            () if self.other.is_none_or(|other| other.0 < last) => self.other = Some((last, owner)),
            () => {}
        }
    }

    fn add_all(&mut self, of: &Self) {
        self.add(of.last, of.owner);
        of.other.iter().for_each(|(last, owner)| self.add(*last, *owner));
    }

    /// Whether a span of another owner ends at this byte or behind it.
    fn has_other_from(&self, first: u64, owner: LockOwner) -> bool {
        let last = if self.owner == owner { self.other.map(|other| other.0) } else { Some(self.last) };
        last.is_some_and(|last| last >= first)
    }
}

type Link = Option<Box<Node>>;

struct Node {
    span: Span,
    owner: LockOwner,
    height: u8,
    ends: Ends,
    left: Link,
    right: Link,
}

impl Node {
    fn key(&self) -> (u64, LockOwner) {
        (self.span.first, self.owner)
    }

    /// Computes what depends on the parts below.
    fn update(&mut self) {
        self.height = 1 + height(&self.left).max(height(&self.right));
        self.ends = Ends::of(self.span.last, self.owner);
        for below in [&self.left, &self.right].into_iter().flatten() {
            self.ends.add_all(&below.ends);
        }
    }
}

fn height(link: &Link) -> u8 {
    link.as_ref().map_or(0, |node| node.height)
}

/// Moves the right subtree up, in place of this node.
fn rotate_left(mut node: Box<Node>) -> Box<Node> {
    let Some(mut top) = node.right.take() else { return node };
    node.right = top.left.take();
    node.update();
    top.left = Some(node);
    top.update();
    top
}

/// Moves the left subtree up, in place of this node.
fn rotate_right(mut node: Box<Node>) -> Box<Node> {
    let Some(mut top) = node.left.take() else { return node };
    node.left = top.right.take();
    node.update();
    top.right = Some(node);
    top.update();
    top
}

/// The node after a change below it, with subtrees whose heights differ by one at most.
fn balanced(mut node: Box<Node>) -> Box<Node> {
    let (left, right) = (height(&node.left), height(&node.right));
    if left > right + 1 {
        node.left = node.left.take().map(|it| if height(&it.left) < height(&it.right) { rotate_left(it) } else { it });
        return rotate_right(node);
    }
    if right > left + 1 {
        node.right =
            node.right.take().map(|it| if height(&it.right) < height(&it.left) { rotate_right(it) } else { it });
        return rotate_left(node);
    }
    node.update();
    node
}

fn inserted(link: Link, new: Box<Node>) -> Box<Node> {
    step();
    let Some(mut node) = link else { return new };
    match new.key().cmp(&node.key()) {
        std::cmp::Ordering::Less => node.left = Some(inserted(node.left.take(), new)),
        std::cmp::Ordering::Greater => node.right = Some(inserted(node.right.take(), new)),
        // An owner waits twice from a byte on. Both waits count as a longer wait.
        std::cmp::Ordering::Equal => node.span = node.span.with(new.span),
    }
    balanced(node)
}

fn removed(link: Link, key: (u64, LockOwner)) -> Link {
    step();
    let mut node = link?;
    match key.cmp(&node.key()) {
        std::cmp::Ordering::Less => node.left = removed(node.left.take(), key),
        std::cmp::Ordering::Greater => node.right = removed(node.right.take(), key),
        std::cmp::Ordering::Equal => {
            let (left, right) = (node.left.take(), node.right.take());
            let Some(right) = right else { return left };
            let (mut next, rest) = without_first(right);
            (next.left, next.right) = (left, rest);
            return Some(balanced(next));
        }
    }
    Some(balanced(node))
}

/// Takes the first node out.
fn without_first(mut node: Box<Node>) -> (Box<Node>, Link) {
    step();
    match node.left.take() {
        None => {
            let rest = node.right.take();
            (node, rest)
        }
        Some(left) => {
            let (first, rest) = without_first(left);
            node.left = rest;
            (first, Some(balanced(node)))
        }
    }
}

/// Takes a tree apart. Adds the nodes that stay, in their order.
#[expect(clippy::vec_box, reason = "the nodes are used again as they are")]
fn take_apart(link: Link, stays: &impl Fn(Span, &LockOwner) -> bool, rest: &mut Vec<Box<Node>>) {
    let Some(mut node) = link else { return };
    step();
    let (left, right) = (node.left.take(), node.right.take());
    take_apart(left, stays, rest);
    if stays(node.span, &node.owner) {
        rest.push(node);
    }
    take_apart(right, stays, rest);
}

/// A tree of so many nodes in their order.
fn of_sorted(nodes: &mut impl Iterator<Item = Box<Node>>, count: usize) -> Link {
    if count == 0 {
        return None;
    }
    let left = of_sorted(nodes, count / 2);
    let mut node = nodes.next()?;
    (node.left, node.right) = (left, of_sorted(nodes, count - count / 2 - 1));
    node.update();
    Some(node)
}

fn find(link: &Link, span: Span, owner: LockOwner) -> Option<(Span, LockOwner)> {
    let node = link.as_deref()?;
    step();
    if !node.ends.has_other_from(span.first, owner) {
        return None;
    }
    let before = find(&node.left, span, owner);
    if before.is_some() || node.span.first > span.last {
        return before;
    }
    if node.owner != owner && node.span.last >= span.first {
        return Some((node.span, node.owner));
    }
    find(&node.right, span, owner)
}

/// Shows the spans with any of these bytes, as long as `each` wants more. Subtrees that have spans of the owner `but`
/// alone are skipped. False if `each` wants none.
fn has_shown(link: &Link, span: Span, but: Option<LockOwner>, each: &mut dyn FnMut(Span, LockOwner) -> bool) -> bool {
    let Some(node) = link.as_deref() else { return true };
    step();
    if but.map_or(node.ends.last < span.first, |owner| !node.ends.has_other_from(span.first, owner)) {
        return true;
    }
    if !has_shown(&node.left, span, but, each) {
        return false;
    }
    if node.span.first > span.last {
        return true;
    }
    (node.span.last < span.first || each(node.span, node.owner)) && has_shown(&node.right, span, but, each)
}

/// Spans of owners. Two of one owner do not begin at the same byte.
#[derive(Default)]
pub(super) struct SpanTree(Link);

impl SpanTree {
    pub(super) fn insert(&mut self, span: Span, owner: LockOwner) {
        let new = Node { span, owner, height: 1, ends: Ends::of(span.last, owner), left: None, right: None };
        self.0 = Some(inserted(self.0.take(), Box::new(new)));
    }

    pub(super) fn remove(&mut self, first: u64, owner: LockOwner) {
        self.0 = removed(self.0.take(), (first, owner));
    }

    /// The first span of another owner that has any of these bytes.
    pub(super) fn find(&self, span: Span, owner: LockOwner) -> Option<(Span, LockOwner)> {
        find(&self.0, span, owner)
    }

    /// Shows the spans with any of these bytes, the first one first, as long as `each` wants more.
    pub(super) fn show(&self, span: Span, each: &mut dyn FnMut(Span, LockOwner) -> bool) {
        has_shown(&self.0, span, None, each);
    }

    /// As [`SpanTree::show`], for the spans of other owners than this one.
    pub(super) fn show_others(&self, span: Span, owner: LockOwner, each: &mut dyn FnMut(Span, LockOwner) -> bool) {
        has_shown(&self.0, span, Some(owner), &mut |span, of| of == owner || each(span, of));
    }

    /// Removes many spans at once, in one walk over all.
    pub(super) fn retain(&mut self, stays: impl Fn(Span, &LockOwner) -> bool) {
        let mut rest = Vec::new();
        take_apart(self.0.take(), &stays, &mut rest);
        let count = rest.len();
        self.0 = of_sorted(&mut rest.into_iter(), count);
    }
}

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts an access to an entry.
#[inline]
pub(super) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// The steps that a call takes on this thread.
#[cfg(test)]
pub(super) fn steps_of<T>(call: impl FnOnce() -> T) -> (u64, T) {
    let before = STEPS.with(std::cell::Cell::get);
    let result = call();
    (STEPS.with(std::cell::Cell::get) - before, result)
}
