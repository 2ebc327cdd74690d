//! The choice of a rule, measured: a miniature of the cache follows each rule, over sampled pages only, and the cache
//! follows the rule that misses less.
//!
//! Owns: the sample, with the frame of each page as far as it is known; the miniatures' queues and memories; the rules,
//! the counts of misses, the choice, the size of the small queues in force.
//! Does not own: the cache's queues (`s3_window`), the uses of a frame (`page`).
//! Invariants: only a page that comes does work here, and few do: a hit costs nothing. The lock is held with no other
//! lock of the policy. The same arrivals and uses give the same choice. A miniature holds as many pages as it was made
//! for, and follows the table of `s3_window`, but none of its pages is ever dirty or held. A page retains its number in
//! the sample while a miniature knows it. Its uses are read from its frame's record some time later: if the frame's
//! reuse is seen too late, one use is counted wrong.
//!
//! The first rounds of a loop, of a set that nearly fits, and of a scan look alike. So the cache begins under *small*,
//! which no scan harms, while the miniature of *keep* has the pages that came first in main. If *keep* then misses
//! less, the pages that the cache has become main's: the cache need not fill anew.

use std::sync::Mutex;

use afflux_frames::FrameId;

use crate::eviction::ghost::mixed;
use crate::eviction::{Admitted, Arrival};
use crate::page::{PageIdentity, PageTable};
use crate::sync::OwnLines;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::wait::lock;

/// How pages come and go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// Small queues, and the pages that came before the first one went are main's: for loops and sets that nearly fit.
    Keep,
    /// Small queues: for scans. The rule of a cache that has measured nothing.
    Small,
    /// Small queues that grow while pages come back which larger ones would have retained.
    Growing,
    /// No small queues, and a page that was hit begins anew: for pages that return after a fixed time.
    Recent,
}

const RULES: [Rule; 4] = [Rule::Keep, Rule::Small, Rule::Growing, Rule::Recent];

impl Rule {
    /// The least and the most that its small queues may have of the frames, in thousandths.
    fn small_thousandths(self) -> (u64, u64) {
        match self {
            Self::Keep | Self::Small | Self::Recent => (20, 20),
            Self::Growing => (100, 750),
        }
    }

    /// It must miss less than the rule in force by so much of its misses, in hundredths. Much is lost if pages are
    /// retained by mistake.
    fn lead_percent(self) -> u64 {
        match self {
            Self::Keep => 20,
            Self::Small | Self::Growing | Self::Recent => 3,
        }
    }
}

/// Of so many frames a miniature has one, but at least [`FRAMES_MIN`] and at most [`FRAMES_MAX`].
const FRAMES_A_FRAME: u32 = 64;
/// With fewer frames than about a hundred a miniature decides by chance. In a small cache it has one of
/// [`FRAMES_A_FRAME_MIN`] nevertheless: otherwise most pages that come would be sampled.
const FRAMES_MIN: u32 = 256;
const FRAMES_A_FRAME_MIN: u32 = 8;
const FRAMES_MAX: u32 = 4096;
/// All sampled pages are looked at as often while so many pages come as the cache has frames.
const ROUNDS_A_REFILL: usize = 8;
/// Refills of a miniature of which the misses count.
const REFILLS: u64 = 2;
/// A miss in a count.
const MISS: u64 = 1 << 16;
/// The counts lose one part of so many each time that as many misses came as make that part of the refills.
const PARTS: u64 = 16;

/// The orders to the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InForce {
    /// Frames of the small queues together, while nothing was read ahead; `None` if there are no small queues.
    pub(super) small: Option<u32>,
    /// How often the pages in the cache were to become main's.
    pub(super) adoptions: u32,
}

impl InForce {
    fn packed(self) -> u64 {
        u64::from(self.adoptions) << 32 | u64::from(self.small.unwrap_or(0))
    }

    fn unpacked(packed: u64) -> Self {
        Self { small: Some(packed as u32).filter(|small| *small > 0), adoptions: (packed >> 32) as u32 }
    }
}

pub(super) struct RuleChoice {
    frames: u32,
    /// Pages with a hash below this are sampled.
    below: u64,
    /// [`InForce`], in one word.
    in_force: AtomicU64,
    measured: OwnLines<Mutex<Measured>>,
}

struct Measured {
    sample: Sample,
    miniatures: [Miniature; RULES.len()],
    counts: Counts,
    /// The rule in force.
    chosen: usize,
    adoptions: u32,
    /// Frames of a miniature.
    frames: u32,
    /// Buckets of the sample that are looked at when a sampled page comes.
    looks: usize,
}

