//! rule: readahead reads few pages for nothing, its pages stay until they are read, and a bad sector costs its
//! neighbours nothing

use std::collections::BTreeSet;

use super::*;

/// A file with these cached pages, and its state.
#[derive(Default)]
struct File {
    window: Window,
    cached: BTreeSet<u64>,
    /// Windows in the order of reading: start, size, asynchronous part; and the trigger of each.
    windows: Vec<(u64, u64, u64)>,
    triggers: Vec<u64>,
}

/// Cached pages.
struct Pages<'a>(&'a BTreeSet<u64>);

impl Cached for Pages<'_> {
    fn before(&self, page: u64, most: u64) -> u64 {
        (1..=most.min(page)).take_while(|back| self.0.contains(&(page - back))).count() as u64
    }

    fn first_absent(&self, from: u64, most: u64) -> Option<u64> {
        (from..from + most).find(|page| !self.0.contains(page))
    }
}

const LIMITS: ReadaheadLimits = ReadaheadLimits { most: 1 << 20, request_pages: 256 };

impl File {
    fn read(&mut self, start: u64, asked: u64, most: u64) {
        let end = start + asked;
        self.window.most = most;
        let mut from = start;
        while let Some(page) = (from..end).find(|page| !self.cached.contains(page)) {
            let before = self.window.clone();
            let ahead = self.window.missed(&(page..end), &LIMITS, &Pages(&self.cached));
            self.note(&before, page);
            self.cached.extend(page..end);
            self.cached.extend(ahead);
            from = page + 1;
        }
        // The kernel looks at each page of a read when it comes to that page.
        for page in start..end {
            let before = self.window.clone();
            let ahead = self.window.used_pages(&(page..end), end, &LIMITS, &Pages(&self.cached));
            self.note(&before, page);
            self.cached.extend(ahead);
        }
    }

    fn note(&mut self, before: &Window, page: u64) {
        let of = |window: &Window| (window.start, window.size, window.asynchronous);
        if of(before) != of(&self.window) {
            self.windows.push(of(&self.window));
            self.triggers.push(page);
        }
    }
}

/// Reads `asked` pages at a time, in order, until there are as many windows as expected.
fn in_order(most: u64, asked: u64, from: u64, windows: &[(u64, u64, u64)]) -> File {
    let mut file = File::default();
    for number in 0..1000 {
        if file.windows.len() >= windows.len() {
            break;
        }
        file.read(from + number * asked, asked, most);
    }
    assert_eq!(file.windows[..windows.len()], *windows, "most {most}, reads of {asked} from {from}");
    file
}

#[test]
fn reads_in_order() {
    let file = in_order(32, 1, 0, &[(0, 4, 3), (4, 8, 8), (12, 16, 16), (28, 32, 32), (60, 32, 32)]);
    assert_eq!(file.triggers, [0, 1, 4, 12, 28]);
    in_order(32, 4, 0, &[(0, 8, 4), (8, 16, 16), (24, 32, 32), (56, 32, 32)]);
    in_order(32, 32, 0, &[(0, 32, 16), (32, 32, 32), (64, 32, 32)]);
    in_order(128, 1, 0, &[(0, 4, 3), (4, 16, 16), (20, 32, 32), (52, 64, 64), (116, 128, 128)]);
    in_order(512, 1, 0, &[(0, 4, 3), (4, 16, 16), (20, 64, 64), (84, 128, 128), (212, 256, 256), (468, 512, 512)]);
    in_order(32, 4, 100, &[(104, 8, 4), (112, 16, 16), (128, 32, 32)]);
}

#[test]
fn reads_elsewhere_then_in_order() {
    let mut file = File::default();
    file.read(1000, 1, 32);
    for page in 5000..5029 {
        file.read(page, 1, 32);
    }
    assert_eq!(file.windows, [(5001, 4, 3), (5005, 8, 8), (5013, 16, 16), (5029, 32, 32)]);
}

#[test]
fn one_page_may_be_left_out() {
    for (second, windows) in [(1002, &[(1002, 4, 3)][..]), (1003, &[])] {
        let mut file = File::default();
        file.read(1000, 1, 32);
        file.read(second, 1, 32);
        assert_eq!(file.windows, windows, "{second}");
    }
}

#[test]
fn what_is_cached_before_a_miss_is_history() {
    for (cached, page, window) in [(980..1000, 1000, (1000, 21, 1)), (0..10, 10, (10, 21, 1))] {
        let mut file = File { cached: cached.collect(), ..File::default() };
        file.read(page, 1, 32);
        assert_eq!(file.windows, [window]);
    }
}

#[test]
fn evicted_pages_begin_a_small_window() {
    let mut file = File::default();
    (0..30).for_each(|page| file.read(page, 1, 32));
    file.cached.retain(|page| *page < 36);
    file.windows.clear();
    (30..48).for_each(|page| file.read(page, 1, 32));
    assert_eq!(file.windows, [(36, 4, 3), (40, 8, 8), (48, 16, 16)]);
}

#[test]
fn a_marker_without_its_state_goes_on_from_what_is_cached() {
    let mut file = File::default();
    (0..13).for_each(|page| file.read(page, 1, 32));
    // The state is another reader's now; the marker at 28 is left.
    file.read(9000, 1, 32);
    file.read(9001, 1, 32);
    file.windows.clear();
    (13..28).for_each(|page| file.read(page, 1, 32));
    assert_eq!(file.windows, []);
    file.cached.retain(|page| *page < 40);
    file.read(28, 1, 32);
    assert_eq!(file.windows, [(40, 26, 26)]);
}

#[test]
fn first_windows() {
    for (most, asked, size) in
        [(32, 1, 4), (32, 2, 4), (32, 3, 8), (32, 8, 16), (32, 9, 32), (256, 1, 4), (256, 8, 32), (256, 9, 32)]
    {
        assert_eq!(init(asked, most), size, "{asked} of {most}");
    }
    assert_eq!([32, 64, 65].map(|asked| init(asked, 256)), [64, 128, 256]);
}

#[test]
fn a_failed_read_divides_the_most_by_four() {
    let mut file = File::default();
    file.window.failed();
    (0..20).for_each(|page| file.read(page, 1, 32));
    assert!(file.windows.iter().all(|(_, size, _)| *size <= 8), "{:?}", file.windows);
}
