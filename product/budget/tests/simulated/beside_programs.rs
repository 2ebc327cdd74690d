//! The flush budget beside another program on the same disk, which the engine does not see. Writers overwrite pages at
//! the speed of memory while the debt of these fits the budget. Where it does not, they get their part of the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::counters::Counter;
use afflux_simulator::{DiskOptions, ForeignLoad, Memory, OWN_POLICY, Random, Setup, SimMachine, World, WorldOptions};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile};
use crate::streams::Writer;

const MIB: u64 = 1 << 20;
/// An eighth of the disk on which this was found, and of all that is asked of it: fewer steps for the same ratios.
const DISK_BYTES_PER_SECOND: u64 = 162_500_000;
/// Requests that the disk takes at once.
const DEPTH: u32 = 8;
const CALLS_IN_FLIGHT: u64 = 32;
/// A caller waits so long between two calls: 32 callers make 55,000 calls a second at memory speed.
const THINK_NS: u64 = 580_000;

/// Another program that streams with two requests in flight, at less than a quarter of the disk's speed.
fn streaming(lasts_ns: u64) -> ForeignLoad {
    ForeignLoad {
        writes: true,
        request_bytes: 256 << 10,
        scattered: false,
        file_bytes: 1 << 30,
        in_flight: 2,
        bytes_per_second: DISK_BYTES_PER_SECOND * 3 / 13,
        lasts_ns,
    }
}

fn lab() -> EngineFixture {
    let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(3) });
    let disk = DiskOptions {
        bytes_per_second: DISK_BYTES_PER_SECOND,
        request_bytes_max: 512 << 10,
        // 1,250 single pages a second for each request in flight.
        depth: DEPTH,
        latency_ns: 800_000,
        ..DiskOptions::default()
    };
    let setup = Setup::of(OWN_POLICY).unwrap();
    let machine = SimMachine::with_disks(&world, Memory::Stamped(256 * MIB), setup, &[disk]).unwrap();
    EngineFixture::of(world, machine)
}

/// Overwrites pages of the file anywhere, with so many calls in flight, for ever. Counts the calls.
fn overwrites(lab: &EngineFixture, file: &TestFile, bytes: u64) -> Arc<AtomicU64> {
    let calls = Arc::new(AtomicU64::new(0));
    for caller in 0..CALLS_IN_FLIGHT {
        let (here, to, calls) = (Arc::clone(&lab.here), file.clone(), Arc::clone(&calls));
        lab.world.spawn("caller", async move {
            let (page, mut random) = (vec![0; PAGE], Random::new(caller));
            loop {
                let at = random.below(bytes / PAGE as u64) * PAGE as u64;
                here.engine.write(&to.file, at, &page).await.unwrap();
                calls.fetch_add(1, Ordering::Relaxed);
                here.sleep(THINK_NS).await;
            }
        });
    }
    calls
}

/// Figures of a stretch of time, by the second.
#[derive(Debug)]
struct Rates {
    calls: u64,
    /// Bytes that the engine submitted.
    written: u64,
    pauses: u64,
    /// The most that was owed.
    owed_ms: u64,
}

fn rates(lab: &EngineFixture, calls: &AtomicU64, ns: u64) -> Rates {
    let now = || [calls.load(Ordering::Relaxed), lab.count(Counter::PageOut), lab.count(Counter::ThrottlePauses)];
    let (before, mut owed_ns) = (now(), 0);
    for _ in 0..20 {
        lab.passes(ns / 20);
        owed_ns = owed_ns.max(lab.number(0, "owed_ns"));
    }
    let after = now();
    let [calls, written, pauses] = [0, 1, 2].map(|at| (after[at] - before[at]) * SECOND / ns);
    Rates { calls, written, pauses, owed_ms: owed_ns / MILLISECOND }
}

/// The disk needs 0.4 s to write so much.
const HOT_BYTES: u64 = 56 * MIB;

#[test]
fn a_hot_set_that_fits_the_budget_stays_at_memory_speed_beside_another_program_and_after_it() {
    let lab = lab();
    let file = lab.laid_out(HOT_BYTES);
    let calls = overwrites(&lab, &file, HOT_BYTES);
    let memory_speed = CALLS_IN_FLIGHT * SECOND / THINK_NS;
    lab.passes(4 * SECOND);
    let mut failed = Vec::new();
    for (phase, foreign) in [("quiet", false), ("beside", true), ("after", false)] {
        // Then all of it becomes dirty anew.
        if foreign {
            lab.here.disks[0].add_foreign_load(streaming(6 * SECOND));
            lab.passes(SECOND);
        }
        let synced_ns = lab.sync_ns(&file);
        lab.passes(2 * SECOND);
        let rates = rates(&lab, &calls, 3 * SECOND);
        eprintln!("{phase}: {rates:?}, a sync took {} ms", synced_ns / MILLISECOND);
        let slow = rates.calls < memory_speed * 9 / 10 || rates.pauses > 0 || synced_ns > 1200 * MILLISECOND;
        if slow || rates.written > 0 || rates.owed_ms > 1000 {
            failed.push((phase, rates));
        }
    }
    assert!(failed.is_empty(), "{memory_speed} calls a second at memory speed: {failed:?}");
}

