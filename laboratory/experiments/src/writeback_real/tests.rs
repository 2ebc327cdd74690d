#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::contenders::engine_options::temporary_on_a_disk;
use crate::experiment::tests::{Reported, given};
use crate::hardware::SlowDisk;

fn request(pairs: &[(&str, &str)]) -> Request {
    Request { quick: true, ..given(&WRITEBACK_REAL, pairs) }
}

fn number(row: &Row, name: &str) -> f64 {
    row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{name}: {row}"))
}

/// Runs in a directory of the test's own, so that a leftover would be seen.
fn run_in_own_directory(pairs: &[(&str, &str)]) -> Result<(Reported, Findings), String> {
    let own = afflux_scratch::Scratch::new(&temporary_on_a_disk(), "races-test").unwrap();
    let place = own.path().to_string_lossy().into_owned();
    let (mut kept, mut pairs) = (Reported::default(), pairs.to_vec());
    pairs.push(("directory", &place));
    let ran = WRITEBACK_REAL.run(&request(&pairs), &mut kept);
    assert_eq!(std::fs::read_dir(own.path()).unwrap().count(), 0, "something was left behind");
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(&place), "{mounts}");
    ran.map(|findings| (kept, findings)).map_err(|error| error.to_string())
}

#[test]
#[ignore = "real races: most of a minute"]
fn every_contender_runs_every_race_and_nothing_is_left_behind() {
    // A machine may lack more than root, so the test tries to make a disk.
    let scratch = afflux_scratch::Scratch::new(&temporary_on_a_disk(), "races-probe").unwrap();
    if let Err(why) = SlowDisk::queued(scratch.path(), 64 << 20, crate::hardware::DiskRates::default()) {
        return afflux_scratch::skipped!("{why}");
    }
    drop(scratch);
    let (kept, findings) = run_in_own_directory(&[]).unwrap();
    let of = |race: &str| kept.rows.iter().filter(|row| row.params.get("race") == Some(&race.into())).count();
    let counts = ["full-speed", "at-rate", "small-sync", "burst", "direct"].map(of);
    assert_eq!(counts, [3; 5], "two kernels, or the kernel and O_DIRECT, and the engine");
    for row in &kept.rows {
        match row.params.get("race").and_then(serde_json::Value::as_str) {
            Some("full-speed" | "at-rate") => {
                assert!(number(row, "end_to_end_mb_per_s") > 0.0 && number(row, "sync_s") >= 0.0, "{row}");
                assert!(row.metrics.get("dirty_bytes_max").is_some(), "{row}");
            }
            Some("small-sync") => assert!(number(row, "syncs") >= 1.0 && number(row, "sync_max_s") > 0.0, "{row}"),
            Some("burst") => assert!(number(row, "alone_ms") > 0.0 && number(row, "beside_ms") > 0.0, "{row}"),
            _ => assert!(number(row, "mb_per_s") > 0.0, "{row}"),
        }
    }
    // The kernel is not faster than its disk: 96 MiB at most, less the burst of the throttle.
    let kernel = kept.rows.iter().find(|row| row.variant == "kernel").unwrap();
    assert!(number(kernel, "end_to_end_mb_per_s") < 50.0, "{kernel}");
    assert!(kept.remarks.iter().any(|remark| remark.contains("takes about")), "{:?}", kept.remarks);
    assert_eq!((findings.tables.len(), findings.figures.len()), (6, 2), "a table a race, and the goals");
}

/// Every user can run this race.
#[test]
fn a_race_that_needs_no_throttle_is_held_without_root() {
    let (kept, findings) = run_in_own_directory(&[("races", "direct"), ("size", "4MB")]).unwrap();
    let names: Vec<&str> = kept.rows.iter().map(|row| row.variant.as_str()).collect();
    assert_eq!(names, ["O_DIRECT", "kernel", "afflux"]);
    assert!(findings.figures.is_empty());
}
