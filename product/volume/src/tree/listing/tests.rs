use std::collections::BTreeSet;

use super::*;
use crate::tree::listing::{LARGE_WINDOW_ENTRIES_MAX, PARENT_COOKIE};

fn sealed<'a>(names: impl IntoIterator<Item = &'a String>, after: u64, entries_max: usize) -> Listed {
    let mut window = Window::with_bound(after, entries_max);
    for name in names {
        window.offer(name.as_bytes(), 1);
    }
    Listed::of(window)
}

/// The next entries, and whether they are the last.
fn taken(listed: &Listed, cookie: u64, entries_max: usize) -> (Vec<ListedEntry>, bool) {
    let ListedPiece { entries, last, doubtful } = listed.take(cookie, entries_max);
    assert!(!doubtful);
    (entries, last)
}

/// Lists with pieces of `piece`, with a new window for each, until the end.
fn all(names: &BTreeSet<String>, window: usize, piece: usize) -> Vec<String> {
    let (mut cookie, mut listed) = (PARENT_COOKIE, Vec::new());
    for _ in 0..names.len() + 2 {
        let (entries, end) = taken(&sealed(names, cookie, window), cookie, piece);
        assert!(entries.iter().all(|entry| entry.cookie > cookie && entry.cookie <= LAST_COOKIE));
        cookie = entries.last().map_or(cookie, |entry| entry.cookie);
        listed.extend(entries.into_iter().map(|entry| String::from_utf8(entry.name.to_vec()).unwrap()));
        if end {
            return listed;
        }
    }
    panic!("the listing does not end");
}

fn names(count: usize) -> BTreeSet<String> {
    (0..count).map(|at| format!("file-{at}")).collect()
}

#[test]
fn every_name_once_whatever_the_window_and_the_piece() {
    for (count, window, piece) in [(0, 8, 3), (1, 8, 1), (1_000, 4, 7), (1_000, 10_000, 100), (3_000, 64, 64)] {
        let names = names(count);
        let listed = all(&names, window, piece);
        assert_eq!(listed.len(), names.len(), "{count} {window} {piece}");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), names);
    }
}

#[test]
fn names_that_stay_are_listed_once_while_others_come_and_go() {
    let mut names = names(2_000);
    let staying: BTreeSet<String> = (0..500).map(|at| format!("stays-{at}")).collect();
    names.extend(staying.iter().cloned());
    let (mut cookie, mut seen) = (PARENT_COOKIE, Vec::new());
    for round in 0.. {
        let (entries, end) = taken(&sealed(&names, cookie, 32), cookie, 20);
        cookie = entries.last().map_or(cookie, |entry| entry.cookie);
        for entry in entries {
            let name = String::from_utf8(entry.name.to_vec()).unwrap();
            if !name.starts_with("stays") {
                names.remove(&name);
            }
            seen.push(name);
        }
        names.insert(format!("new-{round}"));
        if end {
            break;
        }
        assert!(round < 10_000, "no end");
    }
    let stayed: Vec<_> = seen.iter().filter(|name| name.starts_with("stays")).cloned().collect();
    assert_eq!(stayed.len(), 500);
    assert_eq!(stayed.into_iter().collect::<BTreeSet<_>>(), staying);
    assert!(!names.iter().any(|name| name.starts_with("file")), "all deleted in one pass");
}

#[test]
fn names_that_hash_alike_are_told_apart_even_across_windows() {
    // Among 200,000 names some dozens of pairs have one position.
    let names: Vec<String> = (0..200_000).map(|at| format!("n{at}")).collect();
    let mut by_place: Vec<(u64, &String)> = names.iter().map(|name| (position(name.as_bytes()), name)).collect();
    by_place.sort();
    let pair = by_place.windows(2).find(|pair| pair[0].0 == pair[1].0).expect("a pair that hashes alike");
    let pair = [pair[0].1.clone(), pair[1].1.clone()];
    let (first, _) = taken(&sealed(&pair, PARENT_COOKIE, 8), PARENT_COOKIE, 1);
    let (second, end) = taken(&sealed(&pair, first[0].cookie, 8), first[0].cookie, 1);
    assert_eq!(second[0].cookie, first[0].cookie + 1);
    assert_ne!(first[0].name, second[0].name);
    assert!(end);
    let mut listed = sealed(&pair, PARENT_COOKIE, 8);
    listed.remove(pair[0].as_bytes());
    assert_eq!(taken(&listed, first[0].cookie, 9).0.len(), 1, "the other keeps its cookie");
}

#[test]
fn three_names_that_hash_alike_have_the_cookies_that_they_always_had() {
    // Found among twelve million names. A client may go on with a cookie of a server that is long gone.
    let (position, names) = (221_740_257, ["n1963712", "n303265", "n6823465"].map(String::from));
    let mut after = PARENT_COOKIE;
    for (cookie, name) in (position..).zip(&names) {
        let (entries, end) = taken(&sealed(&names, after, 8), after, 1);
        assert_eq!(entries, [ListedEntry { cookie, name: Bytes::from(name.clone()), fileid: 1 }]);
        assert_eq!(end, *name == names[2]);
        after = cookie;
    }
}

