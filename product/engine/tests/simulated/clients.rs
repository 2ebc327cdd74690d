//! A device's time is divided among waiting clients, however many files each writes.

//! rule: clients have equal parts of a device, however many files each writes
//! kept in: `product/engine/src/devices/payer.rs`, `product/budget/src/policy/device.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::Client;
use afflux_engine::settings::Knob;

use crate::fixture::{EngineFixture, PAGE, SECOND};
use crate::streams::{SLOW, disk, lab};

/// Bytes that a client has written.
type Written = Arc<AtomicU64>;

/// The client writes a file from its start, 64 KiB a call, for ever.
fn streams(lab: &EngineFixture, client: &Client, written: &Written) {
    let (here, to, client, written) = (Arc::clone(&lab.here), lab.file(0, 0, 0), client.clone(), Arc::clone(written));
    lab.world.spawn("stream", async move {
        let (bytes, mut offset) = (vec![0; 64 << 10], 0);
        loop {
            here.engine.write_for(Some(&client), &to.file, offset, &bytes).await.unwrap();
            offset += bytes.len() as u64;
            written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            here.sleep(16_000).await;
        }
    });
}

/// The client writes one new file of `len` bytes after the other, each in one call.
fn writes_small_files(lab: &EngineFixture, client: &Client, len: usize, written: &Written) {
    let (here, client, written) = (Arc::clone(&lab.here), client.clone(), Arc::clone(written));
    let disk = Arc::clone(&here.disks[0]);
    lab.world.spawn("small files", async move {
        let bytes = vec![0; len];
        loop {
            let id = disk.create_file();
            let file = here.engine.open(here.devices[0], disk.backing(id), 0);
            here.engine.write_for(Some(&client), &file, 0, &bytes).await.unwrap();
            written.fetch_add(len as u64, Ordering::Relaxed);
            here.sleep(1000 * len.div_ceil(PAGE) as u64).await;
        }
    });
}

/// Bytes that each client has written in this many seconds, after the first five.
fn in_seconds(lab: &EngineFixture, seconds: u64, written: &[Written]) -> Vec<f64> {
    lab.passes(5 * SECOND);
    let now = || written.iter().map(|written| written.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let before = now();
    lab.passes(seconds * SECOND);
    now().iter().zip(before).map(|(now, before)| (now - before) as f64).collect()
}

/// A client has this many calls of `len` bytes in flight, like an NFS client that copies a large file. Returns the
/// longest call and the bytes of a minute.
fn copies(in_flight: u64, len: usize) -> (u64, u64) {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let (client, file, longest) = (Client::named("10.0.0.1"), lab.file(0, 0, 0), Written::default());
    let written = Written::default();
    for slot in 0..in_flight {
        let (here, to, client) = (Arc::clone(&lab.here), file.clone(), client.clone());
        let (longest, written) = (Arc::clone(&longest), Arc::clone(&written));
        lab.world.spawn("slot", async move {
            let bytes = vec![0; len];
            for turn in 0.. {
                let (offset, began) = ((turn * in_flight + slot) * len as u64, here.now_ns());
                here.engine.write_for(Some(&client), &to.file, offset, &bytes).await.unwrap();
                longest.fetch_max(here.now_ns() - began, Ordering::Relaxed);
                written.fetch_add(len as u64, Ordering::Relaxed);
                here.sleep(16_000).await;
            }
        });
    }
    lab.passes(60 * SECOND);
    (longest.load(Ordering::Relaxed), written.load(Ordering::Relaxed))
}

#[test]
fn no_reply_is_withheld_for_longer_than_a_second_in_normal_work() {
    for (in_flight, len) in [(64, 32 << 10), (64, 64 << 10), (16, 256 << 10), (4, 1 << 20)] {
        let (longest_ns, written) = copies(in_flight, len);
        println!("{in_flight} x {len}: {longest_ns} ns {written}");
        assert!(longest_ns <= SECOND, "{in_flight} calls of {len} bytes in flight: one waited {longest_ns} ns");
        assert!(written >= SLOW * 60 * 97 / 100, "{in_flight} calls of {len} bytes in flight: {written} bytes");
    }
}

fn jain(bytes: &[f64]) -> f64 {
    let (sum, squares) = (bytes.iter().sum::<f64>(), bytes.iter().map(|bytes| bytes * bytes).sum::<f64>());
    sum * sum / (bytes.len() as f64 * squares)
}

#[test]
fn a_client_with_twenty_files_gets_no_more_than_one_with_one() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let (clients, written) = (["10.0.0.1", "10.0.0.2"].map(Client::named), [Written::default(), Written::default()]);
    streams(&lab, &clients[0], &written[0]);
    (0..20).for_each(|_| streams(&lab, &clients[1], &written[1]));
    let bytes = in_seconds(&lab, 60, &written);
    assert!(jain(&bytes) >= 0.99, "{bytes:?}");
    assert!(bytes.iter().sum::<f64>() >= SLOW as f64 * 60.0 * 0.97, "{bytes:?}");
}

