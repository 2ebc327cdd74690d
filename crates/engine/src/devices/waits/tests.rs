use std::sync::Weak;

use super::{CLIENTS_MAX, ClientWaits, PayerId, Waits, WaitsFor, Whose};
use crate::client::Client;
use crate::platform::Nanos;
use crate::policy::PauseCause;

const PAUSE: WaitsFor = WaitsFor::Pause(PauseCause::DevicePart);

fn whose(client: Option<&Client>, payer: Option<PayerId>) -> Whose<'_> {
    Whose { file: Weak::new(), client, payer }
}

fn wait(waits: &Waits, client: &str, waits_for: WaitsFor, now: u64, ns: u64) {
    let number = waits.begins(whose(Some(&Client::named(client)), None), waits_for, Nanos(now - ns));
    waits.ends(number, Nanos(now), ns);
}

#[test]
fn a_client_s_pauses_and_syncs_are_summed_up_apart() {
    let waits = Waits::default();
    wait(&waits, "10.0.0.5", PAUSE, 100, 7);
    wait(&waits, "10.0.0.5", PAUSE, 200, 5);
    wait(&waits, "10.0.0.5", WaitsFor::Sync, 300, 30);
    let _under_way = waits.begins(whose(Some(&Client::named("10.0.0.5")), None), PAUSE, Nanos(400));
    let told = waits.told(Nanos(500), false);
    let client = Client::named("10.0.0.5");
    let of_client = ClientWaits { client, waiting: 1, pauses: 2, pause_ns: 12, syncs: 1, sync_ns: 30 };
    assert_eq!(told.clients, [of_client]);
    assert_eq!((told.pause.count, told.pause.max_ns), (2, 7));
    assert_eq!((told.sync.count, told.sync.max_ns), (1, 30));
}

#[test]
fn a_wait_ends_once() {
    let waits = Waits::default();
    let number = waits.begins(whose(None, None), PAUSE, Nanos(0));
    waits.ends(number, Nanos(5), 5);
    waits.ends(number, Nanos(6), 6);
    assert_eq!(waits.told(Nanos(9), false).pause.count, 1);
}

#[test]
fn clients_that_wait_no_more_are_forgotten_when_there_are_too_many() {
    let waits = Waits::default();
    let waiting = waits.begins(whose(Some(&Client::named("waits")), None), PAUSE, Nanos(0));
    for at in 0..2 * CLIENTS_MAX as u64 {
        wait(&waits, &format!("client {at}"), PAUSE, 10 + at, 1);
    }
    let told = waits.told(Nanos(10_000), false).clients;
    assert_eq!(told.len(), CLIENTS_MAX);
    let name = |at: usize| Client::named(&format!("client {at}"));
    assert!(told.iter().any(|one| one.client == Client::named("waits") && one.waiting == 1));
    assert!(told.iter().any(|one| one.client == name(2 * CLIENTS_MAX - 1)), "the last stays");
    assert!(!told.iter().any(|one| one.client == name(0)), "the first has gone");
    waits.ends(waiting, Nanos(10_000), 10_000);
}

#[test]
fn payers_are_counted_by_client_and_each_once() {
    let waits = Waits::default();
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
    waits.ends(twice[0], Nanos(1), 1);
    assert_eq!(waits.sharing(Some(&a), 5), (2, 3), "another call of the same payer waits");
    assert_eq!(waits.payers_waiting(), 3);
    for number in [twice[1], third, local] {
        waits.ends(number, Nanos(1), 1);
    }
    assert_eq!((waits.sharing(Some(&b), 6), waits.sharing(None, 1)), ((1, 1), (1, 0)));
    assert_eq!(waits.payers_waiting(), 0);
}
