#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::experiment::tests::{Reported, asked, given};

fn request(options: &[(&str, &str)]) -> Request {
    Request { quick: true, ..given(&S2, options) }
}

fn rows(options: &[(&str, &str)]) -> (Vec<serde_json::Value>, Findings) {
    let mut kept = Reported::default();
    let findings = S2.run(&request(options), &mut kept).unwrap();
    (kept.json(), findings)
}

#[test]
fn drains_come_out_exactly_as_the_kernels_sources_give_them() {
    let (all, findings) = rows(&[("loops", "none")]);
    let rows: Vec<_> = all.into_iter().filter(|row| row["params"]["part"] == "drain").collect();
    assert_eq!(rows.len(), 8 * 6);
    let mut compared = 0;
    for row in &rows {
        assert!(row["published"].as_object().unwrap().is_empty(), "nobody published these: {row}");
        for name in ["lists_examined", "inner_checks"] {
            let counted = &row["metrics"][format!("kernel_source_{name}")];
            if !counted.is_null() {
                assert_eq!(&row["metrics"][name], counted, "{row}");
                compared += 1;
            }
        }
        assert_eq!(row["metrics"]["order"].as_str().unwrap().len(), 31);
    }
    // Heads: 8 of patch 1, 8 of patch 2, 8 with the shortcut, 7 of Linux 6.1; inner looks: 8 and 8.
    assert_eq!(compared, 8 + 8 + 8 + 7 + 8 + 8);
    let table = findings.tables[0].text(afflux_report::terminal::Terminal::PLAIN);
    assert!(table.contains("31 of 31") && findings.answer == "Counts: 1 of 1 are met.", "{table} {}", findings.answer);
}

#[test]
fn drains_in_a_row_grow_since_5_13() {
    let (rows, _) = rows(&[("loops", "none")]);
    let drains = |variant: &str| {
        let of = |row: &&serde_json::Value| row["params"]["part"] == "frees in a row" && row["variant"] == variant;
        rows.iter().find(of).unwrap()["metrics"]["drains_in_a_row"].as_u64().unwrap()
    };
    // The lists hold 23 frames at first, and are full with 186. Then 31 go, or 31, 62, 124 and from there on 155.
    assert_eq!([drains("BatchedDrain"), drains("ShortcutDrain")], [28, 28]);
    assert_eq!(drains("EmptyFirstDrain"), 8);
}

#[test]
fn contents_of_the_callers_are_drained_alone() {
    let (rows, _) = rows(&[("contents", "10/0/21,0/0/31"), ("drain", "31,5")]);
    assert_eq!(rows.len(), 2 * 2 * 6);
    let batched = rows.iter().find(|row| row["variant"] == "BatchedDrain").unwrap();
    let keys: Vec<&String> = batched.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 6, "{keys:?}");
    assert_eq!(batched["experiment"], "s2");
    assert_eq!(batched["source"], "simulated");
    assert_eq!(batched["params"]["contents"], "10/0/21");
    assert_eq!(batched["params"]["drain"], 31);
    assert_eq!(batched["metrics"]["lists_examined"], 32);
    assert_eq!(batched["metrics"]["order"], "MMU".repeat(10) + "M");
    let few = rows.iter().find(|row| row["variant"] == "ListPerClass" && row["params"]["drain"] == 5).unwrap();
    assert_eq!(few["metrics"]["order"], "MUMUM");
}

/// By hand, in the order of each kernel's classes. Patch 1: 36 looks for 12 pages of each class, then 1, then 3 for
/// each of 6. Patch 2: 18 for 18 pages, then 1, then 12 for 12. 2.6.39: the last 12 go with 3 looks. 6.1 has movable
/// between the two.
#[test]
fn lists_without_movable_pages_take_the_looks_that_a_hand_counts() {
    let (rows, _) = rows(&[("contents", "12/19/0"), ("drain", "31")]);
    let looks =
        |variant| rows.iter().find(|row| row["variant"] == variant).unwrap()["metrics"]["lists_examined"].clone();
    let found = ["ListPerClass", "BatchedDrain", "ShortcutDrain", "EmptyFirstDrain"].map(looks);
    assert_eq!(found, [55, 31, 22, 3]);
}

