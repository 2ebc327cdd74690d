//! `s3-window` with a probation that grows, where a running comparison says that growing pays.
//!
//! A page that comes back soon after it left probation asks for a larger probation. A page that comes back soon after
//! it left main asks for a smaller one. A working set that returns gains by a larger probation. A loop slightly larger
//! than the cache loses by it, though its pages look the same. So pages are in three parts, each with a cache of its
//! own. Of 32 pages, one follows the rules of `s3-window`, one these rules with the growing probation. The others
//! follow the leader that misses less (set dueling: Qureshi and others, ISCA 2007; Jaleel and others, ISCA 2010).
//!
//! Owns: the policy, on exact ghosts. Does not own: the engine's `s3-window`; its rules are written a second time here.
//! Invariants: the share of frames of each part is fixed, so a leader pays for its own rule.

use super::Cache;
use super::lists::Lists;

/// Of this many pages, one belongs to the plain leader, and the page half as many further on to the growing one. Chosen
/// by number, not by a hash, so that every range of pages has the same mix.
const LEADERS_OF: u32 = 32;
const PLAIN: usize = 0;
const GROWING: usize = 1;
const FOLLOWERS: usize = 2;

/// The followers grow when the plain leader is this many misses ahead of the growing one, and stop when the lead is
/// back at 0. The second constant bounds the lead in both directions.
const LEAD_MIN: i64 = 32;
const LEAD_MAX: i64 = 1024;

/// The lists of a part.
const FRESH: u8 = 1;
const PROBATION: u8 = 2;
const MAIN: u8 = 3;
const GONE_FROM_PROBATION: u8 = 4;
const GONE_FROM_MAIN: u8 = 5;
const LISTS: usize = 15;

/// Limits as in the engine.
const LOOKS_MAX: u64 = 128;
const LOOKS_A_PAGE: usize = 4;
const HITS_MAX: u8 = 3;

/// A part of the pages with a cache of its own.
struct Part {
    frames: usize,
    held: usize,
    /// The target for fresh and probation together, if probation grows.
    grown: usize,
    grows: bool,
    /// Pages that probation has lost so far.
    lost: u64,
    unread: usize,
}

impl Part {
    fn new(frames: usize, grows: bool) -> Self {
        Self { frames, held: 0, grown: frames / 10, grows, lost: 0, unread: 0 }
    }

    fn small_min(&self) -> usize {
        self.frames / 10
    }

    /// A page came back soon if probation has lost no more than this many pages since.
    fn soon(&self) -> usize {
        self.frames / 16
    }

    /// Frames of fresh and probation together above which probation is evicted from.
    fn small_target(&self) -> usize {
        let small = if self.grows { self.grown } else { self.small_min() };
        small.max((self.unread + self.unread / 4).min(self.frames * 3 / 8))
    }

    fn grow(&mut self) {
        self.grown = (self.grown + 1).min(self.frames * 3 / 4);
    }

    fn shrink(&mut self) {
        self.grown = self.grown.saturating_sub(1).max(self.small_min());
    }
}

/// The state of a page.
#[derive(Clone, Copy, Default)]
struct Page {
    hits: u8,
    unread: bool,
    /// The count of pages that probation had lost when it lost this page.
    lost_at: u64,
}

pub(in super::super) struct Dueling {
    lists: Lists<LISTS>,
    parts: [Part; 3],
    pages: Vec<Page>,
    /// Misses of the plain leader less those of the growing one.
    lead: i64,
}

impl Dueling {
    pub(in super::super) fn new(frames: usize, pages: usize) -> Self {
        let leader = frames / LEADERS_OF as usize;
        let parts = [Part::new(leader, false), Part::new(leader, true), Part::new(frames - 2 * leader, false)];
        Self { lists: Lists::new(pages), parts, pages: vec![Page::default(); pages], lead: 0 }
    }

    /// Whether the followers' probation grows.
    #[cfg(test)]
    pub(super) fn grows(&self) -> bool {
        self.parts[FOLLOWERS].grows
    }

    fn part(&self, page: u32) -> usize {
        match page % LEADERS_OF {
            // There are too few frames for leaders.
            _ if self.parts[PLAIN].frames == 0 => FOLLOWERS,
            0 => PLAIN,
            at if at == LEADERS_OF / 2 => GROWING,
            _ => FOLLOWERS,
        }
    }

    /// The kind of list with the page; 0 for none.
    fn on(&self, page: u32) -> u8 {
        match self.lists.on(page) {
            0 => 0,
            list => (list - 1) % 5 + 1,
        }
    }

    fn put(&mut self, page: u32, kind: u8) {
        self.lists.put(page, list(self.part(page), kind));
    }

    fn len(&self, part: usize, kind: u8) -> usize {
        self.lists.len(list(part, kind))
    }

    /// Moves the oldest page of fresh to probation.
    fn age(&mut self, part: usize) {
        if let Some(page) = self.lists.take_oldest(list(part, FRESH)) {
            self.pages[page as usize].hits = 0;
            self.put(page, PROBATION);
        }
    }

