use std::sync::Mutex;
use std::time::Duration;

use super::{Plan, Subject, race};

const PLAN: Plan = Plan { rounds: 4, run: Duration::from_micros(1), threads: 2, clock: true };

#[test]
fn contenders_take_turns_and_the_first_round_is_not_counted() {
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
    let raced = race(&[subject("a"), subject("b"), subject("c")], &PLAN);
    let order = order.into_inner().unwrap();
    assert!(order.ends_with("abcabcacbcabcba"), "five rounds after the warming: {order}");
    assert!(["a", "b", "c"].iter().all(|name| raced.of(name).len() == 4 && raced.of(name)[0].beside.len() == 3));
}

#[test]
fn who_fails_is_out_and_the_others_go_on() {
    let fails = Subject::new("fails", |_| Err(std::io::Error::other("no luck")));
    let raced = race(&[fails, Subject::new("works", |_| Ok(()))], &PLAN);
    assert_eq!(raced.out().collect::<Vec<_>>(), [("fails", &"no luck".to_owned())]);
    assert_eq!(raced.of("works").len(), 4);
}