impl RuleChoice {
    pub(super) fn new(frames: u32) -> Self {
        let least = FRAMES_MIN.min((frames / FRAMES_A_FRAME_MIN).max(1));
        let few = (frames / FRAMES_A_FRAME).clamp(least, FRAMES_MAX);
        let sample = Sample::new(few);
        let miniatures = RULES.map(|rule| Miniature::new(rule, few, sample.pages()));
        let chosen = RULES.iter().position(|rule| *rule == Rule::Small).unwrap_or(0);
        let looks = (sample.pages() * ROUNDS_A_REFILL / WAYS).div_ceil(few as usize);
        let measured =
            Measured { sample, miniatures, counts: Counts::new(few), chosen, adoptions: 0, frames: few, looks };
        Self {
            frames,
            below: (u64::from(few) << 32) / u64::from(frames.max(1)),
            in_force: AtomicU64::new(measured.in_force(frames).packed()),
            measured: OwnLines(Mutex::new(measured)),
        }
    }

    pub(super) fn in_force(&self) -> InForce {
        InForce::unpacked(self.in_force.load(Ordering::Relaxed))
    }

    pub(super) fn bytes(&self) -> u64 {
        let measured = lock(&self.measured);
        measured.sample.bytes() + measured.miniatures.iter().map(Miniature::bytes).sum::<u64>()
    }

    /// A page has come into the cache.
    pub(super) fn note(&self, pages: &PageTable, arrival: &Arrival) {
        let hash = mixed(arrival.key);
        if hash >> 32 < self.below {
            self.measure(pages, arrival, hash as u32);
        }
    }

    #[cold]
    fn measure(&self, pages: &PageTable, arrival: &Arrival, hash: u32) {
        let mut measured = lock(&self.measured);
        measured.arrive(pages, arrival, hash);
        self.in_force.store(measured.in_force(self.frames).packed(), Ordering::Relaxed);
    }
}

impl Measured {
    fn arrive(&mut self, pages: &PageTable, arrival: &Arrival, hash: u32) {
        let Self { sample, miniatures, .. } = self;
        let number = sample.number(hash, |page| !miniatures.iter().any(|miniature| miniature.is_known(page)));
        if let Some(number) = number {
            let is_ahead = arrival.why == Admitted::Ahead;
            self.sample.put(number, arrival.frame, pages, u8::from(!is_ahead));
            if is_ahead {
                self.miniatures.iter_mut().filter(|one| !one.has_page(number)).for_each(|one| one.come(number, true));
            } else {
                self.use_page(number);
            }
        }
        for _ in 0..self.looks {
            let (first, used) = self.sample.look(pages);
            bits(used).for_each(|way| self.use_page(first + way as u16));
        }
    }

    /// A sampled page is used: a miniature that does not hold it misses.
    fn use_page(&mut self, number: u16) {
        let mut missed = [false; RULES.len()];
        for (miniature, missed) in self.miniatures.iter_mut().zip(&mut missed) {
            if miniature.has_page(number) {
                miniature.touch(number);
            } else {
                miniature.come(number, false);
                *missed = true;
            }
        }
        if missed.contains(&true) {
            self.counts.add(missed);
            if let Some(better) = self.counts.better_than(self.chosen) {
                self.chosen = better;
                self.adoptions = self.adoptions.wrapping_add(u32::from(RULES[better] == Rule::Keep));
            }
        }
    }

    /// The orders to a cache with so many frames.
    fn in_force(&self, frames: u32) -> InForce {
        let small = u64::from(self.miniatures[self.chosen].small()) * u64::from(frames) / u64::from(self.frames.max(1));
        let small = (RULES[self.chosen] != Rule::Recent).then(|| (small as u32).max(1));
        InForce { small, adoptions: self.adoptions }
    }
}

/// Misses of the latest refills of a miniature; the last of them count most.
struct Counts {
    /// Of each rule.
    misses: [u64; RULES.len()],
    /// Of the first rule, of pages that the second had.
    differing: [[u64; RULES.len()]; RULES.len()],
    /// Counted since the counts lost a part.
    latest: u64,
    /// So many are a part.
    part: u64,
}

impl Counts {
    fn new(frames: u32) -> Self {
        let none = [0; RULES.len()];
        Self {
            misses: none,
            differing: [none; RULES.len()],
            latest: 0,
            part: (REFILLS * u64::from(frames) / PARTS).max(1),
        }
    }

