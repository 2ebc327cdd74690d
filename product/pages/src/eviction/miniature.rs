//! A miniature of the cache: the policy's queues under one rule, over sampled pages only.
//!
//! Owns: the queues, the memory of pages that went, the size of the small queues under the rule.
//! Does not own: the sample and its pages' numbers (`sample`), the policy itself (`s3_window`).
//! Invariants: it holds as many pages as it was made for. Nothing here knows a frame: a page is its number in the
//! sample. It goes by the table of `s3_window`, but no page of a miniature is ever dirty or held.

/// No page.
const NONE: u16 = u16::MAX;
const AWAY: u8 = 0;
const FRESH: u8 = 1;
const PROBATION: u8 = 2;
const MAIN: u8 = 3;
const HITS_MAX: u8 = 3;
/// Pages that stay, after which the next goes whatever its uses.
const LOOKS_MAX: u32 = 128;

/// The share of the cache that its small queues may have, in thousandths.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// What a miniature knows of a page.
#[derive(Clone, Copy, Default)]
struct Seen {
    queue: u8,
    hits: u8,
    is_unread: bool,
    newer: u16,
    older: u16,
    /// When it went; 0 if nothing is remembered.
    gone: u32,
}

/// One queue's ends and length.
#[derive(Clone, Copy)]
struct Line {
    newest: u16,
    oldest: u16,
    len: u32,
}

/// When a page went, counted in the pages of the same kind that had gone by then.
#[derive(Clone, Copy, Default)]
struct Gone {
    small: u32,
    main: u32,
}

pub(super) struct Miniature {
    frames: u32,
    /// Least and most frames of the small queues, and how many they have now.
    small: (u32, u32, u32),
    seen: Box<[Seen]>,
    lines: [Line; 3],
    unread: u32,
    gone: Gone,
}

/// In [`Seen::gone`]: the page went from main.
const FROM_MAIN: u32 = 1 << 31;

