//! From a page's offset in its file to its frame.
//!
//! Owns: one file's radix tree: its root, growth, shrinkage and tags. As long as page 0 is the only page, there is no
//! node, and the root holds the page's frame.
//! Does not own: the nodes' memory (`nodes`), the pages' states.
//! Invariants: a lookup takes no lock and may be wrong if a node was reused meanwhile, so the caller checks the frame's
//! identity. Everything else needs the file's lock. A tag on a slot of an inner node is set when one below it is. The
//! remembered leaf is one of the tree's.

use afflux_frames::FrameId;

use super::nodes::{FANOUT, IndexNode, LEVEL_BITS, LEVELS_MAX, Nodes, ReservedNodes, Tag};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Set in the root word while page 0 is the only page. The low half of the word is then the page's frame; its tags are
/// the bits above that.
const ALONE: u64 = 1 << 63;

/// A file's index. The root word is 0 when empty, else height (levels, from 1) above the node's number, or [`ALONE`].
pub struct Index {
    root: AtomicU64,
    /// The leaf used last, because most operations under the lock walk a file page by page: its pages' common bits plus
    /// 1 (0 is none), and its number. Read and written with the file's lock held.
    last_pages: AtomicU64,
    last_leaf: AtomicU32,
}

/// A root word with [`ALONE`].
#[derive(Clone, Copy)]
struct SinglePage(u64);

impl SinglePage {
    fn new(frame: FrameId) -> Self {
        Self(ALONE | u64::from(frame.raw()))
    }

    #[inline]
    fn of(root: u64) -> Option<Self> {
        (root & ALONE != 0).then_some(Self(root))
    }

    #[inline]
    fn frame(self) -> FrameId {
        FrameId::new(self.0 as u32)
    }

    fn in_frame(self, frame: FrameId) -> Self {
        Self(self.0 & !u64::from(u32::MAX) | u64::from(frame.raw()))
    }

    fn bit(tag: Tag) -> u64 {
        1 << (32 + tag as u32)
    }

    fn has_tag(self, tag: Tag) -> bool {
        self.0 & Self::bit(tag) != 0
    }

    fn tagged(self, tag: Tag, on: bool) -> Self {
        if on { Self(self.0 | Self::bit(tag)) } else { Self(self.0 & !Self::bit(tag)) }
    }
}