    /// A page was used that these rules' miniatures did not hold.
    fn add(&mut self, missed: [bool; RULES.len()]) {
        for (one, differing) in self.differing.iter_mut().enumerate().filter(|(one, _)| missed[*one]) {
            self.misses[one] += MISS;
            let had = differing.iter_mut().zip(missed).filter(|(_, missed)| !missed);
            had.for_each(|(count, _)| *count += MISS);
        }
        self.latest += 1;
        if self.latest >= self.part {
            self.latest = 0;
            let counts = self.misses.iter_mut().chain(self.differing.as_flattened_mut());
            counts.for_each(|count| *count -= *count / PARTS);
        }
    }

    /// The rule that gains most over this one. It must miss less by its lead, and by two standard deviations of a
    /// difference that is chance.
    fn better_than(&self, now: usize) -> Option<usize> {
        let lead = |rule: usize| self.misses[rule] * RULES[rule].lead_percent() / 100;
        let ahead = |rule: usize| self.differing[now][rule].saturating_sub(self.differing[rule][now] + MISS);
        let best =
            (0..RULES.len()).filter(|rule| *rule != now).max_by_key(|rule| ahead(*rule).saturating_sub(lead(*rule)))?;
        let variance = MISS * (self.differing[now][best] + self.differing[best][now]);
        (ahead(best) > lead(best) && ahead(best) * ahead(best) > 4 * variance).then_some(best)
    }
}

/// Pages of a bucket.
const WAYS: usize = 16;
/// Pages of the sample for each frame of a miniature: the miniatures hold pages and remember others, and not all the
/// same.
const PAGES_A_FRAME: usize = 6;
const NO_FRAME: u32 = u32::MAX;
/// With so many uses in its record, a further use of a page shows.
const USES_SHOWN: u8 = 3;

/// A sampled page in its frame.
#[derive(Clone, Copy)]
struct SampleEntry {
    file: u32,
    index: u32,
    /// Uses in the frame's record when it was looked at last.
    uses: u8,
}

pub(super) struct Sample {
    /// The page of each number; 0 if there is none.
    hashes: Box<[u32]>,
    /// The frame that holds a page, as far as is known. Apart, since most pages of the sample are in none.
    frames: Box<[u32]>,
    entries: Box<[SampleEntry]>,
    /// The first number of the next bucket to check.
    hand: usize,
}

impl Sample {
    /// A sample for miniatures of `frames` frames.
    pub(super) fn new(frames: u32) -> Self {
        let pages = (frames as usize * PAGES_A_FRAME).next_multiple_of(WAYS);
        let none = SampleEntry { file: 0, index: 0, uses: 0 };
        Self {
            hashes: vec![0; pages].into(),
            frames: vec![NO_FRAME; pages].into(),
            entries: vec![none; pages].into(),
            hand: 0,
        }
    }

    /// The most pages that have a number.
    pub(super) fn pages(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(&*self.hashes) + size_of_val(&*self.frames) + size_of_val(&*self.entries)) as u64
    }

    /// The number of a page. A new page takes the number of a page that is in no frame and may be forgotten. None if
    /// its bucket has no such page.
    pub(super) fn number(&mut self, hash: u32, may_forget: impl Fn(u16) -> bool) -> Option<u16> {
        let hash = hash.max(1);
        let buckets = (self.pages() / WAYS) as u64;
        let first = ((u64::from(hash) * buckets) >> 32) as usize * WAYS;
        let mut bucket = first..first + WAYS;
        let found = bucket.clone().find(|at| self.hashes[*at] == hash).or_else(|| {
            bucket.find(|at| self.hashes[*at] == 0 || self.frames[*at] == NO_FRAME && may_forget(*at as u16))
        })?;
        if self.hashes[found] != hash {
            self.hashes[found] = hash;
            self.frames[found] = NO_FRAME;
        }
        Some(found as u16)
    }

    /// The page is in this frame from now on, with as many uses as its record has once the page was used for what it
    /// came.
    pub(super) fn put(&mut self, number: u16, frame: FrameId, pages: &PageTable, uses: u8) {
        let PageIdentity { file, index } = pages.identity(frame);
        self.frames[usize::from(number)] = frame.raw();
        self.entries[usize::from(number)] = SampleEntry { file, index: index as u32, uses };
    }

    /// Checks the next bucket's pages. Returns the first page's number, and a bit for each that was used since the last
    /// check.
    pub(super) fn look(&mut self, pages: &PageTable) -> (u16, u32) {
        let first = self.hand;
        self.hand = (first + WAYS) % self.pages();
        let frames = &self.frames[first..first + WAYS];
        let in_frames = frames.iter().rev().fold(0, |bits: u32, frame| bits << 1 | u32::from(*frame != NO_FRAME));
        let used = bits(in_frames).filter(|way| self.try_take_use(first + *way as usize, pages));
        (first as u16, used.fold(0, |used, way| used | 1 << way))
    }

    /// Checks a page that is in a frame; whether it was used since the last check.
    fn try_take_use(&mut self, at: usize, pages: &PageTable) -> bool {
        let (entry, frame) = (&mut self.entries[at], FrameId::new(self.frames[at]));
        let PageIdentity { file, index } = pages.identity(frame);
        if (file, index as u32) != (entry.file, entry.index) {
            self.frames[at] = NO_FRAME;
            return false;
        }
        let uses = pages.uses(frame);
        if uses == 0 || pages.is_unread(frame) {
            // Its reader has yet to use it for what it came.
            return false;
        }
        // Of hits that the policy took away, one at least is missing in the number.
        let before = entry.uses.saturating_sub(u8::from(pages.take_hits_mark(frame)));
        // A record counts four uses. So that the next one shows, one is taken away.
        let is_full = uses > USES_SHOWN && pages.try_drop_hit(frame) && pages.take_hits_mark(frame);
        entry.uses = if is_full { USES_SHOWN } else { uses };
        uses > before
    }
}