#[test]
fn a_kept_window_follows_our_own_changes() {
    let names = names(100);
    let mut listed = sealed(&names, PARENT_COOKIE, 1_000);
    assert!(listed.has_after(PARENT_COOKIE) && !listed.has_after(0));
    listed.insert(&Bytes::from_static(b"added"), 7);
    listed.insert(&Bytes::from_static(b"added"), 8);
    listed.remove(b"file-5");
    listed.remove(b"never there");
    let (entries, end) = taken(&listed, PARENT_COOKIE, 1_000);
    assert!(end);
    assert_eq!(entries.len(), 100);
    assert_eq!(entries.iter().find(|entry| entry.name == "added").unwrap().fileid, 8);
    assert!(!entries.iter().any(|entry| entry.name == "file-5"));
    assert!(entries.windows(2).all(|pair| pair[0].cookie < pair[1].cookie));
}

#[test]
fn a_cut_window_says_that_more_follows() {
    let names = names(1_000);
    let listed = sealed(&names, PARENT_COOKIE, 10);
    let cached = listed.len();
    assert!(cached < 1_000);
    let (entries, end) = taken(&listed, PARENT_COOKIE, 2_000);
    assert!(!end && entries.len() == cached);
    assert!(!listed.has_after(entries.last().unwrap().cookie));
}

#[test]
fn our_changes_while_a_directory_is_read_are_in_what_is_kept() {
    let names = names(100);
    let mut listing = KnownListing::default();
    listing.keep(sealed(&names, PARENT_COOKIE, 1_000));
    assert!(listing.cached_after(0).is_none(), "it was not begun");
    listing.begin();
    listing.insert(&Bytes::from_static(b"file-7"), 9);
    listing.insert(&Bytes::from_static(b"added"), 7);
    listing.insert(&Bytes::from_static(b"came and went"), 8);
    listing.remove(&Bytes::from_static(b"came and went"));
    listing.remove(&Bytes::from_static(b"file-5"));
    listing.keep(sealed(&names, PARENT_COOKIE, 1_000));
    let (entries, end) = taken(listing.cached_after(0).unwrap(), PARENT_COOKIE, 1_000);
    let told: BTreeSet<_> = entries.iter().map(|entry| String::from_utf8(entry.name.to_vec()).unwrap()).collect();
    let mut expected = names.clone();
    expected.remove("file-5");
    expected.insert("added".to_owned());
    assert!(end && told == expected && entries.len() == 100);
    assert_eq!(entries.iter().find(|entry| entry.name == "file-7").unwrap().fileid, 9);
    // After others' changes a read in progress is not cached.
    listing.begin();
    listing.forget();
    listing.keep(sealed(&names, PARENT_COOKIE, 1_000));
    assert!(listing.cached_after(0).is_none());
}

#[test]
fn changes_beside_what_was_read_are_bounded() {
    let mut listing = KnownListing::default();
    listing.begin();
    listing.keep(sealed(&names(10), PARENT_COOKIE, 1_000));
    for at in 0..CHANGES_MAX {
        listing.insert(&Bytes::from(format!("new {at}")), 1);
    }
    assert_eq!(taken(listing.cached_after(0).unwrap(), PARENT_COOKIE, usize::MAX).0.len(), 10 + CHANGES_MAX);
    listing.insert(&Bytes::from_static(b"one more"), 1);
    assert!(listing.cached_after(0).is_none(), "it is read anew");
}

#[test]
fn a_cookie_is_found_among_many_with_few_names_looked_at() {
    let names = names(300_000);
    let listed = sealed(&names, PARENT_COOKIE, LARGE_WINDOW_ENTRIES_MAX);
    assert_eq!(listed.len(), 300_000);
    let (all, end) = taken(&listed, PARENT_COOKIE, usize::MAX);
    assert!(end && all.windows(2).all(|pair| pair[0].cookie < pair[1].cookie));
    for at in [0, 1, 150_000, 299_998] {
        assert_eq!(taken(&listed, all[at].cookie, 1).0[0], all[at + 1]);
    }
}

#[test]
fn a_tree_in_the_order_of_places_may_leave_out_the_places_beyond_the_window() {
    let names = names(3_000);
    let mut placed: Vec<&String> = names.iter().collect();
    placed.sort_by_key(|name| Window::position(name.as_bytes()));
    let (mut cookie, mut offered) = (PARENT_COOKIE, 0);
    loop {
        let mut window = Window::with_bound(cookie, 64);
        let first = window.first_position();
        for name in placed.iter().skip_while(|name| Window::position(name.as_bytes()) < first) {
            if Window::position(name.as_bytes()) > window.last_position() {
                break;
            }
            window.offer(name.as_bytes(), 1);
            offered += 1;
        }
        let (some, whole) = (Listed::of(window), sealed(&names, cookie, 64));
        assert_eq!(taken(&some, cookie, 50), taken(&whole, cookie, 50));
        let (entries, end) = taken(&some, cookie, 50);
        cookie = entries.last().map_or(cookie, |entry| entry.cookie);
        if end {
            break;
        }
    }
    assert!(offered < 30_000, "{offered} of {} offers", 3_000 * 60);
}
