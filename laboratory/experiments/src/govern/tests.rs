#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_scratch::Scratch;

use super::*;
use crate::contenders::engine_options::temporary_on_a_disk;
use crate::experiment::tests::{Reported, given};
use crate::hardware::{DiskRates, SlowDisk};

fn number(row: &Row, name: &str) -> f64 {
    row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{name}: {row}"))
}

fn row<'a>(kept: &'a Reported, race: &str, variant: &str) -> &'a Row {
    let is = |row: &&Row| row.variant == variant && row.params.get("race") == Some(&race.into());
    kept.rows.iter().find(is).unwrap_or_else(|| panic!("no {race}, {variant}"))
}

#[test]
fn the_options_choose_what_is_run() {
    let pairs = [("races", "full-speed,slower"), ("subjects", "kernel,governed"), ("repeats", "2")];
    let plan = Plan::read(&given(&GOVERN, &pairs)).unwrap();
    let (full, slower) = (GovernRace::FullSpeed, GovernRace::Slower);
    let governed = Subject::Governed;
    assert_eq!(plan.simulated(), [(full, Subject::Kernel), (full, governed), (slower, governed)]);
    let second = [(full, governed), (slower, governed)];
    assert_eq!(plan.measured(), [&plan.simulated()[..], &second].concat(), "the kernel by itself once");
}

/// In virtual time: exact, and the same everywhere.
#[test]
fn under_linux_6_1_a_governed_disk_owes_its_budget_and_is_as_fast() {
    let mut kept = Reported::default();
    let mut plan = Plan::read(&given(&GOVERN, &[("seconds", "20")])).unwrap();
    plan.memory_bytes = 512 << 20;
    for (race, subject) in plan.simulated() {
        let ran = simulated::run(&plan, race, subject).unwrap();
        kept.row(&super::row(&plan, FigureSource::Simulated, race, subject, &ran));
    }
    let governed = row(&kept, "full-speed", "governed");
    let kernel = row(&kept, "full-speed", "kernel");
    assert!(number(governed, "sync_s") <= 1.3, "{governed}");
    assert!(number(kernel, "sync_s") > 2.0, "{kernel}");
    assert!(number(governed, "end_to_end_mb_per_s") >= 0.99 * number(kernel, "end_to_end_mb_per_s"), "{governed}");
    let followed = row(&kept, "slower", "governed");
    assert!(number(followed, "followed_s") <= 10.0 && number(followed, "sync_s") <= 1.3, "{followed}");
}

/// Takes seconds. Checks that everything runs and is taken down, not the results.
#[test]
#[ignore = "real races: a minute"]
fn every_race_is_run_on_a_throttled_disk_and_nothing_is_left_behind() {
    let scratch = Scratch::new(&temporary_on_a_disk(), "govern-test").unwrap();
    if let Err(why) = SlowDisk::queued(scratch.path(), 64 << 20, DiskRates::default()) {
        return afflux_scratch::skipped!("{why}");
    }
    let place = scratch.path().to_string_lossy().into_owned();
    let pairs = [("directory", place.as_str()), ("measured-only", ""), ("races", "full-speed,slower,burst")];
    let request = Request { quick: true, measured: true, ..given(&GOVERN, &pairs) };
    let mut kept = Reported::default();
    let findings = GOVERN.run(&request, &mut kept).unwrap();
    assert_eq!(kept.rows.len(), 8, "three subjects in two races, and two whose disk gets slower");
    assert!(number(row(&kept, "full-speed", "governed"), "end_to_end_mb_per_s") > 0.0);
    assert!(number(row(&kept, "burst", "governed"), "alone_ms") > 0.0);
    assert_eq!((findings.tables.len(), findings.figures.len()), (4, 2));
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "something was left behind");
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(&place), "{mounts}");
}