/// Another program that always has 16 large requests in flight.
fn flooding(lasts_ns: u64) -> ForeignLoad {
    ForeignLoad { request_bytes: 512 << 10, in_flight: 16, bytes_per_second: u64::MAX, ..streaming(lasts_ns) }
}

/// The rate at which the disk itself takes single pages beside another program. As many requests are in flight as the
/// engine may have, which leaves a quarter of them to readers.
fn own_rate(beside: Option<ForeignLoad>) -> u64 {
    let lab = lab();
    let disk = &lab.here.disks[0];
    beside.map(|load| disk.add_foreign_load(load));
    let (request_bytes, in_flight) = (PAGE as u32, DEPTH - DEPTH / 4);
    let pages = ForeignLoad { request_bytes, in_flight, scattered: true, ..flooding(u64::MAX) };
    let pages = disk.add_foreign_load(pages);
    lab.passes(SECOND);
    let before = disk.foreign_bytes(pages);
    lab.passes(2 * SECOND);
    (disk.foreign_bytes(pages) - before) / 2
}

#[test]
fn what_does_not_fit_gets_the_disks_own_rate_beside_another_program_and_two_seconds_after_it() {
    for foreign in [streaming, flooding] {
        let lab = lab();
        let file = lab.laid_out(256 * MIB);
        let calls = overwrites(&lab, &file, 256 * MIB);
        lab.passes(4 * SECOND);
        let quiet = rates(&lab, &calls, 2 * SECOND);
        lab.here.disks[0].add_foreign_load(foreign(6 * SECOND));
        lab.passes(2 * SECOND);
        let beside = rates(&lab, &calls, 4 * SECOND);
        lab.passes(2 * SECOND);
        let after = rates(&lab, &calls, SECOND);
        let own = [own_rate(None), own_rate(Some(foreign(u64::MAX)))];
        eprintln!("{own:?}: {quiet:?}, beside {beside:?}, after {after:?}");
        for (rates, own) in [(&quiet, own[0]), (&beside, own[1]), (&after, own[0])] {
            assert!(rates.written >= own * 8 / 10, "{rates:?}: {own} bytes a second are the disk's own");
        }
        assert!(after.calls >= quiet.calls * 9 / 10, "{after:?}, {quiet:?} before");
    }
}

#[test]
fn a_sync_of_everything_takes_what_was_owed_when_it_came_whatever_is_dirtied_meanwhile() {
    let lab = lab();
    let file = lab.laid_out(256 * MIB);
    overwrites(&lab, &file, 256 * MIB);
    for _ in 0..3 {
        lab.passes(4 * SECOND);
        let owed_ns = lab.number(0, "owed_ns");
        let ns = lab.sync_ns(&file);
        eprintln!("{} ms of {} ms owed", ns / MILLISECOND, owed_ns / MILLISECOND);
        assert!(owed_ns >= 700 * MILLISECOND, "{owed_ns} ns are owed");
        assert!(ns <= owed_ns + 100 * MILLISECOND, "{ns} ns, of {owed_ns} ns owed");
    }
}

#[test]
fn beside_a_stream_a_hot_page_is_written_once_a_budget_at_most() {
    const HOT: u64 = 32 * MIB;
    const SECONDS: u64 = 10;
    let lab = lab();
    let hot = lab.laid_out(HOT);
    let calls = overwrites(&lab, &hot, HOT);
    let (_, stream) = Writer::STREAM.begins(&lab);
    lab.passes(5 * SECOND);
    let (before, streamed) = (lab.count(Counter::PageOut), stream.bytes());
    let rates = rates(&lab, &calls, SECONDS * SECOND);
    let streamed = stream.bytes() - streamed;
    let of_hot = (lab.count(Counter::PageOut) - before).saturating_sub(streamed);
    eprintln!("{rates:?}, streamed {streamed}, hot {of_hot}");
    assert!(of_hot <= HOT * SECONDS, "{of_hot} bytes of hot pages in {SECONDS} s");
    // The disk's own, less what hot pages take of it once in two budgets.
    let left = DISK_BYTES_PER_SECOND * SECONDS - HOT * SECONDS / 2;
    assert!(streamed >= left * 8 / 10, "{streamed} bytes streamed, of {left}");
}
