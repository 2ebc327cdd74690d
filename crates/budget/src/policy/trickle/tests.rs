use super::*;

#[test]
fn below_the_budget_nothing_is_saved_up() {
    let mut trickle = Trickle::default();
    assert_eq!(trickle.completed(1600, 500, 1000), 1000);
    assert_eq!(trickle.completed(0, 1000, 1000), 1000);
}

#[test]
fn a_sixteenth_of_what_completes_enters_above_it() {
    let mut trickle = Trickle::default();
    trickle.completed(0, 10_000, 1000);
    let (mut backlog, mut entered, mut done) = (10_000, 0, 0);
    while backlog > 1000 {
        backlog -= 160;
        done += 160;
        let most = trickle.completed(160, backlog, 1000);
        // Whoever waits takes all that there is.
        entered += most.saturating_sub(backlog.max(1000));
        backlog = backlog.max(most.min(backlog + 10_000));
    }
    assert!((done / 17..=done / 15).contains(&entered), "{entered} of {done}");
}

#[test]
fn what_nobody_took_is_still_there() {
    let mut trickle = Trickle::default();
    trickle.completed(0, 10_000, 1000);
    assert_eq!(trickle.completed(160, 9_840, 1000), 9_850);
    assert_eq!(trickle.completed(160, 9_680, 1000), 9_700);
    // 20 came in.
    assert_eq!(trickle.completed(160, 9_540, 1000), 9_550);
}
