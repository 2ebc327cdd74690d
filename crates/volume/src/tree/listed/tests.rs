use std::collections::BTreeSet;

use super::*;

fn sealed<'a>(names: impl IntoIterator<Item = &'a String>, after: u64, entries_max: usize) -> Listed {
    let mut window = Window::with_bound(after, entries_max);
    for name in names {
        window.offer(name.as_bytes(), 1);
    }
    window.seal()
}

/// Lists with pieces of `piece`, with a new window for each, until the end.
fn all(names: &BTreeSet<String>, window: usize, piece: usize) -> Vec<String> {
    let (mut cookie, mut listed) = (PARENT_COOKIE, Vec::new());
    for _ in 0..names.len() + 2 {
        let (entries, end) = sealed(names, cookie, window).take(cookie, piece);
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
        let (entries, end) = sealed(&names, cookie, 32).take(cookie, 20);
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
    // Among 200,000 names some dozens of pairs share a place.
    let names: Vec<String> = (0..200_000).map(|at| format!("n{at}")).collect();
    let mut by_place: Vec<(u64, &String)> = names.iter().map(|name| (place(name.as_bytes()), name)).collect();
    by_place.sort();
    let pair = by_place.windows(2).find(|pair| pair[0].0 == pair[1].0).expect("a pair that hashes alike");
    let pair = [pair[0].1.clone(), pair[1].1.clone()];
    let (first, _) = sealed(&pair, PARENT_COOKIE, 8).take(PARENT_COOKIE, 1);
    let (second, end) = sealed(&pair, first[0].cookie, 8).take(first[0].cookie, 1);
    assert_eq!(second[0].cookie, first[0].cookie + 1);
    assert_ne!(first[0].name, second[0].name);
    assert!(end);
    let mut listed = sealed(&pair, PARENT_COOKIE, 8);
    listed.remove(pair[0].as_bytes());
    assert_eq!(listed.take(first[0].cookie, 9).0.len(), 1, "the other keeps its cookie");
}

#[test]
fn three_names_that_hash_alike_have_the_cookies_that_they_always_had() {
    // Searched for among twelve million names. A client may go on with a cookie of a server that is long gone.
    let (place, names) = (221_740_257, ["n1963712", "n303265", "n6823465"].map(String::from));
    let mut after = PARENT_COOKIE;
    for (cookie, name) in (place..).zip(&names) {
        let (entries, end) = sealed(&names, after, 8).take(after, 1);
        assert_eq!(entries, [Entry { cookie, name: Bytes::from(name.clone()), fileid: 1 }]);
        assert_eq!(end, *name == names[2]);
        after = cookie;
    }
}

#[test]
fn a_kept_window_follows_our_own_changes() {
    let names = names(100);
    let mut listed = sealed(&names, PARENT_COOKIE, 1_000);
    assert!(listed.covers(PARENT_COOKIE) && !listed.covers(0));
    listed.insert(&Bytes::from_static(b"added"), 7);
    listed.insert(&Bytes::from_static(b"added"), 8);
    listed.remove(b"file-5");
    listed.remove(b"never there");
    let (entries, end) = listed.take(PARENT_COOKIE, 1_000);
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
    let kept = listed.len();
    assert!(kept < 1_000);
    let (entries, end) = listed.take(PARENT_COOKIE, 2_000);
    assert!(!end && entries.len() == kept);
    assert!(!listed.covers(entries.last().unwrap().cookie));
}

#[test]
fn names_that_are_not_told_do_not_end_a_listing() {
    let names = names(1_000);
    let mut window = Window::with_bound(PARENT_COOKIE, 10);
    names.iter().for_each(|name| window.offer(name.as_bytes(), 1));
    window.retain(|_| false);
    let listed = window.seal();
    let (entries, end) = listed.take(PARENT_COOKIE, 10);
    assert!(entries.is_empty() && !end);
    let from = listed.goes_on(PARENT_COOKIE).expect("more follows");
    assert!(from > PARENT_COOKIE && from < LAST_COOKIE);
    let next = sealed(&names, from, 10);
    assert_eq!(next.goes_on(from), None);
    assert!(!next.take(from, 1).0.is_empty());
    assert_eq!(sealed(&names, LAST_COOKIE, 10).goes_on(LAST_COOKIE), None, "nor do they make it endless");
}
