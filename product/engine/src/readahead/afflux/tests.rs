//! rule: readahead reads few pages for nothing, its pages stay until they are read, and a bad sector costs its
//! neighbours nothing

mod credit;

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_pages::page::PagesAhead;

use super::*;
use crate::readahead::prices::WindowSizes;
use crate::readahead::seam::Openings;

/// A file and its stream; pages read ahead are cached at once.
struct File {
    window: StreamWindow,
    cached: BTreeSet<u64>,
    /// Pages read ahead and not asked for yet, and counts of all that were.
    unread: BTreeSet<u64>,
    ahead: PagesAhead,
    openings: Arc<Openings>,
    window_sizes: WindowSizes,
    file_pages: u64,
    left: u64,
    most: u64,
    /// Windows, including the requested pages: start and pages; and the page whose read caused each.
    windows: Vec<(u64, u64)>,
    triggers: Vec<u64>,
    read: u64,
}

const A: WindowSizes = WindowSizes { most: 288, first: 4, gap: 6, early: false };
const HDD: WindowSizes = WindowSizes { most: 1856, first: 58, gap: 234, early: false };
const NVME: WindowSizes = WindowSizes { most: 256, first: 15, gap: 0, early: false };

impl File {
    fn new(window_sizes: WindowSizes) -> Self {
        let (window, cached) = (StreamWindow::default(), BTreeSet::new());
        let (windows, triggers) = (Vec::new(), Vec::new());
        Self {
            window,
            cached,
            unread: BTreeSet::new(),
            ahead: PagesAhead::default(),
            openings: Arc::new(Openings::new()),
            window_sizes,
            file_pages: 1 << 40,
            left: 1 << 40,
            most: 1 << 20,
            windows,
            triggers,
            read: 0,
        }
    }

    fn read(&mut self, start: u64, asked: u64) {
        let (pages, left) = (start..start + asked, self.left);
        let left = move || left;
        self.ahead.used += pages.clone().filter(|page| self.unread.remove(page)).count() as u64;
        let Self { window_sizes, file_pages, most, ahead, .. } = *self;
        let (openings, pages_ahead) = (Arc::clone(&self.openings), move || ahead);
        let terms = AheadTerms {
            file_pages,
            most,
            request_pages: 256,
            window_sizes,
            remaining: &left,
            openings: &openings,
            pages_ahead: &pages_ahead,
        };
        if let Some(first) = pages.clone().find(|page| !self.cached.contains(page)) {
            let ahead = self.window.missed(&(first..pages.end), &terms, &self.cached);
            self.read += pages.clone().filter(|page| self.cached.insert(*page)).count() as u64;
            let end = ahead.end_from(pages.end);
            self.windows.push((first, end - first));
            self.triggers.push(start);
            self.take(&ahead);
        }
        if self.window.trigger().is_some_and(|trigger| pages.end > trigger) {
            let ahead = self.window.used(&pages, &terms);
            if ahead.count > 0 {
                self.windows.push((ahead.first.start, ahead.first.end - ahead.first.start));
                self.triggers.push(start);
            }
            self.take(&ahead);
        }
    }

    fn take(&mut self, ahead: &Ahead) {
        for page in ahead.ranges().flatten().filter(|page| *page < self.file_pages) {
            if self.cached.insert(page) {
                self.read += 1;
                self.ahead.came += 1;
                self.unread.insert(page);
            }
        }
        self.window.issued(ReadaheadEnd::Through);
    }

    /// Reads `asked` pages at a time, in order, until there are as many windows as expected.
    fn in_order(window_sizes: WindowSizes, asked: u64, windows: &[(u64, u64)]) -> Self {
        let mut file = Self::new(window_sizes);
        let mut at = 0;
        while file.windows.len() < windows.len() && at < 1 << 16 {
            file.read(at, asked);
            at += asked;
        }
        assert_eq!(file.windows, windows, "{window_sizes:?}, reads of {asked}");
        file
    }
}

