use std::sync::Mutex;
use std::time::Duration;

use super::{Plan, Subject, race};

const PLAN: Plan = Plan { rounds: 4, run: Duration::from_micros(1), threads: 2, clock: true };

#[test]
fn a_round_begins_with_another_contender_than_the_round_before_and_the_first_is_not_counted() {
    let order = Mutex::new(String::new());
    let subject = |name: &'static str| {
        let order = &order;
        Subject::new(name, |_| Ok(())).after(
            move || {
                order.lock().unwrap().push_str(name);
                Ok(())
            },
            1,
        )
    };
    let outcomes = race(&[subject("a"), subject("b"), subject("c")], &PLAN);
    let order = order.into_inner().unwrap();
    assert!(order.ends_with("abcbcacababcbca"), "five rounds after the warming: {order}");
    assert!(outcomes.iter().all(|outcome| outcome.rounds.as_ref().unwrap().len() == 4));
}

#[test]
fn who_fails_is_out_and_the_others_go_on() {
    let fails = Subject::new("fails", |_| Err(std::io::Error::other("no luck")));
    let outcomes = race(&[fails, Subject::new("works", |_| Ok(()))], &PLAN);
    assert_eq!(outcomes[0].rounds.as_ref().unwrap_err(), "no luck");
    assert_eq!(outcomes[1].rounds.as_ref().unwrap().len(), 4);
}
