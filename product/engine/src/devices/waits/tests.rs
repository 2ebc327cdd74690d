use std::sync::Weak;

use super::{PayerId, WaitOwner, Waits, WaitsFor};
use crate::client::Client;
use crate::platform::Nanos;
use crate::policy::PauseCause;
use crate::wait::lock;

const PAUSE: WaitsFor = WaitsFor::Pause(PauseCause::DevicePart);

fn whose(client: Option<&Client>, payer: Option<PayerId>) -> WaitOwner<'_, ()> {
    WaitOwner { file: Weak::new(), client, payer }
}

#[test]
fn a_wait_ends_once() {
    let waits = Waits::<()>::default();
    let number = waits.begins(whose(None, None), PAUSE, Nanos(0));
    waits.ends(number, 5);
    waits.ends(number, 6);
    assert_eq!(waits.report(Nanos(9), false, |()| panic!("a file")).pause.count, 1);
}

#[test]
fn calls_of_a_client_that_wait_are_counted_until_they_do_no_more() {
    let waits = Waits::<()>::default();
    let client = Client::named("10.0.0.5").of_user(7);
    let begins = |waits_for| waits.begins(whose(Some(&client), None), waits_for, Nanos(0));
    let both = [begins(PAUSE), begins(WaitsFor::Sync)];
    assert_eq!(lock(&waits.present).clients.get(&client), Some(&2));
    both.into_iter().for_each(|number| waits.ends(number, 5));
    assert!(lock(&waits.present).clients.is_empty());
}

#[test]
fn users_of_a_client_are_one_payer_and_tasks_are_none() {
    let waits = Waits::<()>::default();
    let client = Client::named("10.0.0.5");
    let begins = |client: &Client, payer| waits.begins(whose(Some(client), Some(payer)), PAUSE, Nanos(0));
    begins(&client.of_user(1), 1);
    assert_eq!(waits.sharing(Some(&client.of_user(2)), 2), (1, 2), "one client, two payers");
    begins(&Client::task("job"), 3);
    assert_eq!(waits.sharing(Some(&Client::task("other")), 4), (2, 2), "as nobody in particular");
}

#[test]
fn payers_are_counted_by_client_and_each_once() {
    let waits = Waits::<()>::default();
    let [a, b] = ["10.0.0.1", "10.0.0.2"].map(Client::named);
    let begins = |client, payer| waits.begins(whose(client, Some(payer)), PAUSE, Nanos(0));
    let local = begins(None, 1);
    assert_eq!(waits.sharing(None, 2), (1, 0), "one client, as far as anybody knows");
    assert_eq!(waits.sharing(Some(&a), 3), (2, 1), "it would be the second");
    let twice = [begins(Some(&a), 3), begins(Some(&a), 3)];
    let third = begins(Some(&a), 4);
    waits.begins(whose(Some(&b), None), WaitsFor::Sync, Nanos(0));
    assert_eq!((waits.sharing(Some(&a), 3), waits.sharing(Some(&a), 5)), ((2, 2), (2, 3)));
    assert_eq!((waits.sharing(Some(&b), 6), waits.sharing(None, 1)), ((3, 1), (2, 1)));
    assert_eq!(waits.payers_waiting(), 3);
    waits.ends(twice[0], 1);
    assert_eq!(waits.sharing(Some(&a), 5), (2, 3), "another call of the same payer waits");
    assert_eq!(waits.payers_waiting(), 3);
    for number in [twice[1], third, local] {
        waits.ends(number, 1);
    }
    assert_eq!((waits.sharing(Some(&b), 6), waits.sharing(None, 1)), ((1, 1), (1, 0)));
    assert_eq!(waits.payers_waiting(), 0);
}