#[test]
fn reads_in_order() {
    let windows = [(0, 4), (4, 4), (8, 5), (13, 9), (22, 14), (36, 23), (59, 37), (96, 60)];
    let file = File::in_order(A, 1, &windows);
    assert_eq!(file.triggers, [0, 1, 4, 8, 13, 22, 36, 59]);
    File::in_order(
        HDD,
        4,
        &[
            (0, 58),
            (58, 58),
            (116, 60),
            (176, 120),
            (296, 180),
            (476, 300),
            (776, 480),
            (1256, 780),
            (2036, 1260),
            (3296, 1856),
        ],
    );
    File::in_order(NVME, 32, &[(0, 64), (64, 64), (128, 96), (224, 160), (384, 256), (640, 256)]);
    let small = WindowSizes { most: 32, first: 4, gap: 0, early: false };
    File::in_order(small, 1, &[(0, 4), (4, 4), (8, 5), (13, 9), (22, 14), (36, 23), (59, 32), (91, 32)]);
}

#[test]
fn reads_elsewhere_then_in_order() {
    let mut file = File::new(A);
    file.read(1000, 1);
    (5000..5016).for_each(|page| file.read(page, 1));
    assert_eq!(file.windows, [(1000, 1), (5000, 1), (5001, 4), (5005, 4), (5009, 6), (5015, 10), (5025, 16)]);
}

#[test]
fn streams_share_what_may_be_unread() {
    let (budget, window_sizes) = (65_536, WindowSizes { most: 32_768, first: 4, gap: 0, early: false });
    let next = 1 << 30;
    for (streams, settles) in [(1, 16_384), (8, 3640), (64, 504), (1000, 32)] {
        // One stream's window if each stream has two windows of `pages` pages.
        let window = |pages: u64| {
            let left = || budget - (2 * streams * pages).min(budget);
            let terms = AheadTerms {
                file_pages: 1 << 40,
                most: 1 << 20,
                request_pages: 256,
                window_sizes,
                remaining: &left,
                openings: &Openings::new(),
                pages_ahead: &PagesAhead::default,
            };
            let mut window = StreamWindow { open: true, next, end: next, ..StreamWindow::default() };
            let ahead = window.used(&(next..next + 1), &terms);
            ahead.first.end - ahead.first.start
        };
        assert!(window(settles) >= settles && window(settles + 1) <= settles, "{streams} streams");
    }
}

#[test]
fn nothing_is_read_ahead_where_nothing_is_left() {
    let mut file = File::new(A);
    file.left = 6;
    (0..100).for_each(|page| file.read(page, 1));
    assert_eq!(file.read, 100);
    file.left = 1000;
    (100..110).for_each(|page| file.read(page, 1));
    assert!(file.read > 110, "a stream that was never in doubt goes on when there is room");
}

// rule: 8: requests in flight, retries and readahead are bounded
#[test]
fn the_knob_bounds_the_window_and_zero_closes_it() {
    let mut file = File::new(HDD);
    file.most = 32;
    (0..2000).for_each(|page| file.read(page, 1));
    assert!(file.windows.iter().all(|(_, size)| *size <= 33) && file.windows.len() < 100, "{:?}", file.windows);
    file.most = 0;
    let read = file.read;
    (5000..5100).for_each(|page| file.read(page, 1));
    assert_eq!((file.read - read, file.window.trigger()), (100, None));
}

/// Short runs at many offsets, and then a long one.
#[test]
fn runs_that_end_early_cost_a_small_part_of_what_they_read_and_a_long_one_earns_its_windows() {
    for (window_sizes, run) in [(A, 3), (A, 40), (HDD, 3), (HDD, 24), (HDD, 200), (NVME, 40)] {
        let mut file = File::new(window_sizes);
        let asked = 200_000;
        (0..asked / run).for_each(|number| (0..run).for_each(|page| file.read((number + 1) * 10_000 + page, 1)));
        let lost = file.read - asked / run * run;
        assert!(lost <= asked * 4 / 100, "{lost} pages lost of {asked} in runs of {run}, {window_sizes:?}");
        let windows = file.windows.len();
        (0..100_000).for_each(|page| file.read((1 << 39) + page, 1));
        let last = file.windows[windows..].iter().map(|(_, size)| *size).max();
        assert!(last >= Some(window_sizes.most / 2), "{last:?} after runs of {run}, {window_sizes:?}");
    }
}

/// Large late calls of a stream may come for many pages. None comes for pages that an earlier stream read.
#[test]
fn large_calls_hide_no_pages_that_earlier_streams_left() {
    for window_sizes in [A, NVME] {
        let mut file = File::new(window_sizes);
        let (runs, run, call) = (30, 1280, 128);
        let starts = (0..runs).map(|number| (number + 1) * 100_000);
        starts.for_each(|start| (0..run / call).for_each(|number| file.read(start + number * call, call)));
        let lost = file.read - runs * run;
        assert!(lost <= runs * run * 3 / 100, "{lost} pages lost of {}, {window_sizes:?}", runs * run);
    }
}

