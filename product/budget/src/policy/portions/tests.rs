//! rule: no step holds a lock for longer because there are more pages or files

use super::*;
use crate::prices::PAGE_BYTES;

const SECOND: u64 = 1000 * MILLISECOND;
const PAGES: u64 = 8 * MIB / PAGE_BYTES;
const BAND: Band = Band { end_ns: SECOND };
/// A portion costs 90 ms on this disk.
const DISK: DirectionPrices = DirectionPrices { run_ns: 10 * MILLISECOND, mib_ns: 10 * MILLISECOND };
const REQUEST: PortionRequest<'_> =
    PortionRequest { band: BAND, backlog_ns: 0, prices: &DISK, bytes: 8 * MIB, page: 0, is_admitted: false };
const ADMITTED: PortionRequest<'_> = PortionRequest { is_admitted: true, ..REQUEST };

fn knobs(portion_bytes: u64) -> Knobs {
    Knobs {
        budget_ns: SECOND,
        in_flight_ns: 100 * MILLISECOND,
        portion_bytes,
        background_ns: None,
        background_bytes: None,
        expire_ns: u64::MAX,
        idle: true,
    }
}

#[test]
fn there_are_portions_where_the_budget_would_be_stretched() {
    let terms = |portion_bytes, prices, stretched, payers| {
        super::terms(&knobs(portion_bytes), &prices, Band { end_ns: stretched }, payers)
    };
    assert_eq!(terms(8 * MIB, DISK, SECOND, 100), None, "runs are long enough");
    assert_eq!(terms(0, DISK, 5 * SECOND, 100), None, "not wanted");
    // Eight portions take 0.7 s.
    assert_eq!(terms(8 * MIB, DISK, 5 * SECOND, 100), Some((BAND, 8 * MIB)));
    // Each takes 1.1 s: one portion for each of three payers and one more, or as many as the band may hold.
    let stick = DirectionPrices { run_ns: 300 * MILLISECOND, mib_ns: 100 * MILLISECOND };
    assert_eq!(terms(8 * MIB, stick, 5 * SECOND, 3), Some((Band { end_ns: 4400 * MILLISECOND }, 8 * MIB)));
    assert_eq!(terms(8 * MIB, stick, 5 * SECOND, 100), Some((Band { end_ns: 5 * SECOND }, 8 * MIB)));
    // No more than a quarter of the band.
    let slow = DirectionPrices { mib_ns: SECOND, ..stick };
    assert_eq!(terms(8 * MIB, slow, 5 * SECOND, 100), Some((Band { end_ns: 5 * SECOND }, MIB)));
}

fn takes(payer: &mut PayerPortion, portions: &mut Portions, now_ns: u64, backlog_ns: Cost, at: u64) -> Option<u64> {
    let with_given_ns = backlog_ns + portions.remaining_ns(now_ns);
    payer.takes(portions, now_ns, &PortionRequest { backlog_ns: with_given_ns, page: at, ..REQUEST })
}

#[test]
fn portions_end_at_multiples_of_their_size() {
    let mut portions = Portions::default();
    for (at, pages) in [(0, PAGES), (PAGES * 7, PAGES), (PAGES + 500, PAGES - 500), (PAGES - 1, 1)] {
        assert_eq!(takes(&mut PayerPortion::default(), &mut portions, 0, 0, at), Some(pages), "at {at}");
    }
}

#[test]
fn what_is_given_out_counts_and_never_passes_the_band() {
    let (mut portions, mut taken) = (Portions::default(), 0);
    while takes(&mut PayerPortion::default(), &mut portions, 0, 0, 0).is_some() {
        taken += 1;
    }
    // 90 ms each in a second.
    assert_eq!((taken, portions.remaining_ns(0)), (11, 990 * MILLISECOND));
    assert_eq!(takes(&mut PayerPortion::default(), &mut portions, 0, 200 * MILLISECOND, 0), None);
    assert_eq!(portions.remaining_ns(LASTS_NS), 0, "what nobody uses is given back");
}

#[test]
fn a_portion_ends_with_its_pages_or_its_cost() {
    let (mut portions, mut payer) = (Portions::default(), PayerPortion::default());
    takes(&mut payer, &mut portions, 0, 0, 0);
    payer.dirtied(&mut portions, PAGES / 2, DISK.cost_ns(1, 4 * MIB));
    assert_eq!((payer.remaining_pages(), portions.remaining_ns(0)), (Some(PAGES / 2), 40 * MILLISECOND));
    assert_eq!(payer.own_ns(&portions), 40 * MILLISECOND);
    payer.dirtied(&mut portions, PAGES / 2, DISK.cost_ns(0, 4 * MIB));
    assert_eq!((payer.remaining_pages(), portions.remaining_ns(0)), (None, 0));
    // Scattered pages: twice what a portion costs.
    takes(&mut payer, &mut portions, 0, 0, 0);
    let runs = (1..).find(|_| {
        payer.dirtied(&mut portions, 1, DISK.cost_ns(1, PAGE_BYTES));
        payer.remaining_pages().is_none()
    });
    assert_eq!(runs, Some(18));
}

