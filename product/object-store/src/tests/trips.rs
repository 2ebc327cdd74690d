//! Round trips that an opening makes one after the other.
//!
//! rule: A takeover makes at most 40 round trips one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_object::{Change, Records};
use object_store::memory::InMemory;

use super::process::Process;
use super::world::{MS, Shared, TICK_NS, now_ns};
use super::writer::Desk;
use crate::probe::probe;
use crate::records::StoreRecords;

/// The log of a writer that was killed, nearly as long as it gets.
const LOGS: u64 = 250;
const ROUND_TRIP_NS: u64 = 1_000 * MS;
const TRIPS_MAX: u64 = 40;

/// Runs a process until it says that it is ready. Returns the time that it took.
fn until_ready<F: Future<Output = ()> + Send + 'static>(
    world: &Shared,
    life: impl FnOnce(tokio::runtime::Handle, Arc<AtomicBool>) -> F,
) -> u64 {
    let (ready, begun_ns) = (Arc::<AtomicBool>::default(), now_ns());
    let of_process = Arc::clone(&ready);
    let mut process = Process::start(|handle| life(handle, of_process));
    while !ready.load(Ordering::Relaxed) {
        assert!(!process.step(), "the process ended");
        world.advance();
        assert!(now_ns() - begun_ns < 1_000 * ROUND_TRIP_NS, "the process hangs");
    }
    now_ns() - begun_ns - TICK_NS
}

#[test]
fn a_takeover_makes_few_round_trips() {
    let (world, objects) = (Shared::new(1, None), Arc::new(InMemory::new()));
    let desk = |process| Desk { world: world.clone(), objects: Arc::clone(&objects), process };
    world.world().calm_ns = Some(TICK_NS);
    let killed = desk(1);
    until_ready(&world, |handle, ready| async move {
        let records = StoreRecords::open(killed.site(handle)).await.unwrap();
        for at in 0..LOGS {
            let batch = vec![Change::Put(at.to_be_bytes().to_vec(), vec![0; 100])];
            records.durable(records.apply(batch).unwrap()).await.unwrap();
        }
        ready.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    });
    world.world().calm_ns = Some(ROUND_TRIP_NS);
    let next = desk(2);
    let took_ns = until_ready(&world, |handle, ready| async move {
        let site = next.site(handle);
        let names = ["probe/a", "probe/b"].map(|name| site.address.path(name));
        probe(&site.wire, names, true).await.unwrap();
        let volume = next.open(&site, true).await.unwrap();
        ready.store(true, Ordering::Relaxed);
        drop(volume);
        std::future::pending::<()>().await;
    });
    let trips = took_ns / ROUND_TRIP_NS;
    println!("a takeover: {trips} round trips one after the other");
    assert!(trips <= TRIPS_MAX, "{trips}");
}
