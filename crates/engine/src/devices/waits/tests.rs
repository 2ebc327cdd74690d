use std::sync::Weak;

use super::{CLIENTS_MAX, ClientWaits, Waits, WaitsFor};
use crate::client::Client;
use crate::platform::Nanos;
use crate::policy::PauseCause;

const PAUSE: WaitsFor = WaitsFor::Pause(PauseCause::DevicePart);

fn wait(waits: &Waits, client: &str, waits_for: WaitsFor, now: u64, ns: u64) {
    let number = waits.begins(Weak::new(), Some(&Client::named(client)), waits_for, Nanos(now - ns));
    waits.ends(number, Nanos(now), ns);
}

#[test]
fn a_client_s_pauses_and_syncs_are_summed_up_apart() {
    let waits = Waits::default();
    wait(&waits, "10.0.0.5", PAUSE, 100, 7);
    wait(&waits, "10.0.0.5", PAUSE, 200, 5);
    wait(&waits, "10.0.0.5", WaitsFor::Sync, 300, 30);
    let _under_way = waits.begins(Weak::new(), Some(&Client::named("10.0.0.5")), PAUSE, Nanos(400));
    let told = waits.told(Nanos(500));
    let client = Client::named("10.0.0.5");
    let of_client = ClientWaits { client, waiting: 1, pauses: 2, pause_ns: 12, syncs: 1, sync_ns: 30 };
    assert_eq!(told.clients, [of_client]);
    assert_eq!((told.pause.count, told.pause.max_ns), (2, 7));
    assert_eq!((told.sync.count, told.sync.max_ns), (1, 30));
}

#[test]
fn a_wait_ends_once() {
    let waits = Waits::default();
    let number = waits.begins(Weak::new(), None, PAUSE, Nanos(0));
    waits.ends(number, Nanos(5), 5);
    waits.ends(number, Nanos(6), 6);
    assert_eq!(waits.told(Nanos(9)).pause.count, 1);
}

#[test]
fn clients_that_wait_no_more_are_forgotten_when_there_are_too_many() {
    let waits = Waits::default();
    let waiting = waits.begins(Weak::new(), Some(&Client::named("waits")), PAUSE, Nanos(0));
    for at in 0..2 * CLIENTS_MAX as u64 {
        wait(&waits, &format!("client {at}"), PAUSE, 10 + at, 1);
    }
    let told = waits.told(Nanos(10_000)).clients;
    assert_eq!(told.len(), CLIENTS_MAX);
    let name = |at: usize| Client::named(&format!("client {at}"));
    assert!(told.iter().any(|one| one.client == Client::named("waits") && one.waiting == 1));
    assert!(told.iter().any(|one| one.client == name(2 * CLIENTS_MAX - 1)), "the last stays");
    assert!(!told.iter().any(|one| one.client == name(0)), "the first has gone");
    waits.ends(waiting, Nanos(10_000), 10_000);
}
