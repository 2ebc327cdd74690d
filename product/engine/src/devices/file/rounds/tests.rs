use super::*;

fn begin(rounds: &mut Rounds, is_at_once: bool) -> Arc<SharedRound> {
    let (shared, part) = rounds.join(0..u64::MAX, true, Arc::default);
    assert_eq!(part, RoundPart::Starts);
    rounds.take_next().unwrap();
    rounds.set_at_once(is_at_once);
    shared
}

#[test]
fn the_next_round_waits_for_all_that_run_beside_each_other() {
    let mut rounds = Rounds::default();
    let first = begin(&mut rounds, true);
    let beside: Vec<Arc<SharedRound>> = (0..2).map(|_| Arc::default()).collect();
    for (before, shared) in beside.iter().enumerate() {
        assert!(rounds.may_begin_beside());
        assert_eq!(rounds.begin_beside(Arc::clone(shared)).len(), 1 + before, "those that it waits for");
    }
    let (next, part) = rounds.join(0..100, true, Arc::default);
    assert_eq!(part, RoundPart::Leads);
    assert!(!rounds.may_begin_beside(), "somebody waits for the next round");
    assert!(matches!(rounds.end(&beside[0]), NextRunner::Nobody));
    assert!(matches!(rounds.end(&first), NextRunner::Nobody));
    assert!(rounds.try_cover(&(5..6)), "a round beside it runs");
    let NextRunner::Caller(runner) = rounds.end(&beside[1]) else { panic!("the next round has a caller") };
    assert!(Arc::ptr_eq(&runner, &next));
    assert!(rounds.are_running() && rounds.take_next().is_some_and(|round| round.range == (0..100)));
    assert!(!rounds.may_begin_beside(), "it is no round at once");
    assert!(matches!(rounds.end(&next), NextRunner::Nobody));
    assert!(!rounds.are_running());
}

#[test]
fn nothing_begins_beside_an_ordinary_round() {
    let mut rounds = Rounds::default();
    let round = begin(&mut rounds, false);
    assert!(!rounds.may_begin_beside());
    rounds.end(&round);
    let round = begin(&mut rounds, true);
    rounds.set_at_once(false);
    assert!(!rounds.may_begin_beside(), "it went on as any other");
    rounds.end(&round);
    begin(&mut rounds, true);
    assert!(rounds.may_begin_beside());
}