#[test]
fn who_does_not_use_a_portion_gets_smaller_ones_until_it_does() {
    let (mut portions, mut payer) = (Portions::default(), PayerPortion::default());
    let mut now_ns = 0;
    for halvings in 0..3 {
        assert_eq!(takes(&mut payer, &mut portions, now_ns, 0, 0), Some(PAGES >> halvings));
        now_ns += LASTS_NS;
        portions.remaining_ns(now_ns);
        payer.dirtied(&mut portions, 1, DISK.cost_ns(1, PAGE_BYTES));
    }
    let pages = takes(&mut payer, &mut portions, now_ns, 0, 0).unwrap();
    payer.dirtied(&mut portions, pages, DISK.cost_ns(1, pages * PAGE_BYTES));
    assert_eq!(takes(&mut payer, &mut portions, now_ns, 0, 0), Some(PAGES));
}

#[test]
fn one_at_a_time_is_let_in_from_the_queue_and_gets_its_portion() {
    let (mut portions, mut payer) = (Portions::default(), PayerPortion::default());
    let portion_ns = DISK.cost_ns(1, 8 * MIB);
    let full_ns = BAND.end_ns - portion_ns + 1;
    assert!(!portions.try_admit_one(0, BAND, full_ns, portion_ns), "no room");
    assert!(portions.try_admit_one(0, BAND, full_ns - 1, portion_ns));
    assert!(!portions.try_admit_one(1, BAND, full_ns - 1, portion_ns), "it has not come yet");
    payer.queues();
    assert!(payer.take_queued(&mut portions) && !payer.take_queued(&mut portions));
    assert_eq!(payer.takes(&mut portions, 1, &PortionRequest { backlog_ns: full_ns + 1, ..ADMITTED }), Some(PAGES));
    assert!(!portions.try_admit_one(1, BAND, full_ns - 1, portion_ns), "it counts");
    assert!(portions.try_admit_one(2, BAND, BAND.free_ns(), portion_ns), "an idle device waits for nobody");
}

#[test]
fn a_decision_looks_at_few_portions_however_many_are_open() {
    for open in [100, 10_000] {
        let (mut portions, mut looks) = (Portions::default(), 0);
        let mut payers: Vec<PayerPortion> = (0..open).map(|_| PayerPortion::default()).collect();
        for (at, payer) in payers.iter_mut().enumerate() {
            payer.takes(&mut portions, at as u64, &ADMITTED);
        }
        for payer in &mut payers {
            payer.dirtied(&mut portions, 1, MILLISECOND);
            looks += portions.expire(open);
        }
        assert_eq!(portions.remaining_ns(open), open * 89 * MILLISECOND);
        assert_eq!(looks as u64, open, "one look for each decision");
        // All portions end at nearly the same time: each is dropped once.
        looks = (0..open).map(|at| portions.expire(LASTS_NS + at)).sum();
        assert!(looks as u64 <= 2 * open, "{looks} looks for {open} portions");
        assert_eq!(portions.remaining_ns(LASTS_NS + open), 0);
    }
}

/// The sum is stored beside the portions: both must agree after any history.
#[test]
fn the_sum_agrees_with_the_portions() {
    let (mut portions, mut payers) = (Portions::default(), vec![PayerPortion::default(); 7]);
    let mut number = 1_u64;
    for step in 0..5_000 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (payer, kind) = (&mut payers[(number >> 33) as usize % 7], (number >> 40) % 4);
        let (now_ns, cost_ns) = (step * 20 * MILLISECOND, (number >> 45) % 100 * MILLISECOND);
        match kind {
            0 => drop(payer.takes(&mut portions, now_ns, &PortionRequest { page: number >> 50, ..ADMITTED })),
            1 | 2 => payer.dirtied(&mut portions, (number >> 50) % PAGES, cost_ns),
            _ => payer.queues(),
        }
        let sum: Cost = portions.open.values().map(|open| open.remaining_ns).sum();
        assert_eq!(portions.remaining_ns, sum, "after {step} steps");
        assert!(payer.own_ns(&portions) <= portions.remaining_ns(now_ns), "after {step} steps");
    }
}
