//! Each knob of each kernel's policy moves a figure, or is refused with the knob to set instead.
//!
//! One load has a part for each of them: a stream, a writer slower than its disk, few pages on a quiet disk, a reader,
//! a disk that is nearly full.

use std::sync::atomic::Ordering;

use afflux_engine::settings::{KnobInfo, Settings};
use afflux_linux_policies::{KNOBS, NAMES, policy};
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, slow};

/// An age that expires within the load, a background threshold above a slice, and a queue that the load fills.
const KNOBS_OF_LOAD: [&str; 5] = [
    "dirty_expire_centisecs=250",
    "dirty_writeback_centisecs=100",
    "dirty_ratio=80",
    "dirty_background_ratio=60",
    "writeback_depth=8",
];

/// A value of the knob that the load is to notice.
fn other_value(knob: &KnobInfo) -> &'static str {
    match knob.name {
        "dirty_ratio" => "70",
        "dirty_bytes" => "1MiB",
        "dirty_background_ratio" => "5",
        "dirty_background_bytes" => "256KiB",
        "dirty_background_centisecs" => "1",
        "dirty_expire_centisecs" => "100",
        "dirty_writeback_centisecs" => "30",
        "readahead_bytes_max" => "16KiB",
        "reserve_below_bytes" => "0",
        "writeback_depth" => "2",
        "writeback_request_batch" => "64",
        "min_ratio" => "20",
        "max_ratio" => "5",
        "min_bytes" => "768KiB",
        "max_bytes" => "256KiB",
        "strict_limit" => "1",
        "extent_pages" => "2048",
        "inodes_in_use" => "100000",
        name => panic!("{name}: a new knob needs a value here, and a place in the load"),
    }
}

/// The figures of a run of 7 s: for each disk what is dirty, under writeback, written and read, ten times a second;
/// of each caller its bytes and the longest call. Disks and memory are small, since a run costs what its bytes cost.
fn figures(name: &str, knob: Option<&str>) -> (Vec<[u64; 4]>, Vec<u64>) {
    let slower = || DiskOptions { bytes_per_second: 2_500_000, ..slow() };
    let nearly_full = DiskOptions { capacity_bytes: 4 << 20, ..slower() };
    let knobs: Vec<&str> = KNOBS_OF_LOAD.into_iter().chain(knob).collect();
    let lab = EngineFixture::new(name, 1, 4096, &[slower(), slower(), slower(), nearly_full], &knobs);
    let (quiet, busy) = (lab.file(2).0, lab.file(1).0);
    // These give the disks shares, without which they would be written for that reason.
    lab.run(async {
        lab.engine.write(&busy, 0, &[1; 1500 * PAGE as usize]).await.unwrap();
        lab.engine.sync(&busy, 0..u64::MAX).await.unwrap();
        lab.engine.write(&quiet, 0, &[1; 500 * PAGE as usize]).await.unwrap();
        lab.engine.sync(&quiet, 0..u64::MAX).await.unwrap();
        lab.engine.write(&quiet, 0, &[1; 4 * PAGE as usize]).await.unwrap();
    });
    let mut callers = vec![
        lab.stream(&lab.file(3).0, 512 << 10, 16 << 10),
        lab.stream_apart(&lab.file(1).0, 1 << 30, 16 << 10, 9 * MILLISECOND),
        lab.reads(0, 4 << 20, 20 * MILLISECOND),
    ];
    let mut looks = Vec::new();
    for look in 0..70 {
        if look == 40 {
            callers.push(lab.stream(&lab.file(0).0, 10 << 20, 16 << 10));
        }
        lab.sleep(SECOND / 10);
        looks.extend(
            lab.engine
                .status()
                .devices
                .iter()
                .map(|device| [device.dirty_bytes, device.writeback_bytes, device.written_bytes, device.read_bytes]),
        );
    }
    (looks, callers.iter().flat_map(|caller| [caller.bytes(), caller.longest_ns.load(Ordering::Relaxed)]).collect())
}

fn each_moves_a_figure_or_is_refused(name: &str) {
    let before = figures(name, None);
    let (settings, policies) = (Settings::with([&KNOBS]), policy(name).unwrap().policies);
    for (_, knob) in settings.all().filter(|(knob, _)| policies.refuse_ignored(&settings, *knob).is_ok()) {
        let assignment = format!("{}={}", knob.name, other_value(knob));
        assert!(figures(name, Some(&assignment)) != before, "{name}: {assignment} moves nothing, in silence");
    }
}

#[test]
fn each_knob_of_each_kernel_moves_a_figure_or_is_refused() {
    std::thread::scope(|scope| {
        NAMES.iter().for_each(|name| drop(scope.spawn(|| each_moves_a_figure_or_is_refused(name))));
    });
}
