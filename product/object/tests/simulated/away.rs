//! A store that is away, or busy.

use std::sync::Arc;

use afflux_simulator::{ObjectContents, StoreOptions};

use crate::fixture::{MIB, Machine, MachineOptions, SECOND};

const OUTAGE_NS: u64 = 180 * SECOND;
/// Bytes a second of the store.
const RATE: u64 = 30_000_000;

#[test]
fn an_outage_of_minutes_is_waited_for_and_told_and_fails_nothing() {
    let store = StoreOptions { bytes_per_second: RATE, ..StoreOptions::default() };
    let machine = Machine::new(&ObjectContents::default(), MachineOptions { store, ..MachineOptions::default() });
    let here = Arc::clone(&machine.here);
    let stream = Arc::clone(&here);
    machine.world.spawn("stream", async move { stream.write_on(&stream.open(1, 0)).await });
    let file = here.open(2, 0);
    machine.run(async {
        here.write(&file, 0, 4096, 2).await;
        here.sync(&file).await;
        here.sleep(5 * SECOND).await;
    });
    assert_eq!(here.status().away_ns, None);
    here.store.be_away(OUTAGE_NS);
    let (syncs, synced) = (Arc::clone(&here), file.clone());
    machine.world.spawn("sync", async move {
        syncs.write(&synced, 4096, 4096, 3).await;
        syncs.sync(&synced).await;
        syncs.write(&synced, 8192, 4096, 4).await;
    });
    let read = here.open(1, MIB as u64);
    let (reads, unread) = (Arc::clone(&here), read.clone());
    machine.world.spawn("read", async move {
        let mut page = vec![0; 4096];
        assert_eq!(reads.engine.read(&unread, 0, &mut page).await, Ok(4096));
    });
    machine.run(here.sleep(60 * SECOND));
    let status = here.status();
    assert!(status.away_ns.is_some_and(|ns| (50 * SECOND..=61 * SECOND).contains(&ns)), "{:?}", status.away_ns);
    assert!(status.stalled_ns.is_some() && status.writers_waiting == 1, "{status:?}");
    assert_eq!((status.files_failed, status.last_error, status.refuses), (0, None, false));
    assert_eq!(file.size(), 8192, "the sync waits");
    machine.run(here.sleep(OUTAGE_NS - 60 * SECOND + 20 * SECOND));
    let (status, before) = (here.status(), here.status().written_bytes);
    assert_eq!((status.away_ns, status.files_failed, status.last_error), (None, 0, None));
    assert_eq!(file.size(), 12288, "the sync is over");
    machine.run(here.sleep(5 * SECOND));
    let rate = (here.status().written_bytes - before) / 5;
    println!("{} MB/s", rate / 1_000_000);
    assert!(rate * 10 >= RATE * 8, "20 s after the outage {rate} bytes a second are written");
    machine.run(async { assert_eq!(here.engine.sync(&file, 0..u64::MAX).await, Ok(())) });
}

#[test]
fn an_outage_is_told_also_if_only_syncs_wait() {
    let machine = Machine::new(&ObjectContents::default(), MachineOptions::default());
    let here = Arc::clone(&machine.here);
    let file = here.open(2, 0);
    machine.run(async {
        here.write(&file, 0, 4096, 2).await;
        here.sync(&file).await;
    });
    here.store.be_away(OUTAGE_NS);
    let syncs = Arc::clone(&here);
    machine.world.spawn("sync", async move {
        syncs.write(&file, 4096, 4096, 3).await;
        syncs.sync(&file).await;
    });
    machine.run(here.sleep(60 * SECOND));
    assert!(here.status().away_ns.is_some_and(|ns| ns > 50 * SECOND), "{:?}", here.status().away_ns);
    machine.run(here.sleep(OUTAGE_NS));
    assert_eq!(here.status().away_ns, None);
}

#[test]
fn a_store_that_says_503_gets_fewer_requests_at_once() {
    let call_bytes_per_second = 10_000_000;
    let store =
        StoreOptions { call_bytes_per_second, spread_per_mille: 200, requests_max: 4, ..StoreOptions::default() };
    let machine = Machine::new(&ObjectContents::default(), MachineOptions { store, ..MachineOptions::default() });
    let here = Arc::clone(&machine.here);
    let stream = Arc::clone(&here);
    machine.world.spawn("stream", async move { stream.write_on(&stream.open(1, 0)).await });
    machine.run(here.sleep(5 * SECOND));
    let (before, written) = (here.store.figures(), here.status().written_bytes);
    machine.run(here.sleep(10 * SECOND));
    let (after, rate) = (here.store.figures(), (here.status().written_bytes - written) / 10);
    let (puts, busy) = (after.puts - before.puts, after.busy - before.busy);
    println!("{puts} PUTs, {busy} refused, {} MB/s", rate / 1_000_000);
    assert!(busy * 5 <= puts, "{busy} of {puts} PUTs were refused");
    assert!(rate * 10 >= 4 * call_bytes_per_second * 6, "{rate} bytes a second");
    assert_eq!((here.status().files_failed, here.status().last_error), (0, None));
}
