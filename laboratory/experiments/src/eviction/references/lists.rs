//! Lists of pages, each page on one at most, with links by page number.
//!
//! Owns: the links, and the list of each page. Does not own: the meaning of a list.
//! Invariants: a page is on the list that `on` returns. List 0 is none.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    list: u8,
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy)]
struct Ends {
    newest: u32,
    oldest: u32,
    len: usize,
}

/// Several lists of pages.
pub(super) struct Lists<const COUNT: usize> {
    nodes: Vec<Node>,
    ends: [Ends; COUNT],
}

impl<const COUNT: usize> Lists<COUNT> {
    pub(super) fn new(pages: usize) -> Self {
        let node = Node { list: 0, newer: NONE, older: NONE };
        Self { nodes: vec![node; pages], ends: [Ends { newest: NONE, oldest: NONE, len: 0 }; COUNT] }
    }

    /// The list with the page; 0 for none.
    pub(super) fn on(&self, page: u32) -> u8 {
        self.nodes[page as usize].list
    }

    pub(super) fn len(&self, list: u8) -> usize {
        self.ends[usize::from(list) - 1].len
    }

    /// Puts the page first on a list, and removes it from any other.
    pub(super) fn put(&mut self, page: u32, list: u8) {
        self.take(page);
        let ends = &mut self.ends[usize::from(list) - 1];
        self.nodes[page as usize] = Node { list, newer: NONE, older: ends.newest };
        match ends.newest {
            NONE => ends.oldest = page,
            newest => self.nodes[newest as usize].newer = page,
        }
        (ends.newest, ends.len) = (page, ends.len + 1);
    }

    /// Takes the page off its list, if it is on one.
    pub(super) fn take(&mut self, page: u32) {
        let Node { list, newer, older } = self.nodes[page as usize];
        if list == 0 {
            return;
        }
        let ends = &mut self.ends[usize::from(list) - 1];
        match newer {
            NONE => ends.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => ends.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        ends.len -= 1;
        self.nodes[page as usize].list = 0;
    }

    /// Takes the oldest page off a list.
    pub(super) fn take_oldest(&mut self, list: u8) -> Option<u32> {
        let oldest = self.oldest(list);
        oldest.into_iter().for_each(|oldest| self.take(oldest));
        oldest
    }

    pub(super) fn oldest(&self, list: u8) -> Option<u32> {
        found(self.ends[usize::from(list) - 1].oldest)
    }

    /// The next newer page of the same list.
    pub(super) fn newer(&self, page: u32) -> Option<u32> {
        found(self.nodes[page as usize].newer)
    }
}

fn found(page: u32) -> Option<u32> {
    (page != NONE).then_some(page)
}