#[test]
fn what_is_evicted_unread_halves_the_window() {
    let mut file = File::new(HDD);
    (0..600).for_each(|page| file.read(page, 1));
    let first_lost = *file.cached.last().unwrap() - 10;
    file.cached.retain(|page| *page < first_lost);
    (600..first_lost).for_each(|page| file.read(page, 1));
    let (size, windows) = (file.window.size, file.windows.len());
    (first_lost..first_lost + 1).for_each(|page| file.read(page, 1));
    let shrunk = file.windows[windows..].iter().find(|(start, _)| *start == first_lost).unwrap().1;
    assert!(shrunk <= size / 2 + 1 && shrunk > 1, "{shrunk} after {size}");
    // Each used window adds an eighth.
    let cap = file.window.cap;
    (first_lost + 1..first_lost + 1 + 20 * size).for_each(|page| file.read(page, 1));
    assert!(file.window.cap > cap * 2, "{} after {cap}", file.window.cap);
}

#[test]
fn a_failure_makes_windows_small_for_a_time() {
    let mut file = File::new(HDD);
    (0..600).for_each(|page| file.read(page, 1));
    file.window.failed();
    assert_eq!(file.window.trigger(), None);
    let at = *file.cached.last().unwrap() + 1;
    let windows = file.windows.len();
    (at..at + 4).for_each(|page| file.read(page, 1));
    assert!(file.windows[windows..].iter().all(|(_, size)| *size <= 5), "{:?}", &file.windows[windows..]);
    (at + 4..at + 2000).for_each(|page| file.read(page, 1));
    assert!(file.windows.last().unwrap().1 > 50, "{:?}", file.windows.last());
}

#[test]
fn what_a_failure_has_shrunk_below_a_call_opens_again() {
    let mut file = File::new(NVME);
    (0..20).for_each(|number| file.read(32 * number, 32));
    file.window.failed();
    let (end, windows) = (file.window.end, file.windows.len());
    (0..60).for_each(|number| file.read(end + 32 * number, 32));
    assert_eq!(file.windows.last().unwrap().1, NVME.most, "{:?}", &file.windows[windows..]);
}

#[test]
fn after_a_failure_the_first_read_is_read_exactly() {
    let mut file = File::new(NVME);
    file.window.failed();
    file.read(0, 32);
    assert_eq!(file.windows, [(0, 32)]);
    file.read(32, 32);
    assert_eq!(file.windows[1], (32, 64), "and the one that goes on from it is not");
}

#[test]
fn frames_that_are_not_there_shrink_the_window() {
    let mut file = File::new(HDD);
    (0..600).for_each(|page| file.read(page, 1));
    let (end, size) = (file.window.end, file.window.size);
    let cap = file.window.cap;
    file.window.issued(ReadaheadEnd::NoRequest(end - 5));
    assert_eq!((file.window.end, file.window.cap), (end - 5, cap), "others have the requests, for now");
    file.window.issued(ReadaheadEnd::NoFrame(end - 7));
    assert_eq!((file.window.end, file.window.cap), (end - 7, size / 2));
}

#[test]
fn what_missing_frames_have_shrunk_below_a_call_goes_on() {
    let mut file = File::new(NVME);
    file.left = 100;
    (0..20).for_each(|number| file.read(32 * number, 32));
    let end = file.window.end;
    file.window.issued(ReadaheadEnd::NoFrame(end - 1));
    assert!(file.window.cap < 32, "{}", file.window.cap);
    file.left = 1 << 40;
    let windows = file.windows.len();
    (20..80).for_each(|number| file.read(32 * number, 32));
    assert_eq!(file.windows.last().unwrap().1, NVME.most, "{:?}", &file.windows[windows..]);
}

#[test]
fn calls_that_overtake_each_other_are_one_stream() {
    let mut file = File::new(HDD);
    for group in 0..200u64 {
        [2, 0, 5, 1, 7, 3, 6, 4].into_iter().for_each(|call| file.read((group * 8 + call) * 4, 4));
    }
    let requests = file.windows.len();
    assert!(requests < 60, "{requests}: {:?}", &file.windows[..60]);
}

