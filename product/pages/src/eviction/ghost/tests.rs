use super::*;

fn key(page: u64) -> PageKey {
    PageKey { file: 7, page }
}

#[test]
fn it_takes_two_bytes_for_each_frame_of_the_cache() {
    for frames in [8_u64, 4096, 262_144] {
        let bytes = Ghost::new(frames / 2).bytes();
        assert!(bytes <= 2 * frames + 64, "{bytes} bytes for {frames} frames");
    }
}

#[test]
fn a_page_is_remembered_once() {
    let ghost = Ghost::new(64);
    assert!(!ghost.remove(key(1)));
    ghost.note(&[key(1)]);
    assert!(!ghost.remove(PageKey { file: 8, page: 1 }), "the same page of another file");
    assert!(ghost.remove(key(1)));
    assert!(!ghost.remove(key(1)));
}

/// The part of the pages evicted so many pages ago that is remembered.
fn remembered(entries: u64, ago: std::ops::Range<u64>) -> f64 {
    let ghost = Ghost::new(entries);
    let noted = 20 * entries;
    (0..noted).for_each(|page| ghost.note(&[key(page)]));
    let count = ago.end - ago.start;
    ago.filter(|ago| ghost.remove(key(noted - 1 - ago))).count() as f64 / count as f64
}

#[test]
fn about_as_many_pages_are_remembered_as_there_are_entries() {
    for entries in [2048, 65_536] {
        // An exact list of so many entries has 1 and 0; unevenly filled buckets forget some entries earlier.
        let (half, last, gone) = (
            remembered(entries, 0..entries / 2),
            remembered(entries, entries / 2..entries),
            remembered(entries, entries * 5 / 4..entries * 3),
        );
        assert!(half > 0.98 && last > 0.75 && gone < 0.01, "{entries} entries: {half} {last} {gone}");
    }
}

#[test]
fn a_small_one_forgets_in_proportion() {
    let ghost = Ghost::new(4);
    ghost.note(&[key(0)]);
    (1..5).for_each(|page| ghost.note(&[key(page)]));
    assert!(!ghost.remove(key(0)), "five pages ago, of four entries");
    assert!(ghost.remove(key(1)));
}

#[test]
fn an_entry_stays_forgotten_when_epochs_begin_anew() {
    let ghost = Ghost::new(4);
    ghost.note(&[key(0)]);
    // Other pages fill the entry's bucket long before its epoch's number comes again.
    (1..65_537).for_each(|page| ghost.note(&[key(page)]));
    assert!(!ghost.remove(key(0)));
}
