//! A device that hangs from the start, and another device whose writer should go on.
//!
//! The formulas of a law tell whether this writer goes on. Let L be the dirty limit and B the background threshold. Q
//! is the capacity of the hung device's queue, S the pages that its writer dirtied before it was stopped, and O the
//! other's pages. Linux 3.6 and 6.1 give every writer a rate of 0 while S + O >= L (`wb_position_ratio`: the
//! limit is tested first).
//!
//! So the other writer depends on its flusher. The flusher runs while S - min(S, Q) + O > B, since pages under
//! writeback count for throttling and not for background (section 10, pitfall 10). It also runs while O exceeds its
//! share of B, which is all of B once only its device completes writes. Both conditions can fail at once if Q >= L - B:
//! then nothing is written until it expires. With 20 and 10 percent, and a kernel's queue of 128 requests of 512 KiB,
//! this happens below 640 MiB of dirtyable memory. On a larger machine the hung device's pages hold the sum above B,
//! and others go on (section 8, vi).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_linux_policies::NAMES;
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, PAGE, Progress, SECOND, slow};

/// At the limit, position control passes one page a sleep while the device has no more pages than the error of its
/// counters. A sleep is a tick, and under linux-6.1 lasts to the begin of the next: 4,096,000 and 2,048,000 bytes/s.
/// Less 2 % for the work between sleeps.
fn a_page_a_sleep(name: &str) -> u64 {
    let ticks = if name == "linux-6.1" { 2 } else { 1 };
    PAGE * 1_000 / ticks * 98 / 100
}

/// Requests that a hung disk takes: of 128, a quarter is reserved for reads.
const REQUESTS: u64 = 96;

/// Two disks with requests of `request_pages`, the first hung from the start, and a writer on each. Returns the
/// progress of the second.
fn hung_and_sound(name: &str, frames: u64, request_pages: u64, knobs: &[&str]) -> (EngineFixture, Arc<Progress>) {
    let disk = DiskOptions { request_bytes_max: (request_pages * PAGE) as u32, ..slow() };
    let lab = EngineFixture::new(name, 1, frames, &[disk.clone(), disk], knobs);
    lab.disks[0].hang();
    let stuck = lab.stream(&lab.file(0).0, 1 << 30, 64 << 10);
    let sound = lab.stream(&lab.file(1).0, 1 << 30, 64 << 10);
    lab.sleep(5 * SECOND);
    assert!(!stuck.ended() && !stuck.failed());
    (lab, sound)
}

#[test]
fn a_sound_device_gets_its_speed_where_the_hung_ones_queue_is_small() {
    let all = NAMES.iter().map(|name| (*name, 4096, 1));
    let large = [("linux-3.6", 16_384, 8), ("linux-6.1", 16_384, 8), ("linux-6.1", 65_536, 32)];
    for (name, frames, request_pages) in all.chain(large) {
        assert!(REQUESTS * request_pages < frames / 10, "Q < L - B");
        let (lab, sound) = hung_and_sound(name, frames, request_pages, &[]);
        for _ in 0..2 {
            let before = sound.bytes();
            lab.sleep(10 * SECOND);
            let speed = (sound.bytes() - before) / 10;
            assert!(speed > a_page_a_sleep(name), "{name}, {frames} frames: {speed} of 10,000,000 bytes/s");
        }
    }
}

#[test]
fn where_it_is_large_the_sound_devices_writer_waits_for_its_data_to_expire() {
    for name in NAMES {
        for frames in [4096, 16_384] {
            let (limit, background) = (frames / 5, frames / 10);
            let (lab, sound) = hung_and_sound(name, frames, 32, &[]);
            lab.sleep(20 * SECOND);
            let before = sound.bytes();
            // The formula by hand, on the figures of the run.
            let pages: Vec<_> = lab.engine.status().devices.iter().map(|device| device.dirty_bytes / PAGE).collect();
            let queued = lab.engine.status().devices[0].writeback_bytes / PAGE;
            assert!(pages[0] + pages[1] >= limit * 19 / 20, "{name}, {frames} frames: {pages:?}, at the limit");
            let reclaimable = pages[0] - queued + pages[1];
            assert!(
                queued * 20 > (limit - background) * 19,
                "{name}, {frames} frames: {queued} pages queued, Q >= L - B"
            );
            assert!(reclaimable <= background, "{name}, {frames} frames: {reclaimable} pages, {background}");
            // 30 s old, found by a look every 5 s.
            assert!(
                lab.until(20 * SECOND, || sound.bytes() > before),
                "{name}, {frames} frames: {:?}",
                lab.engine.status()
            );
            lab.sleep(60 * SECOND);
            let longest = sound.longest_ns.load(Ordering::Relaxed);
            assert!((20 * SECOND..36 * SECOND).contains(&longest), "{name}, {frames} frames: {longest} ns");
        }
    }
}

#[test]
fn an_earlier_expiry_or_background_lets_it_go_on() {
    for name in NAMES {
        // Either pages expire after one second instead of 30 (40,000 bytes/s above), or the other's pages alone exceed
        // the background threshold.
        for (knob, least) in
            [("dirty_expire_centisecs=50", 150_000), ("dirty_background_ratio=1", a_page_a_sleep(name))]
        {
            let (lab, sound) = hung_and_sound(name, 4096, 32, &[knob, "dirty_writeback_centisecs=50"]);
            let before = sound.bytes();
            lab.sleep(10 * SECOND);
            let speed = (sound.bytes() - before) / 10;
            assert!(speed > least, "{name}, {knob}: {speed} bytes/s");
        }
    }
}