#[test]
fn the_first_read_of_a_file_may_be_overtaken() {
    let mut file = File::new(HDD);
    file.read(32, 16);
    file.read(0, 16);
    assert_eq!(file.windows, [(32, 16), (0, 58)]);
}

#[test]
fn streams_on_one_handle_are_told_apart_by_what_is_cached() {
    let mut file = File::new(A);
    let reads = 4000;
    for at in 0..reads {
        (0..8).for_each(|stream| file.read(1_000_000 * (stream + 1) + at, 1));
    }
    let (asked, requests) = (8 * reads, file.windows.len() as u64);
    assert!(requests < asked / 31, "{requests} requests for {asked} pages");
    assert!(file.read < asked * 11 / 10 + 8 * 2 * 288, "{} for {asked}", file.read);
}

#[test]
fn reading_backward() {
    let mut file = File::new(HDD);
    (0..20_000).rev().for_each(|page| file.read(page + 1, 1));
    assert!(file.windows.len() < 40, "{} requests", file.windows.len());
    assert_eq!(file.read, 20_001, "nothing but what was asked for, and the file's first page");
}

#[test]
fn reading_with_a_stride() {
    // A disk reads through short gaps, and leaps over long ones.
    for (window_sizes, stride, requests_max, part) in [(HDD, 16, 130, 16), (HDD, 1000, 1000, 1), (NVME, 16, 1000, 1)] {
        let mut file = File::new(window_sizes);
        (0..1000).for_each(|record| file.read(record * stride + 7, 1));
        let misses = file.triggers.len();
        assert!(misses <= requests_max / 8, "stride {stride}: {misses} times something was read");
        assert!(file.read <= 1000 * part + 2 * window_sizes.most, "stride {stride}: {} pages", file.read);
    }
}

#[test]
fn advice_is_taken() {
    let mut file = File::new(HDD);
    file.window.advise(Advice::Random);
    (0..100).for_each(|page| file.read(page, 1));
    assert_eq!(file.read, 100);
    file.window.advise(Advice::Sequential);
    file.read(5000, 1);
    assert_eq!(file.windows.last(), Some(&(5000, 1856)));
    file.window.advise(Advice::Normal);
    file.read(50_000, 1);
    assert_eq!(file.windows.last(), Some(&(50_000, 1)));
}

#[test]
fn a_read_served_in_parts_is_one_read() {
    let mut file = File::new(A);
    let left = || 1 << 30;
    let terms = AheadTerms {
        file_pages: 1 << 30,
        most: 1 << 20,
        request_pages: 256,
        window_sizes: A,
        remaining: &left,
        openings: &Openings::new(),
        pages_ahead: &PagesAhead::default,
    };
    for (pages, ahead) in [(1000..1256, 0), (1032..1256, 0), (1100..1256, 0)] {
        let got = file.window.missed(&pages, &terms, &file.cached);
        assert_eq!(got.ranges().map(|range| range.end - range.start).sum::<u64>(), ahead, "{pages:?}");
    }
}

/// Random reads of pages that are never cached: the most that chance can cost.
#[test]
fn random_reads_cost_little_more_than_was_asked() {
    let mut bits = 1u64;
    let mut random = move |below: u64| {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        (bits >> 11) % below
    };
    let left = || 1 << 30;
    for window_sizes in [A, HDD, NVME] {
        for file_pages in [2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 4096, 65_536] {
            for block in [1, 2, 4, 16, 64] {
                if file_pages < 2 * block {
                    continue;
                }
                let terms = AheadTerms {
                    file_pages,
                    most: 1 << 15,
                    request_pages: 256,
                    window_sizes,
                    remaining: &left,
                    openings: &Openings::new(),
                    pages_ahead: &PagesAhead::default,
                };
                let (mut window, nothing) = (StreamWindow::default(), BTreeSet::new());
                let (mut asked, mut read) = (0, 0);
                while asked < 100_000 * block {
                    let start = random(file_pages / block) * block;
                    let ahead = window.missed(&(start..start + block), &terms, &nothing);
                    window.issued(ReadaheadEnd::Through);
                    asked += block;
                    let beside = ahead.ranges().map(|range| range.end.min(file_pages).saturating_sub(range.start));
                    read += block + beside.sum::<u64>();
                }
                assert!(
                    read * 20 <= asked * 21,
                    "{read} pages of {asked}, reads of {block} in a file of {file_pages}, {window_sizes:?}",
                );
            }
        }
    }
}