/// The nodes from the root to a leaf.
struct Path {
    nodes: [u32; LEVELS_MAX],
    height: u32,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self { root: AtomicU64::new(0), last_pages: AtomicU64::new(0), last_leaf: AtomicU32::new(0) }
    }

    #[inline]
    fn root(&self) -> Option<(u32, u32)> {
        let root = self.root.load(Ordering::Acquire);
        let height = (root >> 32) as u32;
        (height != 0 && root & ALONE == 0).then_some((root as u32, height))
    }

    fn set_root(&self, root: Option<(u32, u32)>) {
        let word = root.map_or(0, |(node, height)| u64::from(height) << 32 | u64::from(node));
        self.root.store(word, Ordering::Release);
    }

    /// The frame that holds the page, as far as a lookup without the lock can tell.
    #[inline]
    pub fn lookup(&self, nodes: &Nodes, page: u64) -> Option<FrameId> {
        let root = self.root.load(Ordering::Acquire);
        if let Some(alone) = SinglePage::of(root) {
            return (page == 0).then_some(alone.frame());
        }
        let mut node = root as u32;
        let mut shift = ((root >> 32) as u32).checked_sub(1)? * LEVEL_BITS;
        if page >> shift >= FANOUT {
            return None;
        }
        loop {
            let value = nodes.read_unlocked(node, page >> shift)?;
            if shift == 0 {
                return Some(FrameId::new(value));
            }
            node = value;
            shift -= LEVEL_BITS;
        }
    }

    fn path(&self, nodes: &Nodes, page: u64) -> Option<Path> {
        let (mut node, height) = self.root()?;
        let mut path = Path { nodes: [0; LEVELS_MAX], height };
        if page >> ((height - 1) * LEVEL_BITS) >= FANOUT {
            return None;
        }
        for level in (0..height).rev() {
            path.nodes[level as usize] = node;
            if level > 0 {
                node = nodes.node(node).slot(page >> (level * LEVEL_BITS))?;
            }
        }
        Some(path)
    }

    #[inline]
    fn leaf<'a>(&self, nodes: &'a Nodes, page: u64) -> Option<IndexNode<'a>> {
        self.remembered(nodes, page).or_else(|| self.find_leaf(nodes, page))
    }

    /// The leaf that the page is in, if it is the one used last.
    #[inline]
    fn remembered<'a>(&self, nodes: &'a Nodes, page: u64) -> Option<IndexNode<'a>> {
        let hit = self.last_pages.load(Ordering::Relaxed) == (page >> LEVEL_BITS) + 1;
        hit.then(|| nodes.node(self.last_leaf.load(Ordering::Relaxed)))
    }

    fn find_leaf<'a>(&self, nodes: &'a Nodes, page: u64) -> Option<IndexNode<'a>> {
        let leaf = self.path(nodes, page)?.nodes[0];
        self.remember(page, leaf);
        Some(nodes.node(leaf))
    }

    fn remember(&self, page: u64, leaf: u32) {
        self.last_pages.store((page >> LEVEL_BITS) + 1, Ordering::Relaxed);
        self.last_leaf.store(leaf, Ordering::Relaxed);
    }

    /// The frame that holds the page, with the file's lock held.
    #[inline]
    pub fn frame(&self, nodes: &Nodes, page: u64) -> Option<FrameId> {
        let Some(leaf) = self.leaf(nodes, page) else {
            return self.alone(page).map(SinglePage::frame);
        };
        leaf.slot(page).map(FrameId::new)
    }

    /// Takes the nodes that an absent page needs; `more` supplies frames for them. `None` if there are too few.
    pub fn reserve_nodes<'a>(
        &self,
        nodes: &'a Nodes,
        page: u64,
        more: impl FnMut() -> Option<FrameId>,
    ) -> Option<ReservedNodes<'a>> {
        nodes.take(self.lacking(nodes, page), more)
    }

    fn lacking(&self, nodes: &Nodes, page: u64) -> usize {
        if self.leaf(nodes, page).is_some() {
            return 0;
        }
        let levels = levels_of(page);
        let Some((mut node, height)) = self.root() else {
            return match SinglePage::of(self.root.load(Ordering::Relaxed)) {
                _ if page == 0 => 0,
                // A leaf for the lone page, the levels above it, and the other page's path down from there.
                Some(_) => 2 * levels - 1,
                None => levels,
            };
        };
        if levels > height as usize {
            return levels - height as usize + levels - 1;
        }
        for level in (1..height).rev() {
            match nodes.node(node).slot(page >> (level * LEVEL_BITS)) {
                Some(child) => node = child,
                None => return level as usize,
            }
        }
        0
    }

    /// Puts a frame at a page, in place of the earlier frame, if any. `reserved` has the nodes that the page lacks.
    pub fn insert(&self, nodes: &Nodes, page: u64, frame: FrameId, mut reserved: ReservedNodes<'_>) {
        if let Some(leaf) = self.leaf(nodes, page) {
            return leaf.set_slot(page, Some(frame.raw()));
        }
        match SinglePage::of(self.root.load(Ordering::Relaxed)) {
            Some(alone) if page == 0 => return self.set_alone(Some(alone.in_frame(frame))),
            Some(alone) => self.grow_tree(nodes, alone, &mut reserved),
            None if page == 0 && self.root().is_none() => return self.set_alone(Some(SinglePage::new(frame))),
            None => {}
        }
        self.insert_leaf(nodes, page, frame, &mut reserved);
    }

    /// Puts another frame at a present page.
    pub fn replace(&self, nodes: &Nodes, page: u64, frame: FrameId) {
        match self.leaf(nodes, page) {
            Some(leaf) => leaf.set_slot(page, Some(frame.raw())),
            None => self.set_alone(self.alone(page).map(|alone| alone.in_frame(frame))),
        }
    }

    /// Page 0 in the root, if that is the page.
    #[inline]
    fn alone(&self, page: u64) -> Option<SinglePage> {
        SinglePage::of(self.root.load(Ordering::Relaxed)).filter(|_| page == 0)
    }

    fn set_alone(&self, alone: Option<SinglePage>) {
        self.root.store(alone.map_or(0, |alone| alone.0), Ordering::Release);
    }

    /// Makes a tree with a leaf for the page that was alone.
    fn grow_tree(&self, nodes: &Nodes, alone: SinglePage, reserved: &mut ReservedNodes<'_>) {
        let number = reserved.next();
        let leaf = nodes.node(number);
        leaf.set_slot(0, Some(alone.frame().raw()));
        for tag in Tag::ALL {
            leaf.set_tag(tag, 0, alone.has_tag(tag));
        }
        self.set_root(Some((number, 1)));
    }

    fn insert_leaf(&self, nodes: &Nodes, page: u64, frame: FrameId, reserved: &mut ReservedNodes<'_>) {
        let (mut node, height) = self.grow(nodes, page, reserved);
        for level in (1..height).rev() {
            let at = page >> (level * LEVEL_BITS);
            let here = nodes.node(node);
            node = here.slot(at).unwrap_or_else(|| {
                let child = reserved.next();
                here.set_slot(at, Some(child));
                child
            });
        }
        nodes.node(node).set_slot(page, Some(frame.raw()));
        self.remember(page, node);
    }

    /// Adds levels until the page fits.
    fn grow(&self, nodes: &Nodes, page: u64, reserved: &mut ReservedNodes<'_>) -> (u32, u32) {
        let levels = levels_of(page) as u32;
        let (mut node, mut height) = self.root().unwrap_or_else(|| (reserved.next(), levels));
        while height < levels {
            let above = reserved.next();
            let parent = nodes.node(above);
            parent.set_slot(0, Some(node));
            for tag in Tag::ALL {
                parent.set_tag(tag, 0, nodes.node(node).tags(tag) != 0);
            }
            node = above;
            height += 1;
        }
        self.set_root(Some((node, height)));
        (node, height)
    }

    /// Removes a page with its tags. Frees the nodes that are empty afterwards.
    pub fn remove(&self, nodes: &Nodes, page: u64) {
        let Some(leaf) = self.leaf(nodes, page) else {
            if self.alone(page).is_some() {
                self.set_alone(None);
            }
            return;
        };
        for tag in Tag::ALL {
            if leaf.has_tag(tag, page) {
                self.set_tag(nodes, page, tag, false);
            }
        }
        leaf.set_slot(page, None);
        if leaf.occupied() == 0 {
            self.remove_leaf(nodes, page);
        }
    }

    /// Frees the empty leaf that the page was in, and the nodes above it that become empty.
    fn remove_leaf(&self, nodes: &Nodes, page: u64) {
        let Some(path) = self.path(nodes, page) else {
            return;
        };
        self.last_pages.store(0, Ordering::Relaxed);
        for level in 0..path.height {
            let node = path.nodes[level as usize];
            if level > 0 {
                nodes.node(node).set_slot(page >> (level * LEVEL_BITS), None);
            }
            if nodes.node(node).occupied() != 0 {
                return;
            }
            if level + 1 == path.height {
                self.set_root(None);
            }
            nodes.free(node);
        }
    }

    /// Sets or clears a tag of a present page.
    pub fn set_tag(&self, nodes: &Nodes, page: u64, tag: Tag, on: bool) {
        let Some(leaf) = self.leaf(nodes, page) else {
            if let Some(alone) = self.alone(page) {
                self.set_alone(Some(alone.tagged(tag, on)));
            }
            return;
        };
        self.set_tag_of(leaf, nodes, page, tag, on);
    }

    /// As [`Index::set_tag`]. Returns the change in the number of runs: consecutive pages with the tag.
    pub fn set_tag_in_run(&self, nodes: &Nodes, page: u64, tag: Tag, on: bool) -> i64 {
        let Some(leaf) = self.leaf(nodes, page) else {
            let Some(alone) = self.alone(page).filter(|alone| alone.has_tag(tag) != on) else {
                return 0;
            };
            self.set_alone(Some(alone.tagged(tag, on)));
            return if on { 1 } else { -1 };
        };
        if leaf.has_tag(tag, page) == on {
            return 0;
        }
        // The neighbour is nearly always in the same leaf. Another leaf is not remembered: the walk goes on in this
        // one.
        let at = page & (FANOUT - 1);
        let before =
            if at > 0 { leaf.has_tag(tag, at - 1) } else { page > 0 && self.has_tag_far(nodes, page - 1, tag) };
        let after = if at < FANOUT - 1 { leaf.has_tag(tag, at + 1) } else { self.has_tag_far(nodes, page + 1, tag) };
        self.set_tag_of(leaf, nodes, page, tag, on);
        let more = 1 - i64::from(before) - i64::from(after);
        if on { more } else { -more }
    }

    fn has_tag_far(&self, nodes: &Nodes, page: u64, tag: Tag) -> bool {
        self.path(nodes, page).is_some_and(|path| nodes.node(path.nodes[0]).has_tag(tag, page))
    }

    fn set_tag_of(&self, leaf: IndexNode<'_>, nodes: &Nodes, page: u64, tag: Tag, on: bool) {
        // The levels above record only whether any bit is set.
        let was = leaf.tags(tag) != 0;
        leaf.set_tag(tag, page, on);
        if was != (leaf.tags(tag) != 0) {
            self.set_above(nodes, page, tag, on);
        }
    }

    /// The page's leaf got its first tag of this kind, or lost its last.
    fn set_above(&self, nodes: &Nodes, page: u64, tag: Tag, on: bool) {
        let Some(path) = self.path(nodes, page) else {
            return;
        };
        for level in 1..path.height {
            let node = nodes.node(path.nodes[level as usize]);
            let was = node.tags(tag) != 0;
            node.set_tag(tag, page >> (level * LEVEL_BITS), on);
            if was == (node.tags(tag) != 0) {
                return;
            }
        }
    }

    /// Clears a tag of the pages from `from` on, a multiple of a leaf's pages, in so many leaves. Returns the page to
    /// continue at, unless all are done.
    pub fn clear_tag(&self, nodes: &Nodes, from: u64, tag: Tag, leaves: u64) -> Option<u64> {
        if let Some(alone) = self.alone(0) {
            self.set_alone(Some(alone.tagged(tag, false)));
            return None;
        }
        let mut from = from;
        for _ in 0..leaves {
            let page = self.next_tagged(nodes, from, tag)?;
            self.leaf(nodes, page)?.set_tags(tag, 0);
            self.set_above(nodes, page, tag, false);
            from = (page | (FANOUT - 1)) + 1;
        }
        Some(from)
    }

    /// Whether the page has the tag. The caller holds the file's lock.
    pub fn has_tag(&self, nodes: &Nodes, page: u64, tag: Tag) -> bool {
        match self.leaf(nodes, page) {
            Some(leaf) => leaf.has_tag(tag, page),
            None => self.alone(page).is_some_and(|alone| alone.has_tag(tag)),
        }
    }

    /// Whether any page has the tag. Reads only the root.
    pub fn has_tagged(&self, nodes: &Nodes, tag: Tag) -> bool {
        match self.root() {
            Some((root, _)) => nodes.node(root).tags(tag) != 0,
            None => self.alone(0).is_some_and(|alone| alone.has_tag(tag)),
        }
    }

    /// The first page at or after `from` that has the tag.
    pub fn next_tagged(&self, nodes: &Nodes, from: u64, tag: Tag) -> Option<u64> {
        if let Some(alone) = self.alone(from) {
            return alone.has_tag(tag).then_some(0);
        }
        self.next(nodes, from, |node| node.tags(tag))
    }

    /// The first page at or after `from` without the tag; `end` if no page before has none. Reads each leaf once.
    pub fn next_untagged(&self, nodes: &Nodes, from: u64, end: u64, tag: Tag) -> u64 {
        let mut page = from;
        while page < end {
            let Some(leaf) = self.leaf(nodes, page) else {
                return page + u64::from(self.alone(page).is_some_and(|alone| alone.has_tag(tag)));
            };
            let untagged = !leaf.tags(tag) & u64::MAX << (page & (FANOUT - 1));
            if untagged != 0 {
                return end.min(page & !(FANOUT - 1) | u64::from(untagged.trailing_zeros()));
            }
            page = (page | (FANOUT - 1)) + 1;
        }
        end
    }

    /// The first present page at or after `from`.
    pub fn next_present(&self, nodes: &Nodes, from: u64) -> Option<u64> {
        if self.alone(from).is_some() {
            return Some(0);
        }
        self.next(nodes, from, |node| node.occupied())
    }

    fn next(&self, nodes: &Nodes, from: u64, marks: impl Fn(IndexNode<'_>) -> u64) -> Option<u64> {
        let after = u64::MAX << (from & (FANOUT - 1));
        let near = self.remembered(nodes, from).map_or(0, |leaf| marks(leaf) & after);
        if near != 0 {
            return Some(from & !(FANOUT - 1) | u64::from(near.trailing_zeros()));
        }
        let (root, height) = self.root()?;
        let top = (height - 1) * LEVEL_BITS;
        if from >> top >= FANOUT {
            return None;
        }
        descend(nodes, root, top, from, &marks)
    }
}

/// The levels of a tree that has the page.
fn levels_of(page: u64) -> usize {
    (u64::BITS - page.leading_zeros()).div_ceil(LEVEL_BITS).max(1) as usize
}

/// The first marked page at or after `from`. The bits of `from` above this node's level are the node's.
fn descend(nodes: &Nodes, node: u32, shift: u32, from: u64, marks: &impl Fn(IndexNode<'_>) -> u64) -> Option<u64> {
    let start = (from >> shift) & (FANOUT - 1);
    let here = nodes.node(node);
    let mut left = marks(here) & (u64::MAX << start);
    while left != 0 {
        let at = u64::from(left.trailing_zeros());
        left &= left - 1;
        let base = (from >> shift & !(FANOUT - 1) | at) << shift;
        let first = if at == start { from } else { base };
        if shift == 0 {
            return Some(first);
        }
        let Some(child) = here.slot(at) else {
            continue;
        };
        if let Some(found) = descend(nodes, child, shift - LEVEL_BITS, first, marks) {
            return Some(found);
        }
    }
    None
}

#[cfg(all(test, loom))]
mod loom_models;
#[cfg(test)]
mod tests;
