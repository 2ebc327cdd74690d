//! Lists of numbers, which a number may leave from any position.
//!
//! Each list is a ring of links through its own head, all in one vector. A number leaves a list without knowing which,
//! and one list takes over another as a whole.
//!
//! Owns: the links. Does not own: the meaning of the numbers.
//! Invariants: a number is in one list at most. No step looks at more than its neighbours.

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
