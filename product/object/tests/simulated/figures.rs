//! Figures of the device, as bounds. All are simulated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::{Advice, Platform};
use afflux_object::Objects;
use afflux_simulator::{ObjectContents, ObjectStore, StoreOptions, World, WorldOptions};
use bytes::Bytes;

use crate::fixture::{Inside, KIB, MIB, MILLISECOND, Machine, MachineOptions, SECOND, bytes};

/// A store of this round trip and bandwidth, with 100 MB/s a call.
fn store(round_trip_ms: u64, mb_per_second: u64) -> StoreOptions {
    StoreOptions {
        round_trip_ns: round_trip_ms * MILLISECOND,
        spread_per_mille: 200,
        bytes_per_second: mb_per_second * 1_000_000,
        ..StoreOptions::default()
    }
}

fn machine(contents: &ObjectContents, store: StoreOptions) -> Machine {
    Machine::new(contents, MachineOptions { memory: 1024 * MIB, store, ..MachineOptions::default() })
}

/// Bytes a second of `side_by_side` loops of PUTs or GETs of 8 MiB.
fn raw(options: StoreOptions, side_by_side: u32, reads: bool) -> u64 {
    let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(2) });
    let store = ObjectStore::new(&world, &ObjectContents::default(), options);
    let (platform, moved) = (Arc::clone(world.platform()), Arc::new(AtomicU64::new(0)));
    let image = Bytes::from(vec![0; 8 * MIB]);
    for loop_number in 0..side_by_side {
        let (store, moved, image) = (store.clone(), Arc::clone(&moved), image.clone());
        world.spawn("raw", async move {
            store.create(&format!("raw/{loop_number}"), image.clone()).await.unwrap();
            for number in 0_u64.. {
                if reads {
                    store.get(&format!("raw/{loop_number}"), 0..8 * MIB as u64).await.unwrap();
                } else {
                    store.create(&format!("raw/{loop_number}/{number}"), image.clone()).await.unwrap();
                }
                moved.fetch_add(8 * MIB as u64, Ordering::Relaxed);
            }
        });
    }
    let at = |ns| platform.sleep_until(afflux_engine::Nanos(ns));
    world.run(at(10 * SECOND)).unwrap();
    let before = moved.load(Ordering::Relaxed);
    world.run(at(50 * SECOND)).unwrap();
    (moved.load(Ordering::Relaxed) - before) / 40
}

async fn write_all(here: &Inside, file: &afflux_engine::File, from: u64, bytes: u64) {
    let data = vec![7; MIB];
    for at in (from..from + bytes).step_by(MIB) {
        here.engine.write(file, at, &data).await.unwrap();
    }
}

/// Writes so many MiB to a file, so that the device is known: a server persists its prices over restarts.
async fn know(here: &Inside, ino: u64, mib: u64) {
    let file = here.open(ino, 0);
    write_all(here, &file, 0, mib * MIB as u64).await;
    here.sync(&file).await;
}

/// Round trips in ms, and the bandwidth in MB/s.
const STORES: [(u64, u64); 2] = [(150, 300), (100, 100)];
const OTHER_STORES: [(u64, u64); 2] = [(30, 300), (100, 300)];

#[test]
fn a_stream_is_written_at_the_stores_bandwidth() {
    a_stream_is_written(STORES);
}

#[test]
#[ignore = "other stores: some ten seconds"]
fn a_stream_is_written_at_other_stores_bandwidth() {
    a_stream_is_written(OTHER_STORES);
}

fn a_stream_is_written(stores: [(u64, u64); 2]) {
    for (round_trip_ms, mb) in stores {
        let options = store(round_trip_ms, mb);
        let machine = machine(&ObjectContents::default(), options.clone());
        let (here, stream) = (Arc::clone(&machine.here), Arc::clone(&machine.here));
        machine.world.spawn("stream", async move { write_all(&stream, &stream.open(1, 0), 0, u64::MAX / 2).await });
        machine.run(here.sleep(3 * SECOND));
        let before = here.status().written_bytes;
        machine.run(here.sleep(5 * SECOND));
        let (rate, side_by_side) = ((here.status().written_bytes - before) / 5, here.store.figures().requests_max);
        let raw = raw(options, side_by_side, false).min(mb * 1_000_000);
        println!("R {round_trip_ms} ms, {mb} MB/s: {} of {} MB/s, {side_by_side}", rate / 1_000_000, raw / 1_000_000);
        assert!(rate * 10 >= raw * 9, "R {round_trip_ms} ms, {mb} MB/s: {rate} of {raw}");
    }
}

