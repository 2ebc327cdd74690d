//! Each knob of each kernel's policy moves a figure, or is refused with the knob to set in its place.
//!
//! One load has a place for each of them: a stream, a writer slower than its disk, few pages on a quiet disk, a reader,
//! a disk that is nearly full.

use std::sync::atomic::Ordering;

use afflux_engine::settings::{KnobInfo, Settings};
use afflux_linux_policies::{KNOBS, NAMES, policy};
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, slow};

/// An age that expires within the load, and a queue that the load fills.
const KNOBS_OF_LOAD: [&str; 2] = ["dirty_expire_centisecs=700", "writeback_depth=8"];

/// A value of the knob that the load is to notice.
fn other_value(knob: &KnobInfo) -> &'static str {
    match knob.name {
        "dirty_ratio" => "40",
        "dirty_bytes" => "4MiB",
        "dirty_background_ratio" => "2",
        "dirty_background_bytes" => "1MiB",
        "dirty_background_centisecs" => "1",
        "dirty_expire_centisecs" => "200",
        "dirty_writeback_centisecs" => "100",
        "readahead_bytes_max" => "16KiB",
        "reserve_below_bytes" => "0",
        "writeback_depth" => "2",
        "writeback_request_batch" => "64",
        "min_ratio" => "20",
        "max_ratio" => "5",
        "min_bytes" => "3MiB",
        "max_bytes" => "1MiB",
        "strict_limit" => "1",
        "extent_pages" => "2048",
        "inodes_in_use" => "100000",
        name => panic!("{name}: a new knob needs a value here, and a place in the load"),
    }
}

/// The figures of a run of 16 s: for each disk what is dirty, under writeback, written and read, ten times a second;
/// of each caller its bytes and the longest call.
fn figures(name: &str, knob: Option<&str>) -> (Vec<[u64; 4]>, Vec<u64>) {
    let nearly_full = DiskOptions { capacity_bytes: 16 << 20, ..slow() };
    let knobs: Vec<&str> = KNOBS_OF_LOAD.into_iter().chain(knob).collect();
    let lab = EngineFixture::new(name, 1, 16_384, &[slow(), slow(), slow(), nearly_full], &knobs);
    let quiet = lab.file(2).0;
    // This gives the disk a share, without which it would be written for that reason.
    lab.run(async {
        lab.engine.write(&quiet, 0, &[1; 2000 * PAGE as usize]).await.unwrap();
        lab.engine.sync(&quiet, 0..u64::MAX).await.unwrap();
        lab.engine.write(&quiet, 0, &[1; 4 * PAGE as usize]).await.unwrap();
    });
    let mut callers = vec![
        lab.stream(&lab.file(3).0, 2 << 20, 64 << 10),
        lab.stream_apart(&lab.file(1).0, 1 << 30, 64 << 10, 9 * MILLISECOND),
        lab.reads(0, 4 << 20, 20 * MILLISECOND),
    ];
    let mut looks = Vec::new();
    for look in 0..160 {
        if look == 60 {
            callers.push(lab.stream(&lab.file(0).0, 40 << 20, 64 << 10));
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

#[test]
fn each_knob_of_each_kernel_moves_a_figure_or_is_refused() {
    for name in NAMES {
        let before = figures(name, None);
        let (settings, policies) = (Settings::with([&KNOBS]), policy(name).unwrap().policies);
        let obeyed = settings.all().filter(|(knob, _)| policies.refuse_ignored(&settings, *knob).is_ok());
        for (_, knob) in obeyed {
            let assignment = format!("{}={}", knob.name, other_value(knob));
            assert!(figures(name, Some(&assignment)) != before, "{name}: {assignment} moves nothing, in silence");
        }
    }
}