#[test]
fn a_client_that_acts_for_many_users_gets_no_more_than_one_that_acts_for_one() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let (clients, written) = (["10.0.0.1", "10.0.0.2"].map(Client::named), [Written::default(), Written::default()]);
    streams(&lab, &clients[0].of_user(0), &written[0]);
    (0..10).for_each(|user| streams(&lab, &clients[1].of_user(user), &written[1]));
    let bytes = in_seconds(&lab, 60, &written);
    assert!(jain(&bytes) >= 0.99, "{bytes:?}");
}

#[test]
fn the_files_of_one_client_share_its_part_evenly_and_three_clients_have_a_third_each() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let written: Vec<Written> = (0..9).map(|_| Written::default()).collect();
    for (name, files) in [("10.0.0.1", 0..1), ("10.0.0.2", 1..3), ("10.0.0.3", 3..9)] {
        files.for_each(|file| streams(&lab, &Client::named(name), &written[file]));
    }
    let bytes = in_seconds(&lab, 60, &written);
    let of_clients = [0..1, 1..3, 3..9].map(|files: std::ops::Range<usize>| bytes[files].iter().sum::<f64>());
    assert!(jain(&of_clients) >= 0.99, "{of_clients:?}");
    assert!(jain(&bytes[1..3]) >= 0.99 && jain(&bytes[3..9]) >= 0.99, "{bytes:?}");
}

#[test]
fn a_client_of_small_files_gets_no_more_than_a_stream_beside_it() {
    for len in [PAGE, 48 << 10, 300 << 10] {
        let lab = lab(1 << 30, &[disk(SLOW)]);
        let written = [Written::default(), Written::default()];
        streams(&lab, &Client::named("10.0.0.1"), &written[0]);
        writes_small_files(&lab, &Client::named("10.0.0.2"), len, &written[1]);
        let bytes = in_seconds(&lab, 15, &written);
        // The part is of device time, and a small file takes more of it than its bytes do.
        assert!(bytes[0] >= SLOW as f64 * 15.0 * 0.45, "{len}: {bytes:?}");
        assert!(bytes[1] >= SLOW as f64 * 15.0 * 0.3, "{len}: {bytes:?}");
    }
}

/// Holds this many calls of 32 KiB of one file in flight, as a kernel's NFS client does.
fn streams_with_calls_in_flight(lab: &EngineFixture, client: &Client, calls: u64, written: &Written) {
    let (to, next) = (Arc::new(lab.file(0, 0, 0)), Arc::new(AtomicU64::new(0)));
    for _ in 0..calls {
        let (here, to, next) = (Arc::clone(&lab.here), Arc::clone(&to), Arc::clone(&next));
        let (client, written) = (client.clone(), Arc::clone(written));
        lab.world.spawn("call", async move {
            let bytes = vec![0; 32 << 10];
            loop {
                let offset = next.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                here.engine.write_for(Some(&client), &to.file, offset, &bytes).await.unwrap();
                written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                here.sleep(16_000).await;
            }
        });
    }
}

#[test]
fn one_file_is_one_payer_however_many_of_its_calls_wait() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let written = [Written::default()];
    streams_with_calls_in_flight(&lab, &Client::named("10.0.0.1"), 64, &written[0]);
    let bytes = in_seconds(&lab, 20, &written);
    assert!(bytes[0] >= SLOW as f64 * 20.0 * 0.97, "{bytes:?}");
    assert_eq!(lab.number(0, "payers_on_average"), 1, "{}", lab.figures(0));
    assert_eq!(lab.number(0, "budget_in_force_ns"), SECOND);
}

#[test]
fn a_background_threshold_above_where_writers_pause_keeps_nobody_waiting_for_a_flusher() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    lab.here.engine.set_device_knob(lab.here.devices[0], Knob::BackgroundCentisecs, 300).unwrap();
    let written = [Written::default()];
    streams_with_calls_in_flight(&lab, &Client::named("10.0.0.1"), 8, &written[0]);
    let bytes = in_seconds(&lab, 20, &written);
    assert!(bytes[0] >= SLOW as f64 * 20.0 * 0.97, "{bytes:?}: {}", lab.figures(0));
}