#[test]
fn a_stream_is_read_at_the_stores_bandwidth() {
    a_stream_is_read(STORES);
}

#[test]
#[ignore = "other stores: some twenty seconds"]
fn a_stream_is_read_at_other_stores_bandwidth() {
    a_stream_is_read(OTHER_STORES);
}

fn a_stream_is_read(stores: [(u64, u64); 2]) {
    for (round_trip_ms, mb) in stores {
        let (options, contents) = (store(round_trip_ms, mb), ObjectContents::default());
        let size = 6 * mb * 1_000_000 / MIB as u64 * MIB as u64;
        let writer = machine(&contents, options.clone());
        let here = Arc::clone(&writer.here);
        writer.run(async {
            let file = here.open(1, 0);
            write_all(&here, &file, 0, size).await;
            here.sync(&file).await;
            here.volume.close().await.unwrap();
        });
        drop(writer);
        let reader = machine(&contents, options.clone());
        let here = Arc::clone(&reader.here);
        let (rate, side_by_side) = reader.run(async {
            let (file, mut data) = (here.open(1, size), vec![0; MIB]);
            let (mut began, mut ended) = (0, 0);
            // As much is read ahead at the end of the measured part as at its beginning.
            for at in (0..size).step_by(MIB) {
                for (sixths, instant) in [(2, &mut began), (4, &mut ended)] {
                    if at <= size / 6 * sixths {
                        *instant = here.now_ns();
                    }
                }
                assert_eq!(here.engine.read(&file, at, &mut data).await, Ok(MIB));
                assert_eq!(data, vec![7; MIB]);
            }
            let rate = u128::from(size / 6 * 2) * u128::from(SECOND) / u128::from(ended - began);
            (rate, here.store.figures().requests_max)
        });
        let raw = raw(options, side_by_side, true).min(mb * 1_000_000);
        println!("R {round_trip_ms} ms, {mb} MB/s: {} of {} MB/s, {side_by_side}", rate / 1_000_000, raw / 1_000_000);
        assert!(rate * 100 >= u128::from(raw) * 85, "R {round_trip_ms} ms, {mb} MB/s: {rate} of {raw}");
    }
}

// rule: A stream reads through cached pages that lie scattered in its range.
// kept in: `product/engine/src/reading/in_flight.rs`
#[test]
fn a_stream_past_scattered_pages_needs_few_gets() {
    let (contents, pages) = (ObjectContents::default(), 16 << 10);
    let writer = machine(&contents, store(30, 500));
    let here = Arc::clone(&writer.here);
    writer.run(async {
        know(&here, 1, pages * 4 / KIB as u64).await;
        here.volume.close().await.unwrap();
    });
    drop(writer);
    let reader = machine(&contents, store(30, 500));
    let here = Arc::clone(&reader.here);
    reader.run(async {
        let file = here.open(1, pages * 4 * KIB as u64);
        here.engine.advise(&file, 0..u64::MAX, Advice::Random);
        for page in (0..pages).step_by(16) {
            assert_eq!(here.engine.read(&file, page * 4 * KIB as u64, &mut [0; 4 * KIB]).await, Ok(4 * KIB));
        }
        here.engine.advise(&file, 0..u64::MAX, Advice::Normal);
        let (before, began, mut data) = (here.store.figures().gets, here.now_ns(), vec![0; MIB]);
        for at in (0..pages * 4 * KIB as u64).step_by(MIB) {
            assert_eq!(here.engine.read(&file, at, &mut data).await, Ok(MIB));
            assert_eq!(data, vec![7; MIB]);
        }
        let (gets, ms) = (here.store.figures().gets - before, (here.now_ns() - began) / MILLISECOND);
        println!("{gets} GETs, {ms} ms");
        // Without gaps it is one GET for each cached page, of which the stream needs more than a thousand.
        assert!(gets <= 60 && ms <= 1000, "{gets} GETs, {ms} ms");
    });
}

// rule: A stream's requests at a store are whole, also while the cache is full.
// kept in: `product/engine/src/reading/ahead.rs`
#[test]
fn a_stream_larger_than_the_cache_needs_few_gets() {
    let (contents, mib) = (ObjectContents::default(), 512);
    let writer = machine(&contents, store(30, 500));
    let here = Arc::clone(&writer.here);
    writer.run(async {
        know(&here, 1, mib).await;
        here.volume.close().await.unwrap();
    });
    drop(writer);
    let options = MachineOptions { memory: 128 * MIB, store: store(30, 500), ..MachineOptions::default() };
    let reader = Machine::new(&contents, options);
    let here = Arc::clone(&reader.here);
    reader.run(async {
        let (file, before, mut data) = (here.open(1, mib * MIB as u64), here.store.figures().gets, vec![0; MIB]);
        for at in (0..mib * MIB as u64).step_by(MIB) {
            assert_eq!(here.engine.read(&file, at, &mut data).await, Ok(MIB));
        }
        let gets = here.store.figures().gets - before;
        println!("{gets} GETs");
        // Requests of 1 MiB, of which the cache always has the frames, would be 512.
        assert!(gets <= 256, "{gets} GETs");
    });
}

