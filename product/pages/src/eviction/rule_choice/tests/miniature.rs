use super::super::*;

/// Reads pages in order, and returns how many the miniature did not hold.
fn misses(miniature: &mut Miniature, reads: impl IntoIterator<Item = u16>) -> usize {
    let missed = reads.into_iter().filter(|page| {
        let holds = miniature.has_page(*page);
        if holds {
            miniature.touch(*page)
        } else {
            miniature.come(*page, false)
        }
        !holds
    });
    missed.count()
}

#[test]
fn it_holds_as_many_pages_as_it_has_frames() {
    for rule in RULES {
        for frames in [1, 2, 8, 100] {
            let mut miniature = Miniature::new(rule, frames, 1000);
            misses(&mut miniature, (0..5000_u32).map(|at| (at * 7919 % 1000) as u16));
            let held = (0..1000).filter(|page| miniature.has_page(*page)).count();
            assert_eq!(held, frames as usize);
        }
    }
}

#[test]
fn a_loop_a_little_larger_than_the_cache_is_kept_by_small_queues() {
    let reads = || (0..20).flat_map(|_| 0..110);
    let of = |rule| misses(&mut Miniature::new(rule, 100, 200), reads());
    let (small, growing) = (of(Rule::Small), of(Rule::Growing));
    assert!(small < 800 && small < growing, "{small}, {growing} of 2200");
}

#[test]
fn what_came_first_is_retained_under_keep_alone() {
    let reads = || (0..4).flat_map(|_| 0..110);
    let of = |rule| misses(&mut Miniature::new(rule, 100, 200), reads());
    // All at first; then those that do not fit, as many as there are frames for new pages, and some beside these.
    let (keep, small) = (of(Rule::Keep), of(Rule::Small));
    assert!(keep <= 110 + 3 * 20 && small > 110 + 3 * 40, "{keep}, {small}");
}

#[test]
fn without_small_queues_the_least_recent_page_goes() {
    let mut miniature = Miniature::new(Rule::Recent, 100, 1000);
    misses(&mut miniature, 0..100);
    misses(&mut miniature, [0, 5]);
    misses(&mut miniature, 100..102);
    assert!(miniature.has_page(0) && !miniature.has_page(1) && !miniature.has_page(2) && miniature.has_page(3));
    misses(&mut miniature, (0..3).flat_map(|_| [5; 3]));
    misses(&mut miniature, 102..400);
    assert!(!miniature.has_page(5), "all its hits were taken at once");
}

#[test]
fn queues_grow_while_pages_come_back_that_larger_ones_had_kept() {
    let mut miniature = Miniature::new(Rule::Growing, 100, 4000);
    assert_eq!(miniature.small(), 10);
    // Each page comes a second time after 30 others, and never again.
    misses(&mut miniature, (0..3000).flat_map(|page: u16| [page + 30, page]));
    assert!(miniature.small() >= 25, "{}", miniature.small());
    let mut fixed = Miniature::new(Rule::Small, 100, 4000);
    misses(&mut fixed, (0..3000).flat_map(|page: u16| [page + 30, page]));
    assert_eq!(fixed.small(), 2);
}

#[test]
fn a_page_read_ahead_is_spared_until_it_is_used() {
    let mut miniature = Miniature::new(Rule::Small, 100, 1000);
    miniature.come(0, true);
    misses(&mut miniature, 1..150);
    assert!(miniature.has_page(0), "fewer than a quarter are unread");
    miniature.touch(0);
    misses(&mut miniature, 200..400);
    assert!(!miniature.has_page(0), "its one use was the one it came for");
}

#[test]
fn a_page_that_went_is_known_for_a_while() {
    let mut miniature = Miniature::new(Rule::Small, 8, 1000);
    misses(&mut miniature, 0..9);
    assert!(!miniature.has_page(0) && miniature.is_known(0));
    misses(&mut miniature, 9..100);
    assert!(!miniature.is_known(0));
}
