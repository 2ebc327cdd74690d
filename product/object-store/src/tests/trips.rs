//! Round trips that an opening makes one after the other.
//!
//! rule: A takeover makes at most 26 round trips one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_object::{ObjectTree, ObjectTreeOptions};
use bytes::Bytes;
use object_store::memory::InMemory;

use super::process::Process;
use super::world::{MS, Shared, TICK_NS, now_ns};
use super::writer::{TestWriter, Volume};
use crate::site::Site;
use crate::store::begin_probe;

/// The log of a writer that was killed, nearly as long as it gets.
const LOGS: u64 = 250;
const ROUND_TRIP_NS: u64 = 1_000 * MS;
const TRIPS_MAX: u64 = 26;

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

/// Opens the volume and its tree of names, as a server does.
async fn serve(writer: &TestWriter, site: &Arc<Site>) -> Arc<Volume> {
    let volume = Arc::new(writer.open(site, true).await.unwrap());
    ObjectTree::open(Arc::clone(&volume), ObjectTreeOptions::default()).await.unwrap();
    volume
}

#[test]
fn a_takeover_makes_few_round_trips() {
    let (world, objects) = (Shared::new(1, None), Arc::new(InMemory::new()));
    let writer = |process| TestWriter { world: world.clone(), objects: Arc::clone(&objects), process };
    world.world().calm_ns = Some(TICK_NS);
    let (first, killed, next) = (writer(1), writer(2), writer(3));
    // Its records are in the tree of the database, behind the log.
    until_ready(&world, |handle, ready| async move {
        let volume = serve(&first, &first.site(handle)).await;
        volume.close().await.unwrap();
        volume.records().close().await.unwrap();
        ready.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    });
    until_ready(&world, |handle, ready| async move {
        let volume = serve(&killed, &killed.site(handle)).await;
        for at in 0..LOGS {
            volume.write(1, at, Bytes::from_static(b"x")).unwrap();
            volume.commit(1).await.unwrap();
        }
        ready.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    });
    world.world().calm_ns = Some(ROUND_TRIP_NS);
    let took_ns = until_ready(&world, |handle, ready| async move {
        let site = next.site(handle);
        let names = ["probe/a", "probe/b"].map(|name| site.address.path(name));
        let _probed = begin_probe(&site, names, true);
        let _volume = serve(&next, &site).await;
        ready.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    });
    let trips = took_ns / ROUND_TRIP_NS;
    println!("a takeover: {trips} round trips one after the other");
    assert!(trips <= TRIPS_MAX, "{trips}");
}
