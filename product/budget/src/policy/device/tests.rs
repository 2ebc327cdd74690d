mod hang;
mod read_interference;
mod waiting_payers;

use super::*;
use crate::MIB;

/// A MiB takes 1,024 ns.
const PRICES: DirectionPrices = DirectionPrices { run_ns: 1, mib_ns: 1024 };
const END_NS: Cost = 1000;

fn bytes(ns: u64) -> DirectionWork {
    DirectionWork { runs: 0, bytes: ns * MIB / 1024 }
}

/// The trickle's answer for a backlog of `backlog_ns`, after `done_ns` was done.
fn completed(trickle: &mut Trickle, done_ns: u64, backlog_ns: u64) -> Cost {
    trickle.completed(bytes(done_ns), bytes(backlog_ns), &PRICES, backlog_ns, END_NS)
}

#[test]
fn below_the_budget_nothing_is_saved_up() {
    let mut trickle = Trickle::default();
    assert_eq!(completed(&mut trickle, 1600, 500), 1000);
    assert_eq!(completed(&mut trickle, 0, 1000), 1000);
}

#[test]
fn a_sixteenth_of_what_completes_enters_above_it_however_large_writes_are() {
    for write in [1, 7, 80, 240] {
        let mut trickle = Trickle { dirty: bytes(100_000), ..Trickle::default() };
        let (mut backlog, mut entered, mut done) = (100_000, 0, 0);
        for _ in 0..400 {
            backlog -= 160;
            done += 160;
            let most = completed(&mut trickle, 160, backlog);
            // A writer always waits, and is admitted whole if anything remains.
            while backlog < most {
                backlog += write;
                entered += write;
            }
        }
        assert!((done / 16..=done / 16 + write).contains(&entered), "{entered} of {done} in writes of {write}");
    }
}

#[test]
fn what_nobody_took_is_still_there() {
    let mut trickle = Trickle { dirty: bytes(10_000), ..Trickle::default() };
    assert_eq!(completed(&mut trickle, 160, 9_840), 9_850);
    assert_eq!(completed(&mut trickle, 160, 9_680), 9_700);
    // 20 came in.
    assert_eq!(completed(&mut trickle, 160, 9_540), 9_550);
}

#[test]
fn new_prices_are_no_entrants() {
    let mut trickle = Trickle { dirty: bytes(10_000), ..Trickle::default() };
    assert_eq!(completed(&mut trickle, 160, 9_840), 9_850);
    let dearer = DirectionPrices { mib_ns: 2048, ..PRICES };
    assert_eq!(trickle.completed(bytes(160), bytes(9_680), &dearer, 2 * 9_680, END_NS), 2 * 9_680 + 10 + 20);
}

#[test]
fn nobody_is_kept_out_for_longer_than_four_budgets_of_work() {
    let mut trickle = Trickle { dirty: bytes(10_000), ..Trickle::default() };
    // All of this was charged without asking.
    completed(&mut trickle, 0, 100_000);
    let (mut done, mut backlog) = (0, 100_000);
    loop {
        (done, backlog) = (done + 160, backlog - 160);
        if completed(&mut trickle, 160, backlog) > backlog {
            break;
        }
    }
    assert!((4 * END_NS..=4 * END_NS + 320).contains(&done), "{done} ns of work");
}
