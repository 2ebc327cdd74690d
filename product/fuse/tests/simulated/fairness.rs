//! Programs that write at the same time to a slow disk.

//! rule: processes have equal parts of a disk below a mount, however many threads and files each has
//! kept in: `product/fuse/src/mount.rs`, `product/fuse/src/operations/data.rs`

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{MessageMachine, Tried};
use afflux_fuse::MountOptions;
use afflux_simulator::{DiskOptions, Memory, Setup};

use crate::kernel::{Kernel, ROOT, by, content, longs, name, u64_at, words};

const DISK_BYTES_PER_SECOND: u64 = 25_000_000;
/// Bytes of a WRITE.
const CHUNK: usize = 64 << 10;
/// Time that a program takes between two writes.
const PAUSE_NS: u64 = 16_000;
const SECONDS_BEFORE: u64 = 5;
const SECONDS: u64 = 30;

fn on_a_slow_disk() -> Kernel {
    let disk = DiskOptions { bytes_per_second: DISK_BYTES_PER_SECOND, ..DiskOptions::default() };
    Kernel::of(MountOptions::default(), disk, Memory::Stamped(1 << 30), Setup::of("afflux").unwrap())
}

/// Makes and opens a file in the root by this thread.
fn create(kernel: &Kernel, thread: u32) -> u64 {
    let body = [words(&[0o102, 0o100_644, 0, 0]), name(&format!("of thread {thread}"))].concat();
    let reply = kernel.send(by(thread, kernel.message(35, ROOT, &body))).unwrap();
    u64_at(&content(reply, kernel.last()).unwrap(), 128)
}

/// The thread writes the file from its start for ever, and counts the bytes that are answered. No other file has this
/// number.
fn writes(kernel: &Kernel, number: u64, thread: u32, fh: u64, written: &Arc<AtomicU64>) {
    let (mount, written, platform) =
        (Arc::clone(&kernel.mount), Arc::clone(written), Arc::clone(kernel.world.platform()));
    let body = [longs(&[fh, 0]), words(&[CHUNK as u32, 0, 0, 0, 0, 0]), vec![1; CHUNK]].concat();
    let mut message = by(thread, kernel.message(16, 0, &body));
    kernel.world.spawn("thread", async move {
        for round in 0_u64.. {
            let unique = number << 32 | round << 1;
            message[8..16].copy_from_slice(&unique.to_ne_bytes());
            message[48..56].copy_from_slice(&(round * CHUNK as u64).to_ne_bytes());
            let reply = match mount.try_answer(&message) {
                Tried::Reply(reply) => reply,
                _ => Arc::clone(&mount).answer(Box::new(message.clone())).await.unwrap(),
            };
            content(reply, unique).unwrap();
            written.fetch_add(CHUNK as u64, Ordering::Relaxed);
            platform.sleep_until(platform.now().after(PAUSE_NS)).await;
        }
    });
}

fn passes(kernel: &Kernel, seconds: u64) {
    let platform = Arc::clone(kernel.world.platform());
    kernel.world.run(async move { platform.sleep_until(platform.now().after(seconds * Nanos::SECOND)).await }).unwrap();
}

/// The bytes of each program in the measured time. A program is given by the threads that open its files, and by the
/// process whose threads write them.
fn parts(programs: [(Range<u32>, u32); 2]) -> [u64; 2] {
    let kernel = on_a_slow_disk();
    let written = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    for ((openers, writer), written) in programs.into_iter().zip(&written) {
        for opener in openers {
            let thread = writer * 100 + opener % 100;
            writes(&kernel, opener.into(), thread, create(&kernel, opener), written);
        }
    }
    passes(&kernel, SECONDS_BEFORE);
    let now = || [0, 1].map(|program: usize| written[program].load(Ordering::Relaxed));
    let before = now();
    passes(&kernel, SECONDS);
    let after = now();
    [0, 1].map(|program| after[program] - before[program])
}

fn assert_equal(parts: [u64; 2]) {
    let all = DISK_BYTES_PER_SECOND * SECONDS;
    assert!(parts.iter().all(|part| (all * 45 / 100..=all * 55 / 100).contains(part)), "{parts:?} of {all} bytes");
}

#[test]
fn a_program_of_twenty_threads_gets_as_much_as_one_of_one_thread() {
    assert_equal(parts([(100..120, 1), (200..201, 2)]));
}

#[test]
fn the_process_that_opened_the_files_pays_for_those_that_write_them() {
    // The files of the first program are written by another process; the second one writes its own.
    assert_equal(parts([(100..120, 3), (200..201, 2)]));
    // One process writes for both.
    assert_equal(parts([(100..120, 3), (200..201, 3)]));
}
