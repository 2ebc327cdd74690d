use afflux_workloads::touches::{GENERATORS, Sizes};

use super::*;

fn reads(pages: &[u32]) -> Vec<Touch> {
    pages.iter().map(|page| Touch { page: *page, write: false, ahead: 0 }).collect()
}

/// Whether each touch hits.
fn hits(cache: &mut dyn Cache, pages: &[u32]) -> Vec<bool> {
    pages
        .iter()
        .map(|page| {
            let hit = cache.touch(*page);
            if !hit {
                cache.insert(*page, false);
            }
            hit
        })
        .collect()
}

#[test]
fn fifo_evicts_what_came_first_and_lru_what_was_used_longest_ago() {
    let pages = [1, 2, 3, 1, 4, 1, 2];
    assert_eq!(hits(&mut Queue::fifo(3, 10), &pages), [false, false, false, true, false, false, false]);
    assert_eq!(hits(&mut Queue::lru(3, 10), &pages), [false, false, false, true, false, true, false]);
}

#[test]
fn belady_keeps_what_is_used_next() {
    let pages = [1, 2, 3, 4, 1, 2, 4, 3];
    let mut cache = Belady::new(3, 10, &reads(&pages));
    assert_eq!(hits(&mut cache, &pages), [false, false, false, false, true, true, true, false]);
}

#[test]
fn arc_keeps_pages_used_again_from_a_scan_and_learns_from_its_ghosts() {
    let mut cache = Arc::new(4, 100);
    hits(&mut cache, &[1, 2, 1, 2]);
    hits(&mut cache, &(10..50).collect::<Vec<_>>());
    assert!(cache.holds(1) && cache.holds(2));
    // Page 47 left the list of pages used once not long ago. It comes back as a page used again, and the target of that
    // list grows.
    assert_eq!(hits(&mut cache, &[47]), [false]);
    assert!(cache.holds(47));
    hits(&mut cache, &(60..80).collect::<Vec<_>>());
    assert!(cache.holds(47));
}

#[test]
fn s3_fifo_moves_pages_used_twice_again_to_main_and_remembers_the_others() {
    // With 40 frames, the small queue has 4.
    let mut cache = S3Fifo::new(40, 100);
    hits(&mut cache, &(0..40).collect::<Vec<_>>());
    hits(&mut cache, &[0, 1, 1]);
    hits(&mut cache, &[40, 41]);
    assert_eq!([0, 1, 2, 3].map(|page| cache.holds(page)), [false, true, false, true]);
    // Page 0 comes back to main: the small queue loses its next pages first.
    hits(&mut cache, &[0]);
    hits(&mut cache, &(50..85).collect::<Vec<_>>());
    assert_eq!([0, 1, 38, 39].map(|page| cache.holds(page)), [true, true, false, true]);
}

#[test]
fn s3_fifo_in_main_takes_a_use_a_round() {
    let mut cache = S3Fifo::new(10, 100);
    hits(&mut cache, &[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9]);
    // All but the last move to main without their uses, and the first of them goes. Page 1 is used again. Page 9 comes
    // back to main, so that the small queue is within its size.
    hits(&mut cache, &[10, 1, 11, 12, 9, 13]);
    assert_eq!([0, 1, 2, 9].map(|page| cache.holds(page)), [false, true, false, true]);
}

#[test]
fn sieve_passes_over_pages_used_again_and_its_hand_goes_on_from_where_it_was() {
    let mut cache = Sieve::new(6, 100);
    hits(&mut cache, &[0, 1, 2, 3, 4, 5, 0, 2]);
    hits(&mut cache, &[10, 11]);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|page| cache.holds(page)), [true, false, true, false, true, true]);
    // Unlike with second chance, a page that was passed over comes again only after the hand was at the head.
    hits(&mut cache, &[12, 13]);
    assert_eq!([0, 2, 4, 5, 10, 11].map(|page| cache.holds(page)), [true, true, false, false, true, true]);
}

#[test]
fn nobody_has_more_pages_than_frames_or_more_hits_than_belady() {
    let sizes = Sizes { pages: 1024, frames: 64, touches: 8000 };
    for generator in GENERATORS {
        let sequence = generator.sequence(sizes, 3);
        let (pages, warm) = (sequence.pages() as usize, sequence.touches.len() / 4);
        let mut caches: Vec<(&str, Box<dyn Cache>)> = vec![
            ("fifo", Box::new(Queue::fifo(64, pages))),
            ("lru", Box::new(Queue::lru(64, pages))),
            ("arc", Box::new(Arc::new(64, pages))),
            ("s3-fifo", Box::new(S3Fifo::new(64, pages))),
            ("sieve", Box::new(Sieve::new(64, pages))),
        ];
        let most = run(&mut Belady::new(64, pages, &sequence.touches), &sequence.touches, warm).hits;
        for (name, cache) in &mut caches {
            let found = run(&mut **cache, &sequence.touches, warm).hits;
            let held = (0..sequence.pages()).filter(|page| cache.holds(*page)).count();
            // A page read ahead may push out one that would have been hit.
            let bound = if generator.name.ends_with("streams") { most + most / 50 } else { most };
            assert!(held <= 64 && found <= bound, "{name}, {}: {held} held, {found} of {most}", generator.name);
        }
    }
}