/// The numbers of the bits that are set, the lowest first.
fn bits(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(lowest)
    })
}

/// No page.
const NONE: u16 = u16::MAX;
const AWAY: u8 = 0;
const FRESH: u8 = 1;
const PROBATION: u8 = 2;
const MAIN: u8 = 3;
const HITS_MAX: u8 = 3;
/// Pages that stay, after which the next goes whatever its uses.
const LOOKS_MAX: u32 = 128;

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
    rule: Rule,
    frames: u32,
    /// Least and most frames of the small queues, and how many they have now.
    small: (u32, u32, u32),
    seen: Box<[Seen]>,
    lines: [Line; 3],
    unread: u32,
    gone: Gone,
    /// A page has gone.
    has_evicted: bool,
}

/// In [`Seen::gone`]: the page went from main.
const FROM_MAIN: u32 = 1 << 31;

impl Miniature {
    /// A miniature of `frames` frames over a sample of `pages` pages.
    pub(super) fn new(rule: Rule, frames: u32, pages: usize) -> Self {
        let of = |thousandths: u64| ((u64::from(frames) * thousandths / 1000) as u32).max(1);
        let (least, most) = rule.small_thousandths();
        let (least, most) = (of(least), of(most));
        let empty = Line { newest: NONE, oldest: NONE, len: 0 };
        Self {
            rule,
            frames,
            small: (least, most, of(100).clamp(least, most)),
            seen: vec![Seen::default(); pages].into(),
            lines: [empty; 3],
            unread: 0,
            gone: Gone::default(),
            has_evicted: false,
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
        let is_main = match self.rule {
            Rule::Recent => true,
            Rule::Keep => comes_back || !self.has_evicted,
            Rule::Small | Rule::Growing => comes_back,
        };
        self.push(page, if is_main { MAIN } else { FRESH });
        while self.len(FRESH) > (self.small.2 / 2).max(1) {
            self.age();
        }
    }

    /// Whether the page went from the small queues not long ago: larger ones would have retained it. One that went from
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
        self.has_evicted = true;
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
        if (looks >= LOOKS_MAX || self.rule == Rule::Recent) && self.len(MAIN) > 0 {
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
        let loses_one = from == MAIN && self.rule != Rule::Recent;
        let seen = &mut self.seen[usize::from(page)];
        if seen.is_unread {
            let is_spared = may_stay && from != MAIN && seen.hits < HITS_MAX;
            seen.hits += u8::from(is_spared);
            return is_spared.then_some(PROBATION);
        }
        let hits = seen.hits;
        seen.hits = if loses_one { hits.saturating_sub(1) } else { 0 };
        (hits > 0).then_some(MAIN)
    }

    fn remove(&mut self, page: u16, from: u8) {
        self.unlink(page);
        let seen = &mut self.seen[usize::from(page)];
        if std::mem::take(&mut seen.is_unread) {
            self.unread -= 1;
        } else if self.rule == Rule::Recent {
            seen.gone = 0;
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
