#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_scratch::Scratch;

use super::*;
use crate::contenders::engine_options::temporary_on_a_disk;
use crate::experiment::tests::{Reported, given};

/// Runs in a directory of the test's own, so that a leftover would be seen.
fn run(pairs: &[(&str, &str)]) -> (Reported, Findings) {
    let own = Scratch::new(&temporary_on_a_disk(), "classes-test").unwrap();
    let medium = own.path().to_string_lossy().into_owned();
    let request = given(&CLASSES, &[pairs, &[("directory", medium.as_str())]].concat());
    let mut kept = Reported::default();
    let findings = CLASSES.run(&Request { quick: true, ..request }, &mut kept).unwrap();
    assert_eq!(std::fs::read_dir(own.path()).unwrap().count(), 0, "something was left behind");
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(&medium), "{mounts}");
    (kept, findings)
}

fn number(row: &Row, name: &str) -> f64 {
    row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{name}: {row}"))
}

#[test]
fn every_load_is_run_in_every_way_and_on_every_place_there_is() {
    let (kept, findings) = run(&[("policy", "afflux,linux-6.1")]);
    let scratch = Scratch::new(&temporary_on_a_disk(), "classes-probe").unwrap();
    let memory = MemoryDisk::new(scratch.path(), 32 << 20);
    let media = if let Err(why) = &memory { (afflux_scratch::skipped!("a part: {why}"), 1).1 } else { 2 };
    drop(memory);
    let left_out = kept.remarks.iter().any(|remark| remark.contains("a loop device in memory was left out"));
    assert_eq!(left_out, media == 1, "{:?}", kept.remarks);
    let of = |load: &str, name: &str| {
        let is = |row: &&Row| row.params.get("load") == Some(&load.into()) && row.variant == name;
        kept.rows.iter().filter(is).count()
    };
    for load in ["one", "four", "files"] {
        for name in ["buffered", "afflux", "afflux, linux-6.1"] {
            assert_eq!(of(load, name), media, "{load} {name}");
        }
    }
    for name in ["buffered + buffered", "buffered + afflux", "afflux + afflux"] {
        assert_eq!(of("competing", name), media, "{name}");
    }
    for row in &kept.rows {
        assert!(number(row, "mb_per_s") > 0.0 && number(row, "write_p999_ms") > 0.0, "{row}");
        assert_eq!(row.metrics.get("second_accepted_mb_per_s").is_some(), row.variant.contains('+'), "{row}");
    }
    // All loads, the competing ones, and the published figures.
    assert_eq!((findings.tables.len(), findings.figures.len()), (3, 3));
}

#[test]
fn releases_have_their_form() {
    use super::published::Form;
    assert_eq!(Form::of("6.13.9"), Some(Form::None));
    assert_eq!(Form::of("6.14-rc1"), Some(Form::Old));
    assert_eq!(Form::of("7.1.12"), Some(Form::Old));
    assert_eq!((Form::of("7.2"), Form::of("10.0.1")), (Some(Form::New), Some(Form::New)));
    assert_eq!((Form::of(""), Form::of("next")), (None, None));
}