#[test]
fn more_than_there_is_drains_what_there_is() {
    let (rows, _) = rows(&[("contents", "1/1/1"), ("drain", "65536")]);
    assert!(rows.iter().all(|row| row["metrics"]["order"].as_str().unwrap().len() == 3), "{rows:?}");
}

#[test]
fn every_loop_gives_a_row_for_each_variant() {
    let (rows, findings) = rows(&[("contents", "1/0/0"), ("loops", "all"), ("instructions", "off")]);
    let loops: Vec<_> = rows.iter().filter(|row| row["params"]["loop"].is_string()).collect();
    // Three of the nine ask for blocks, which the last variant does not have.
    assert_eq!(loops.len(), 2 * (9 * VARIANTS.len() - 3));
    for row in loops {
        let metrics = &row["metrics"];
        assert!(metrics["cpu_ns"].as_f64().unwrap() > 0.0, "{row}");
        assert!(metrics["samples"].as_u64().unwrap() >= 3, "{row}");
        if row["variant"] != "SingleList" {
            assert_eq!(metrics["gain_percent"].is_null(), metrics["significant"] == false, "{row}");
        }
        let published = row["published"].as_object().unwrap();
        assert_eq!(
            published.is_empty(),
            !matches!(row["variant"].as_str(), Some("ZoneTunables" | "BatchedDrain"))
                || row["variant"] == "BatchedDrain" && !matches!(row["params"]["buffer_bytes"].as_u64(), Some(4096..)),
            "{row}"
        );
    }
    assert_eq!((findings.tables.len(), findings.details.len(), findings.figures.len()), (3, 1, 2));
}

#[test]
fn values_that_cannot_be_used_are_said_with_what_can() {
    let refused = |name: &str, value: &str, part: &str| {
        let error = asked(&S2, &[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(&format!("'{value}' for '--{name} ")) && error.contains(part), "{error}");
    };
    for contents in ["1/2", "1/2/3/4", "a/b/c", "-1/0/0", "0/0/0", "70000/0/0", "1/2/3,4"] {
        refused("contents", contents, "U/R/M");
    }
    for drain in ["0", "-1", "65537", "x", ""] {
        refused("drain", drain, "1 to 65536");
    }
    refused("loops", "iozone", "page_test");
    refused("threads", "3", "1 to 2");
    refused("instructions", "maybe", "auto, on, off");
    for count in [
        "page_test",
        "page_test:SingleList:0",
        "x:SingleList:5",
        "page_test:x:5",
        "netperf 4096:afflux:5",
        "kernbench:afflux:5",
    ] {
        refused("count", count, "LOOP:VARIANT:N");
    }
}

#[test]
fn a_counting_run_says_nothing() {
    for work in ["page_test", "netperf-4096", "hackbench"] {
        let (rows, findings) = rows(&[("count", &format!("{work}:afflux:1000"))]);
        assert!(rows.is_empty() && findings.tables.is_empty());
    }
}

#[test]
fn what_a_run_takes_beside_its_operations_is_not_counted() {
    assert_eq!(instructions::each(100, 5_000 + 100 * 7, 300, 5_000 + 300 * 7), 7.0);
}

#[test]
fn two_threads_share_the_operations() {
    use afflux_kernels::zone::{SingleList, Zone};
    let refills = |threads| {
        let zone = Zone::<SingleList>::new(1 << 15, threads);
        let load = loops::Load { work: LoopKind::PageTest, threads, operations: 51_200, timed: false };
        loops::run(&zone, &load, &loops::Memory::new()).unwrap();
        zone.counted(|it| it.refills) as f64
    };
    let (one, two) = (refills(1), refills(2));
    assert!((two / one - 1.0).abs() < 0.2, "{one} {two}");
}
