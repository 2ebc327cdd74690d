//! Reservations against hosts that show their blocks rightly, wrongly or not at all.

use super::super::*;

const WHOLE: Range<u64> = 0..64;

/// Asks a host for all bytes until it is through; returns the parts. The first part is refused as a whole.
fn parts(
    refuses: impl Fn(&Range<u64>) -> bool,
    mut first_lacking: impl FnMut(Range<u64>, usize) -> Option<Range<u64>>,
) -> (Vec<Range<u64>>, bool) {
    let (mut asked, mut parts) = (WHOLE, Vec::new());
    loop {
        let number = parts.len();
        parts.push(asked.clone());
        assert!(parts.len() <= 64 * 64, "a reservation ends");
        let next = if number == 0 || refuses(&asked) {
            match after_refusal(&asked, &WHOLE, |range| first_lacking(range, number)) {
                AfterRefusal::Less(lacking) => Some(lacking),
                AfterRefusal::AllHaveBlocks => None,
                AfterRefusal::NoSpace => return (parts, false),
            }
        } else {
            after_success(&asked, &WHOLE, |range| first_lacking(range, number))
        };
        match next {
            Some(next) => asked = next,
            None => return (parts, true),
        }
    }
}

#[test]
fn each_hole_is_asked_for_once() {
    let holes = [4..8, 16..24, 60..64];
    let lacking = |range: Range<u64>, _| holes.iter().find(|hole| hole.start >= range.start).cloned();
    assert_eq!(parts(|_| false, lacking), (vec![WHOLE, 4..8, 16..24, 60..64], true));
    assert_eq!(parts(|asked| asked.start == 16, lacking), (vec![WHOLE, 4..8, 16..24], false), "no space for one");
}

#[test]
fn a_host_that_shows_no_blocks_is_asked_once_for_each_byte_at_most() {
    // A compressed extent has no blocks of its own, before and after a reservation.
    let compressed = |range: Range<u64>, _| (range.start < 64).then(|| range.start..(range.start + 1).min(64));
    let (asked, has_all) = parts(|_| false, compressed);
    assert!(has_all && asked.len() <= 65, "{} parts", asked.len());
    // It gives an answer about bytes that it was not asked about.
    let (asked, has_all) = parts(|_| false, |_, _| Some(8..16));
    assert_eq!((asked, has_all), (vec![WHOLE, 8..16], true));
}

#[test]
fn a_host_whose_answers_change_is_asked_a_bounded_number_of_times() {
    // Now and then a part is refused, and the answer moves by a byte each time.
    let moves = |range: Range<u64>, number: usize| {
        let end = range.start + 1 + (number as u64 * 7) % 9;
        (range.start < 64).then(|| range.start..end.min(64))
    };
    for refused in 1..9 {
        parts(|asked| asked.start % refused == 0, moves);
    }
}
