use std::sync::Arc;

use afflux_device::client::Client;
use afflux_device::platform::Nanos;
use afflux_device::policy::PauseCause;

use super::{DeviceWaits, PauseStatus, PayerId, Wait, WaitId, Waits, WaitsFor};
use crate::devices::delays::{Delay, WaitAccount};

const PAUSE: WaitsFor = WaitsFor::Pause(PauseCause::DevicePart);

fn begins(waits: &Waits, client: Option<&Client>, payer: Option<PayerId>, waits_for: WaitsFor) -> WaitId {
    let (file, client) = (0, client.cloned());
    waits.begins(Wait { file, client, payer, waits_for, since: Nanos(0), asked_ns: 4 })
}

fn told(waits: &Waits) -> DeviceWaits {
    waits.report(Nanos(9), false, |_| None::<Arc<()>>, |()| panic!("a file"))
}

#[test]
fn a_wait_ends_once() {
    let waits = Waits::default();
    let number = begins(&waits, None, None, PAUSE);
    waits.ends(number, 5);
    waits.ends(number, 6);
    assert_eq!(told(&waits).times.pause.count, 1);
}

#[test]
fn pauses_are_told_by_cause_while_they_last_and_after() {
    let waits = Waits::default();
    assert!(waits.pauses().is_empty());
    let pauses = [PAUSE, PAUSE, WaitsFor::Pause(PauseCause::MemoryGuard), WaitsFor::Sync];
    let [first, second, _, sync] = pauses.map(|waits_for| begins(&waits, None, None, waits_for));
    for (number, ns) in [(first, 5), (second, 7), (sync, 100)] {
        waits.ends(number, ns);
    }
    let of = |cause| PauseStatus { cause, waiting: 0, count: 2, ns: 12, longest_ns: 7, late_ns_max: 3 };
    let waiting = PauseStatus { waiting: 1, ..PauseStatus::none(PauseCause::MemoryGuard) };
    assert_eq!(waits.pauses(), [of(PauseCause::DevicePart), waiting]);
    assert_eq!((told(&waits).times.pause.count, told(&waits).times.pause.ns), (2, 12), "a sync is no pause");
}

#[test]
fn calls_of_a_client_that_wait_are_counted_until_they_do_no_more() {
    let waits = Waits::default();
    let client = Client::named("10.0.0.5").of_user(7);
    let mut waited = [0; Delay::ALL.len()];
    waited[Delay::Sync as usize] = 1;
    waits.call_ended(WaitAccount::Client(&client), &waited);
    let waiting = || told(&waits).delays.accounts[0].waiting;
    let both = [PAUSE, WaitsFor::Sync].map(|waits_for| begins(&waits, Some(&client), None, waits_for));
    assert_eq!(waiting(), 2);
    both.into_iter().for_each(|number| waits.ends(number, 5));
    assert_eq!(waiting(), 0);
}

#[test]
fn users_of_a_client_are_one_payer_and_tasks_are_none() {
    let waits = Waits::default();
    let client = Client::named("10.0.0.5");
    let begins = |client: &Client, payer| begins(&waits, Some(client), Some(payer), PAUSE);
    begins(&client.of_user(1), 1);
    assert_eq!(waits.sharing(Some(&client.of_user(2)), 2), (1, 2), "one client, two payers");
    begins(&Client::task("job"), 3);
    assert_eq!(waits.sharing(Some(&Client::task("other")), 4), (2, 2), "as nobody in particular");
}

#[test]
fn payers_are_counted_by_client_and_each_once() {
    let waits = Waits::default();
    let [a, b] = ["10.0.0.1", "10.0.0.2"].map(Client::named);
    let sync = begins(&waits, Some(&b), None, WaitsFor::Sync);
    let begins = |client, payer| begins(&waits, client, Some(payer), PAUSE);
    let local = begins(None, 1);
    assert_eq!(waits.sharing(None, 2), (1, 0), "one client, as far as anybody knows");
    assert_eq!(waits.sharing(Some(&a), 3), (2, 1), "it would be the second");
    let twice = [begins(Some(&a), 3), begins(Some(&a), 3)];
    let third = begins(Some(&a), 4);
    assert_eq!((waits.sharing(Some(&a), 3), waits.sharing(Some(&a), 5)), ((2, 2), (2, 3)));
    assert_eq!((waits.sharing(Some(&b), 6), waits.sharing(None, 1)), ((3, 1), (2, 1)));
    assert_eq!(waits.payers_waiting(), 3);
    waits.ends(twice[0], 1);
    assert_eq!(waits.sharing(Some(&a), 5), (2, 3), "another call of the same payer waits");
    assert_eq!(waits.payers_waiting(), 3);
    for number in [twice[1], third, local, sync] {
        waits.ends(number, 1);
    }
    assert_eq!((waits.sharing(Some(&b), 6), waits.sharing(None, 1)), ((1, 1), (1, 0)));
    assert_eq!(waits.payers_waiting(), 0);
}
