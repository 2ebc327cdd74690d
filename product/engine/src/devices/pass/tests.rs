use std::collections::BTreeMap;

use super::*;

/// Goes on from each position, and finds a run there. Returns the beginnings of the passes that ended.
fn walk(pass: &mut Pass, now: u64, file_end: u64, runs: &[(u64, u64, u64)]) -> Vec<Nanos> {
    let mut ended = Vec::new();
    for (at, first, next) in runs {
        assert_eq!(pass.go_on(Nanos(now), file_end, true), *at);
        ended.extend(pass.went(*first, *next));
    }
    ended
}

#[test]
fn a_pass_ends_where_it_began() {
    let mut pass = Pass::default();
    assert_eq!(walk(&mut pass, 10, 100, &[(0, 3, 50), (50, 60, 100)]), [Nanos(10)], "from the start to the end");
    // The next pass begins in the middle, and ends with the run that crosses its beginning.
    assert_eq!(walk(&mut pass, 30, 120, &[(100, 105, 106), (106, 115, 120), (0, 0, 4)]), []);
    assert_eq!(walk(&mut pass, 40, 120, &[(4, 90, 105)]), [Nanos(30)]);
    // If a pass finds nothing before the file's end, its claim has gone back by itself.
    assert_eq!(walk(&mut pass, 50, 120, &[(105, 2, 3), (3, 105, 106)]), [Nanos(50)]);
    assert_eq!(walk(&mut pass, 60, 120, &[(106, 107, 108), (108, 2, 3), (3, 1, 2)]), [Nanos(60)]);
    pass.go_on(Nanos(70), 900, true);
    assert_eq!(pass.found_nothing(), Some(Nanos(70)));
    assert_eq!(pass.found_nothing(), None);
}

#[test]
fn a_stream_is_followed_until_what_is_behind_is_old() {
    let mut pass = Pass { at: 112, ..Pass::default() };
    assert_eq!(walk(&mut pass, 50, 120, &[(112, 112, 119), (119, 119, 130)]), []);
    for at in 0..10 {
        assert_eq!(pass.go_on(Nanos(60), 900, false), 130 + at);
        assert_eq!(pass.went(130 + at, 131 + at), None);
    }
    assert_eq!(walk(&mut pass, 70, 900, &[(0, 0, 1), (1, 140, 150)]), [Nanos(50)]);
}

/// A model of a file: pages, and when they became dirty.
#[test]
fn after_a_pass_nothing_is_older_than_it() {
    let mut random = 7_u64;
    let mut below = move |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    for _ in 0..200 {
        let (mut pass, mut dirty, mut size) = (Pass::default(), BTreeMap::new(), 20);
        let (appended, rewritten) = (below(4), below(4));
        let mut passes = 0;
        for now in 0..2_000 {
            for _ in 0..appended {
                dirty.insert(size, Nanos(now));
                size += 1;
            }
            for _ in 0..rewritten {
                dirty.entry(below(20)).or_insert(Nanos(now));
            }
            let at = pass.go_on(Nanos(now), size, true);
            let Some(first) = dirty.range(at..).chain(dirty.range(..at)).next().map(|(page, _)| *page) else {
                passes += u32::from(pass.found_nothing().is_some());
                continue;
            };
            let mut next = first;
            while next - first < 4 && dirty.remove(&next).is_some() {
                next += 1;
            }
            if let Some(began) = pass.went(first, next) {
                passes += 1;
                let oldest = dirty.values().min().copied().unwrap_or(Nanos(now));
                assert!(oldest >= began, "{oldest:?} is older than the pass of {began:?}");
            }
        }
        assert!(passes > 20, "{passes} passes");
    }
}
