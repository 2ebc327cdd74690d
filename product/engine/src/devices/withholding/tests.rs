mod ranges;

use super::*;

/// Numbers that look random, below `below`.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[test]
fn questions_about_ranges_have_the_answers_of_a_plain_list() {
    for seed in 0..40 {
        let mut number = numbers(seed);
        let (mut coverage, mut spans, mut list) = (Coverage::default(), Spans::default(), Vec::new());
        for step in 0..300 {
            if number(3) == 0 && !list.is_empty() {
                let (pages, known) = list.swap_remove(number(list.len() as u64) as usize);
                coverage.remove(&pages);
                spans.remove(&pages, known);
            } else {
                let start = number(100);
                let pages = start..start + 1 + number([1, 4, 100][step as usize % 3]);
                coverage.add(&pages);
                spans.add(&pages, step);
                list.push((pages, step));
            }
            let covers = |page: u64| list.iter().any(|(pages, _): &(Range<u64>, u64)| pages.contains(&page));
            for page in 0..220 {
                assert_eq!(coverage.has_page(page), covers(page), "page {page}, seed {seed}, step {step}");
                assert_eq!(coverage.next_covered(page), (page..220).find(|page| covers(*page)));
            }
            let start = number(210);
            let asked = start..start + number(20);
            let mut found: Vec<u64> = spans.overlapping(&asked).collect();
            let overlaps = list.iter().filter(|(pages, _)| pages.start < asked.end && asked.start < pages.end);
            let mut expected: Vec<u64> = overlaps.map(|(_, number)| *number).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{asked:?}, seed {seed}, step {step}");
        }
        for (pages, number) in &list {
            coverage.remove(pages);
            spans.remove(pages, *number);
        }
        assert!(coverage.counts.is_empty() && spans.ends.is_empty());
    }
}

#[test]
fn a_range_to_the_last_page_is_a_range() {
    let (mut coverage, mut spans) = (Coverage::default(), Spans::default());
    let pages = 0..u64::MAX;
    coverage.add(&pages);
    spans.add(&pages, 1);
    assert!(coverage.has_page(0) && coverage.has_page(u64::MAX - 1) && !coverage.has_page(u64::MAX));
    assert_eq!(spans.overlapping(&(u64::MAX - 1..u64::MAX)).collect::<Vec<_>>(), [1]);
}