#[test]
fn a_gigabyte_is_135_puts_at_most() {
    let machine = machine(&ObjectContents::default(), store(30, 500));
    let here = Arc::clone(&machine.here);
    machine.run(async {
        know(&here, 1, 512).await;
        let (file, before) = (here.open(2, 0), here.store.figures().puts);
        write_all(&here, &file, 0, 1024 * MIB as u64).await;
        here.sync(&file).await;
        let puts = here.store.figures().puts - before;
        println!("{puts} PUTs");
        assert!(puts <= 135, "{puts} PUTs");
    });
}

/// The server gathers whole segments, however slow the client of a stream is.
#[test]
fn a_stream_of_a_slow_client_is_written_in_whole_segments() {
    let mut most = 0;
    for mb in [10, 40, 100, 200] {
        let machine = machine(&ObjectContents::default(), store(30, 500));
        let here = Arc::clone(&machine.here);
        machine.run(async {
            know(&here, 1, 512).await;
            let (file, before) = (here.open(2, 0), here.store.figures().puts);
            let (data, total) = (vec![7; 256 * KIB], 256 * MIB as u64);
            for at in (0..total).step_by(256 * KIB) {
                here.engine.write(&file, at, &data).await.unwrap();
                here.sleep(256 * KIB as u64 * SECOND / (mb * 1_000_000)).await;
            }
            here.sync(&file).await;
            let puts = here.store.figures().puts - before;
            println!("a client of {mb} MB/s: {puts} PUTs for 256 MiB");
            most = most.max(puts);
        });
    }
    assert!(most <= 33, "{most} PUTs");
}

#[test]
fn a_small_commit_is_one_round_trip() {
    for round_trip_ms in [30, 100, 150] {
        let options = StoreOptions { spread_per_mille: 0, ..store(round_trip_ms, 500) };
        let machine = machine(&ObjectContents::default(), options);
        let here = Arc::clone(&machine.here);
        machine.run(async {
            let file = here.open(1, 0);
            for turn in 0..20 {
                here.write(&file, turn * 4096, 4 * KIB, turn + 1).await;
                let began = here.now_ns();
                here.sync(&file).await;
                let ns = here.now_ns() - began;
                assert!(ns <= (round_trip_ms + 3) * MILLISECOND, "R {round_trip_ms} ms: {ns} ns");
                here.sleep(7 * MILLISECOND).await;
            }
            assert_eq!(here.store.figures().puts, 0, "the log has the bytes");
        });
    }
}

#[test]
fn commits_of_many_clients_share_the_log() {
    for round_trip_ms in [30, 100] {
        let options = StoreOptions { spread_per_mille: 0, ..store(round_trip_ms, 500) };
        let machine = machine(&ObjectContents::default(), options);
        let here = Arc::clone(&machine.here);
        let times = Arc::new(std::sync::Mutex::new(Vec::new()));
        for client in 0..32 {
            let (here, times) = (Arc::clone(&here), Arc::clone(&times));
            machine.world.spawn("client", async move {
                let file = here.open(1 + client, 0);
                for turn in 0_u64.. {
                    here.sleep(here.platform.random_u64() % (400 * MILLISECOND)).await;
                    here.write(&file, turn * 4096, 4 * KIB, turn + 1).await;
                    let began = here.now_ns();
                    here.sync(&file).await;
                    times.lock().unwrap().push(here.now_ns() - began);
                }
            });
        }
        machine.run(here.sleep(10 * SECOND));
        let mut times = times.lock().unwrap().clone();
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("R {round_trip_ms} ms: {} commits, p50 {p50}, p99 {p99} {:?}", times.len(), here.store.figures());
        assert!(p50 * 10 <= 16 * round_trip_ms * MILLISECOND, "p50 {p50} ns");
        assert!(p99 * 10 <= 25 * round_trip_ms * MILLISECOND, "p99 {p99} ns");
    }
}

