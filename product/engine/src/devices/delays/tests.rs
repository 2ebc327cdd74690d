use std::cell::Cell;
use std::sync::Arc;

use afflux_device::client::Client;
use afflux_device::request::Backing;

use super::{ACCOUNTS_MAX, AccountOwner, Delay, DelayAccounts, DeviceDelays, FileDelays, SHARD_MAX, WaitAccount};

thread_local! {
    /// Copies of accounts that this thread has made.
    pub(super) static COPIES: Cell<usize> = const { Cell::new(0) };
}

fn ends(delays: &DelayAccounts, client: &Client, delay: Delay, ns: u64) {
    let mut waited = [0; Delay::ALL.len()];
    waited[delay as usize] = ns;
    delays.call_ended(WaitAccount::Client(client), &waited);
}

fn told_of(delays: &DelayAccounts, waiting: impl Fn(&Client) -> u64) -> DeviceDelays {
    delays.report(waiting)
}

fn names(told: &DeviceDelays) -> Vec<String> {
    let name = |whose: &AccountOwner| match whose {
        AccountOwner::Client(client) => client.to_string(),
        AccountOwner::File(_) => panic!("a file"),
    };
    told.accounts.iter().map(|one| name(&one.whose)).collect()
}

#[test]
fn each_kind_of_wait_has_its_own_figures_for_each_client_and_user() {
    let (delays, host) = (DelayAccounts::default(), Client::named("10.0.0.5"));
    for ns in [8, 10, 12] {
        ends(&delays, &host.of_user(1), Delay::Throttle, ns);
    }
    delays.call_ended(WaitAccount::Client(&host.of_user(1)), &[0, 5, 7, 0]);
    ends(&delays, &host.of_user(2), Delay::Sync, 40);
    let told = told_of(&delays, |client| u64::from(client.user() == Some(1)));
    let of = |user: u32| {
        let found =
            told.accounts.iter().find(|one| matches!(&one.whose, AccountOwner::Client(it) if it.user() == Some(user)));
        found.unwrap()
    };
    let figures = |user, delay| {
        let times = of(user).times.of(delay);
        (times.count, times.ns, times.p99_ns, times.max_ns)
    };
    assert_eq!(Delay::ALL.map(|delay| figures(1, delay)), [(3, 30, 12, 12), (1, 5, 5, 5), (1, 7, 7, 7), (0, 0, 0, 0)]);
    assert_eq!(Delay::ALL.map(|delay| figures(2, delay).0), [0, 0, 0, 1]);
    assert_eq!((of(1).waiting, of(2).waiting, of(1).times.ns()), (1, 0, 42));
    assert_eq!((delays.of(Delay::Throttle).times().count, delays.of(Delay::Sync).times().ns), (3, 40));
}

#[test]
fn of_too_many_clients_the_oldest_go_among_the_others_and_no_wait_is_lost() {
    let (delays, many) = (DelayAccounts::default(), 3 * ACCOUNTS_MAX as u64);
    for at in 0..many {
        ends(&delays, &Client::named(&format!("client {at}")), Delay::Read, 1 + at);
        // A client that comes again and again stays.
        ends(&delays, &Client::named("often"), Delay::Read, 1);
    }
    let told = told_of(&delays, |_| 0);
    assert!(told.accounts.len() <= ACCOUNTS_MAX, "{} accounts", told.accounts.len());
    assert!(told.accounts.len() > ACCOUNTS_MAX - SHARD_MAX, "{} accounts", told.accounts.len());
    assert_eq!(told.accounts.len() as u64 + told.others_count, many + 1);
    let names = names(&told);
    let has = |name: &str| names.iter().any(|own| own == name);
    assert!(has("often") && has(&format!("client {}", many - 1)) && !has("client 0"));
    let rows = || told.accounts.iter().map(|one| &one.times).chain([&told.others]);
    assert_eq!(rows().map(|times| times.of(Delay::Read).count).sum::<u64>(), 2 * many);
    assert_eq!(rows().map(super::DelayTimes::ns).sum::<u64>(), many * (many + 1) / 2 + many);
    assert_eq!(told.others.of(Delay::Sync).count, 0);
}

#[test]
fn waits_of_a_closed_file_and_of_files_beyond_the_limit_go_among_the_others() {
    let (delays, many) = (DelayAccounts::default(), ACCOUNTS_MAX as u32 + 10);
    let (backing, files) = (Backing::new(Arc::new(())), (0..many).map(|_| FileDelays::default()));
    for (slot, file) in files.enumerate() {
        assert!(!file.has_any());
        (0..2).for_each(|_| delays.call_ended(WaitAccount::File(slot as u32, &backing, &file), &[0, 0, 3, 0]));
        assert!(file.has_any());
    }
    let read = |told: &DeviceDelays| {
        let others = told.others.of(Delay::Read).count;
        (told.accounts.len(), told.others_count, others, others + 2 * told.accounts.len() as u64)
    };
    assert_eq!(read(&told_of(&delays, |_| 0)), (ACCOUNTS_MAX, 10, 20, 2 * u64::from(many)));
    (0..20).for_each(|slot| delays.forget_file(slot));
    assert_eq!(read(&told_of(&delays, |_| 0)), (ACCOUNTS_MAX - 10, 20, 40, 2 * u64::from(many)));
    let new = FileDelays::default();
    delays.call_ended(WaitAccount::File(0, &backing, &new), &[0, 0, 3, 0]);
    assert_eq!(told_of(&delays, |_| 0).others_count, 20, "another file in the slot has an account of its own");
}

#[test]
fn the_one_that_ended_a_wait_last_is_told_first() {
    let delays = DelayAccounts::default();
    let clients = ["a", "b", "c"].map(Client::named);
    for at in [0, 1, 2, 0] {
        ends(&delays, &clients[at], Delay::Sync, 1);
    }
    assert_eq!(names(&told_of(&delays, |_| 0)), ["a", "c", "b"]);
}

#[test]
fn however_many_files_waited_only_the_accounts_shown_are_copied() {
    let delays = DelayAccounts::default();
    let backing = Backing::new(Arc::new(()));
    let files: Vec<FileDelays> = (0..3 * ACCOUNTS_MAX).map(|_| FileDelays::default()).collect();
    for (slot, file) in files.iter().enumerate() {
        delays.call_ended(WaitAccount::File(slot as u32, &backing, file), &[0, 0, 1 + slot as u64, 0]);
    }
    COPIES.set(0);
    let told = told_of(&delays, |_| 0);
    assert_eq!(told.accounts.len(), ACCOUNTS_MAX);
    assert!(COPIES.get() <= ACCOUNTS_MAX, "{} accounts were copied", COPIES.get());
    let slowest = told.accounts.iter().map(|one| one.times.of(Delay::Read).ns);
    assert!(slowest.eq((0..3 * ACCOUNTS_MAX as u64).rev().take(ACCOUNTS_MAX).map(|slot| 1 + slot)), "the latest");
    assert_eq!(told.others_count, 2 * ACCOUNTS_MAX as u64);
}