    /// The list to evict from next, after `looks` looks at pages that stayed.
    fn victim_queue(&mut self, part: usize, looks: u64) -> u8 {
        if looks >= LOOKS_MAX {
            let order = match (looks - LOOKS_MAX) % 3 {
                0 => [MAIN, PROBATION, FRESH],
                1 => [PROBATION, MAIN, FRESH],
                _ => [FRESH, MAIN, PROBATION],
            };
            return order.into_iter().find(|kind| self.len(part, *kind) > 0).unwrap_or(FRESH);
        }
        if looks as usize >= LOOKS_A_PAGE * (self.len(part, PROBATION) + self.len(part, MAIN)) {
            self.age(part);
        }
        let (fresh, probation) = (self.len(part, FRESH), self.len(part, PROBATION));
        let small_gives = fresh + probation > self.parts[part].small_target() || self.len(part, MAIN) == 0;
        if probation > 0 && small_gives { PROBATION } else { MAIN }
    }

    /// The list to which the oldest page of `from` moves, if it stays in the cache.
    fn stays(&mut self, part: usize, from: u8, page: u32) -> Option<u8> {
        let unread_may_stay = self.parts[part].unread <= self.parts[part].frames / 4;
        let Page { hits, unread, .. } = &mut self.pages[page as usize];
        match from {
            MAIN => {
                let stays = *hits > 0;
                *hits = hits.saturating_sub(1);
                stays.then_some(MAIN)
            }
            _ if *unread => unread_may_stay.then_some(PROBATION),
            _ => (std::mem::take(hits) > 0).then_some(MAIN),
        }
    }

    fn evict(&mut self, part: usize) {
        for looks in 0.. {
            let from = self.victim_queue(part, looks);
            let Some(page) = self.lists.take_oldest(list(part, from)) else { continue };
            let to = if looks >= LOOKS_MAX { None } else { self.stays(part, from, page) };
            match to {
                Some(kind) => self.put(page, kind),
                None => {
                    self.gone(part, from, page);
                    return;
                }
            }
        }
    }

    /// Accounts for a page that has left its list and the cache.
    fn gone(&mut self, part: usize, from: u8, page: u32) {
        let Part { frames, held, unread, lost, .. } = &mut self.parts[part];
        *held -= 1;
        let known = &mut self.pages[page as usize];
        if std::mem::take(&mut known.unread) {
            *unread -= 1;
            return;
        }
        let (ghost, len_max) = if from == MAIN {
            (GONE_FROM_MAIN, *frames / 16)
        } else {
            *lost += 1;
            known.lost_at = *lost;
            (GONE_FROM_PROBATION, *frames / 2)
        };
        self.put(page, ghost);
        if self.len(part, ghost) > len_max {
            self.lists.take_oldest(list(part, ghost));
        }
    }

    /// Counts a miss of a leader.
    fn compare(&mut self, part: usize) {
        let by = if part == PLAIN { 1 } else { -1 };
        self.lead = (self.lead + by).clamp(-LEAD_MAX, LEAD_MAX);
        let followers = &mut self.parts[FOLLOWERS];
        followers.grows = self.lead > if followers.grows { 0 } else { LEAD_MIN };
    }

    /// The list for a page that a client requested. The page's ghost adapts the size of probation.
    fn learn(&mut self, part: usize, page: u32) -> u8 {
        let ghost = self.on(page);
        let own = &mut self.parts[part];
        let to = match ghost {
            GONE_FROM_PROBATION => {
                if own.lost - self.pages[page as usize].lost_at <= own.soon() as u64 {
                    own.grow();
                }
                MAIN
            }
            GONE_FROM_MAIN => {
                own.shrink();
                FRESH
            }
            _ => FRESH,
        };
        let [_, growing, followers] = &mut self.parts;
        if let Some(share) = (growing.grown * followers.frames).checked_div(growing.frames) {
            followers.grown = share.max(followers.small_min());
        }
        to
    }
}

fn list(part: usize, kind: u8) -> u8 {
    part as u8 * 5 + kind
}

impl Cache for Dueling {
    fn touch(&mut self, page: u32, _: bool) -> bool {
        let there = self.holds(page);
        if there {
            let part = self.part(page);
            let known = &mut self.pages[page as usize];
            if std::mem::take(&mut known.unread) {
                self.parts[part].unread -= 1;
            } else {
                known.hits = (known.hits + 1).min(HITS_MAX);
            }
        }
        there
    }

    fn insert(&mut self, page: u32, ahead: bool) {
        let part = self.part(page);
        if !ahead && part != FOLLOWERS {
            self.compare(part);
        }
        if self.parts[part].held == self.parts[part].frames {
            self.evict(part);
        }
        let to = if ahead { FRESH } else { self.learn(part, page) };
        self.parts[part].held += 1;
        self.parts[part].unread += usize::from(ahead);
        self.pages[page as usize] = Page { unread: ahead, ..Page::default() };
        self.put(page, to);
        while self.len(part, FRESH) > (self.parts[part].frames / 20).max(1) {
            self.age(part);
        }
    }

    fn holds(&self, page: u32) -> bool {
        matches!(self.on(page), FRESH | PROBATION | MAIN)
    }
}