#[test]
fn an_end_makes_many_files_durable_at_a_time() {
    let machine = machine(&ObjectContents::default(), StoreOptions { spread_per_mille: 0, ..store(30, 500) });
    let here = Arc::clone(&machine.here);
    machine.run(async {
        (1..=1_000).for_each(|ino| here.volume.write(ino, 0, bytes(ino, 0, 4 * KIB).into()).unwrap());
        let began = here.now_ns();
        here.volume.close().await.unwrap();
        let ns = here.now_ns() - began;
        println!("{} ms, {:?}", ns / MILLISECOND, here.store.figures());
        assert!(ns <= 20 * 30 * MILLISECOND, "{ns} ns for 1,000 files");
    });
}

#[test]
fn a_commit_after_100_mb_at_the_links_speed_has_little_left_to_write() {
    for round_trip_ms in [30, 100, 150] {
        let machine =
            machine(&ObjectContents::default(), StoreOptions { spread_per_mille: 0, ..store(round_trip_ms, 500) });
        let here = Arc::clone(&machine.here);
        machine.run(async {
            for ino in 1..6 {
                let (file, data) = (here.open(ino, 0), vec![7; MIB]);
                for at in 0..100 {
                    here.engine.write(&file, at * MIB as u64, &data).await.unwrap();
                    here.sleep(10 * MILLISECOND).await;
                }
                let began = here.now_ns();
                here.sync(&file).await;
                let (ns, segment_ns) = (here.now_ns() - began, 8 * MIB as u64 * SECOND / 100_000_000);
                println!("R {round_trip_ms} ms: {} ms", ns / MILLISECOND);
                if ino > 1 {
                    assert!(ns <= 2 * round_trip_ms * MILLISECOND + 2 * segment_ns, "R {round_trip_ms} ms: {ns} ns");
                }
            }
        });
    }
}

#[test]
fn a_small_commit_beside_a_stream_takes_three_round_trips_at_most() {
    for round_trip_ms in [30, 100, 150] {
        let machine = machine(&ObjectContents::default(), store(round_trip_ms, 500));
        let here = Arc::clone(&machine.here);
        let stream = Arc::clone(&here);
        machine.world.spawn("stream", async move {
            let file = stream.open(1, 0);
            write_all(&stream, &file, 0, 4096 * MIB as u64).await;
        });
        machine.run(async {
            let file = here.open(2, 0);
            here.sleep(SECOND).await;
            let mut slowest = 0;
            for turn in 0..20 {
                here.write(&file, turn * 4096, 4 * KIB, turn + 1).await;
                let began = here.now_ns();
                here.sync(&file).await;
                slowest = slowest.max(here.now_ns() - began);
                here.sleep(50 * MILLISECOND).await;
            }
            println!("R {round_trip_ms} ms: {} ms", slowest / MILLISECOND);
            assert!(slowest <= 3 * round_trip_ms * MILLISECOND, "R {round_trip_ms} ms: {slowest} ns");
        });
    }
}

#[test]
fn small_files_made_together_are_read_together() {
    for is_synced_at_once in [false, true] {
        small_files(is_synced_at_once);
    }
}

fn small_files(is_synced_at_once: bool) {
    let contents = ObjectContents::default();
    let writer = machine(&contents, store(30, 500));
    let here = Arc::clone(&writer.here);
    writer.run(async {
        // The device is known: a server persists its prices over restarts.
        let file = here.open(2000, 0);
        write_all(&here, &file, 0, 256 * MIB as u64).await;
        here.sync(&file).await;
        let mut files = Vec::new();
        for ino in 1..=1000 {
            let file = here.open(ino, 0);
            here.write(&file, 0, 8 * KIB, ino).await;
            if is_synced_at_once {
                here.sync(&file).await;
            }
            files.push(file);
        }
        here.sleep(2 * SECOND).await;
        for file in &files {
            here.sync(file).await;
        }
        println!("{:?}", here.store.figures());
        here.volume.close().await.unwrap();
    });
    drop(writer);
    let reader = machine(&contents, store(30, 500));
    let here = Arc::clone(&reader.here);
    reader.run(async {
        let before = here.store.figures().gets;
        for ino in 1..=1000 {
            let (file, mut data) = (here.open(ino, 8 * KIB as u64), vec![0; 8 * KIB]);
            assert_eq!(here.engine.read(&file, 0, &mut data).await, Ok(8 * KIB));
            assert_eq!(data, bytes(ino, 0, 8 * KIB), "file {ino}");
        }
        let gets = here.store.figures().gets - before;
        println!("{gets} GETs");
        assert!(gets <= 30, "{gets} GETs");
    });
}