impl Miniature {
    /// A miniature of `frames` frames over a sample of `pages` pages.
    pub(super) fn new(rule: Rule, frames: u32, pages: usize) -> Self {
        let of = |thousandths: u64| ((u64::from(frames) * thousandths / 1000) as u32).max(1);
        let (least, most) = (of(rule.least), of(rule.most));
        let empty = Line { newest: NONE, oldest: NONE, len: 0 };
        Self {
            frames,
            small: (least, most, of(100).clamp(least, most)),
            seen: vec![Seen::default(); pages].into(),
            lines: [empty; 3],
            unread: 0,
            gone: Gone::default(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&*self.seen) as u64
    }

    /// The frames that its small queues may have now.
    pub(super) fn small(&self) -> u32 {
        self.small.2
    }

    pub(super) fn has_page(&self, page: u16) -> bool {
        self.seen[usize::from(page)].queue != AWAY
    }

    /// Whether it holds the page, or remembers it.
    pub(super) fn is_known(&self, page: u16) -> bool {
        self.has_page(page) || self.is_ghost_of_small(page) || self.is_ghost_of_main(page)
    }

    /// Pages that went from the small queues are remembered for five eighths of the frames.
    fn is_ghost_of_small(&self, page: u16) -> bool {
        let gone = self.seen[usize::from(page)].gone;
        gone != 0 && gone & FROM_MAIN == 0 && self.gone.small.wrapping_sub(gone) < self.frames * 5 / 8
    }

    /// Those that went from main, for three eighths.
    fn is_ghost_of_main(&self, page: u16) -> bool {
        let gone = self.seen[usize::from(page)].gone;
        gone & FROM_MAIN != 0 && self.gone.main.wrapping_sub(gone & !FROM_MAIN) < self.frames * 3 / 8
    }

    /// A page that it holds is used.
    pub(super) fn touch(&mut self, page: u16) {
        let seen = &mut self.seen[usize::from(page)];
        if std::mem::take(&mut seen.is_unread) {
            (seen.hits, self.unread) = (0, self.unread - 1);
        } else {
            seen.hits = (seen.hits + 1).min(HITS_MAX);
        }
    }

    /// A page comes that it does not hold, for a reader who waits or ahead of one.
    pub(super) fn come(&mut self, page: u16, is_ahead: bool) {
        let comes_back = !is_ahead && self.adapt_to_return(page);
        if self.lines.iter().map(|line| line.len).sum::<u32>() >= self.frames {
            self.evict();
        }
        let seen = &mut self.seen[usize::from(page)];
        (seen.hits, seen.is_unread, seen.gone) = (0, is_ahead, 0);
        self.unread += u32::from(is_ahead);
        self.push(page, if comes_back { MAIN } else { FRESH });
        while self.len(FRESH) > (self.small.2 / 2).max(1) {
            self.age();
        }
    }

    /// Whether the page went from the small queues not long ago: larger ones would have kept it. One that went from
    /// main says the opposite.
    fn adapt_to_return(&mut self, page: u16) -> bool {
        let (least, most, now) = self.small;
        if self.is_ghost_of_small(page) {
            self.small.2 = (now + 1).min(most);
            return true;
        }
        if self.is_ghost_of_main(page) {
            self.small.2 = (now - 1).max(least);
        }
        false
    }

    fn evict(&mut self) {
        let target = self.small.2.max((self.unread + self.unread / 4).min(self.frames * 3 / 8));
        for looks in 0.. {
            if looks >= 4 * (self.len(PROBATION) + self.len(MAIN)) {
                self.age();
            }
            let from = self.giver(target, looks);
            let page = self.lines[usize::from(from) - 1].oldest;
            match self.stays(page, from).filter(|_| looks < LOOKS_MAX) {
                Some(to) => {
                    self.unlink(page);
                    self.push(page, to);
                }
                None => return self.remove(page, from),
            }
        }
    }

    /// The queue that gives the next page.
    fn giver(&mut self, target: u32, looks: u32) -> u8 {
        if looks >= LOOKS_MAX && self.len(MAIN) > 0 {
            return MAIN;
        }
        if self.len(PROBATION) == 0 && self.len(MAIN) == 0 {
            self.age();
        }
        let is_large = self.len(FRESH) + self.len(PROBATION) > target;
        if self.len(PROBATION) > 0 && (is_large || self.len(MAIN) == 0) { PROBATION } else { MAIN }
    }

    /// Where a page at a queue's tail goes instead of out of the miniature.
    fn stays(&mut self, page: u16, from: u8) -> Option<u8> {
        let may_stay = self.unread <= self.frames / 4;
        let seen = &mut self.seen[usize::from(page)];
        if seen.is_unread {
            let is_spared = may_stay && from != MAIN && seen.hits < HITS_MAX;
            seen.hits += u8::from(is_spared);
            return is_spared.then_some(PROBATION);
        }
        let hits = seen.hits;
        seen.hits = if from == MAIN { hits.saturating_sub(1) } else { 0 };
        (hits > 0).then_some(MAIN)
    }

    fn remove(&mut self, page: u16, from: u8) {
        self.unlink(page);
        let seen = &mut self.seen[usize::from(page)];
        if std::mem::take(&mut seen.is_unread) {
            self.unread -= 1;
        } else if from == MAIN {
            self.gone.main = (self.gone.main + 1) & !FROM_MAIN;
            seen.gone = self.gone.main | FROM_MAIN;
        } else {
            self.gone.small = (self.gone.small + 1) & !FROM_MAIN;
            seen.gone = self.gone.small;
        }
    }

    /// Moves the oldest page of fresh to probation; its hits are forgotten.
    fn age(&mut self) {
        let page = self.lines[0].oldest;
        if page != NONE {
            let seen = &mut self.seen[usize::from(page)];
            seen.hits = if seen.is_unread { seen.hits } else { 0 };
            self.unlink(page);
            self.push(page, PROBATION);
        }
    }

    fn len(&self, queue: u8) -> u32 {
        self.lines[usize::from(queue) - 1].len
    }

    fn push(&mut self, page: u16, queue: u8) {
        let line = &mut self.lines[usize::from(queue) - 1];
        let newest = std::mem::replace(&mut line.newest, page);
        line.len += 1;
        match newest {
            NONE => line.oldest = page,
            newest => self.seen[usize::from(newest)].newer = page,
        }
        let seen = &mut self.seen[usize::from(page)];
        (seen.queue, seen.newer, seen.older) = (queue, NONE, newest);
    }

    fn unlink(&mut self, page: u16) {
        let Seen { queue, newer, older, .. } = self.seen[usize::from(page)];
        let line = &mut self.lines[usize::from(queue) - 1];
        line.len -= 1;
        match newer {
            NONE => line.newest = older,
            newer => self.seen[usize::from(newer)].older = older,
        }
        match older {
            NONE => line.oldest = newer,
            older => self.seen[usize::from(older)].newer = newer,
        }
        self.seen[usize::from(page)].queue = AWAY;
    }
}

#[cfg(test)]
mod tests;
