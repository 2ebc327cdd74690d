#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_report::terminal::Terminal;

use super::*;
use crate::eviction::ratios::Spread;
use crate::experiment::tests::{Reported, asked};

fn run(options: &[(&str, &str)]) -> Result<(Vec<serde_json::Value>, Findings), LabError> {
    let mut kept = Reported::default();
    let findings = EVICTION.run(&Request { quick: true, ..asked(&EVICTION, options)? }, &mut kept)?;
    Ok((kept.json(), findings))
}

#[test]
fn hit_ratios_are_those_of_the_first_study() {
    // The cells of that study with the same generator, in percent, at a quarter of its size.
    let (rows, findings) = run(&[
        ("generators", "zipf-0.8,zipf-1.2"),
        ("pages", "65536"),
        ("touches", "400000"),
        ("parts", "64,16,4"),
        ("devices", "none"),
        ("traces", "none"),
    ])
    .unwrap();
    let ratio = |generator: &str, part: u64, policy: &str| {
        let found = rows.iter().find(|row| {
            row["params"]["generator"] == generator && row["params"]["cache_part"] == part && row["variant"] == policy
        });
        100.0 * found.unwrap()["metrics"]["hit_ratio"].as_f64().unwrap()
    };
    for (policy, expected) in [
        ("lru", [24.0, 40.0, 64.0]),
        ("arc", [34.0, 48.0, 67.0]),
        ("sieve", [34.0, 48.0, 69.0]),
        ("s3-fifo", [35.0, 49.0, 69.0]),
        ("s3-window", [35.0, 50.0, 69.0]),
        ("belady", [45.0, 62.0, 82.0]),
    ] {
        for (part, expected) in [64, 16, 4].into_iter().zip(expected) {
            let found = ratio("zipf-0.8", part, policy);
            assert!((found - expected).abs() <= 1.2, "{policy} at 1/{part}: {found}, {expected} expected");
        }
    }
    assert!((ratio("zipf-1.2", 16, "s3-window") - 91.0).abs() <= 1.0);
    // The policies are closer to each other than the tolerance, so their order is checked, too.
    let order = ["lru", "two-list", "sieve", "s3-fifo", "s3-window", "belady"];
    for generator in ["zipf-0.8", "zipf-1.2"] {
        let ratios = order.map(|policy| ratio(generator, 16, policy));
        assert!(ratios.is_sorted() && ratios[3] < ratios[4], "{generator}: {ratios:?}");
    }
    assert_eq!(rows.len(), 2 * 3 * (POLICIES.len() + ENGINES.len()), "the engine's policies run with dirty pages, too");
    for row in rows.iter().filter(|row| row["params"]["dirty"] == 1) {
        let ratio = row["metrics"]["misses_to_clean"].as_f64().unwrap();
        assert!((0.9..1.3).contains(&ratio) && ratio != 1.0, "{row}");
    }
    assert_eq!((findings.tables.len(), findings.details.len()), (2, 2));
    assert!(findings.tables[0].text(Terminal::PLAIN).contains("6 of 6 rows"), "{:?}", findings.tables[0]);
}

#[test]
fn a_scan_costs_the_default_less_than_the_kernels_lists() {
    let (rows, _) =
        run(&[("generators", "scan-hot,small-reads"), ("parts", "64,16,4"), ("devices", "none"), ("traces", "none")])
            .unwrap();
    let hits = |policy: &str| -> Vec<f64> {
        let own = rows.iter().filter(|row| row["variant"] == policy && row["params"]["dirty"].is_null());
        own.map(|row| row["metrics"]["hit_ratio"].as_f64().unwrap()).collect()
    };
    let (own, kernel) = (hits("s3-window"), hits("two-list"));
    assert!(own.len() == 6 && own.iter().zip(&kernel).all(|(own, kernel)| own > kernel), "{own:?} {kernel:?}");
}

#[test]
fn the_engine_on_a_device_is_told_by_its_costs() {
    let options = [
        ("generators", "zipf-1.0"),
        ("devices", "nvme-ssd"),
        ("device-pages", "2048"),
        ("pages", "1024"),
        ("traces", "none"),
    ];
    let (rows, findings) = run(&options).unwrap();
    let on_devices: Vec<_> = rows.iter().filter(|row| row["params"]["device"] == "nvme-ssd").collect();
    assert_eq!(on_devices.len(), 2 * ENGINES.len());
    for row in on_devices {
        let metric = |name: &str| row["metrics"][name].as_f64().unwrap();
        assert!(metric("device_us") > 0.0 && metric("client_us") > 0.0, "{row}");
        assert!(
            (0.3..0.99).contains(&metric("hit_ratio")) && (0.5..2.0).contains(&metric("written_per_dirtied")),
            "{row}"
        );
        // Eight clients wait for one device, which is busy for most of their time.
        assert!(metric("client_us") > 2.0 * metric("device_us"), "{row}");
        // Most reads are hits, but not 99 of 100: such a read waits for the device.
        assert!(metric("read_p99_us") > metric("client_us"), "{row}");
        let read = &row["metrics"]["delays"]["0"]["read"];
        assert!(read["count"].as_u64() > Some(0) && read["max_ms"].as_f64() >= read["average_ms"].as_f64(), "{row}");
    }
    assert_eq!((findings.tables.len(), findings.details.len(), findings.figures.len()), (3, 3, 2));
    assert_eq!(run(&options).unwrap().0, rows, "the same again");
}

/// The rows of the tuned traces, or of those held out.
fn trace_rows(held_out: bool) -> Vec<TraceRow> {
    let traces = TRACES.iter().filter(|trace| trace.held_out == held_out);
    traces.flat_map(|trace| traces::PARTS.map(|part| TraceRow::run(trace, part).unwrap())).collect()
}

/// The worst ratio, and in how many rows the goal is missed. All these are printed.
fn against_the_goal(what: &str, rows: &[TraceRow], ratio: fn(&TraceRow) -> f64) -> (f64, usize) {
    let over: Vec<&TraceRow> = rows.iter().filter(|row| ratio(row) > findings::GOAL).collect();
    over.iter().for_each(|row| println!("{what}: {} at {}: {:.3}", row.trace, row.part, ratio(row)));
    let worst = rows.iter().map(ratio).fold(0.0, f64::max);
    println!("{what}: {} of {} rows miss the goal, the worst has {worst:.3}", over.len(), rows.len());
    (worst, over.len())
}

/// The bounds are what holds today. Both goals, 3 % in every row, are missed (`docs/develop/decisions/eviction.md`).
#[test]
#[ignore = "70 rows: some minutes"]
fn recorded_traces_are_read_no_worse_than_when_they_were_recorded() {
    let rows = trace_rows(false);
    let (worst, over) = against_the_goal("to the best policy", &rows, TraceRow::to_best);
    assert!(worst <= 1.10 && over <= 11, "{worst}, {over} of {}", rows.len());
    let (worst, over) = against_the_goal("with readahead", &rows, TraceRow::readahead_ratio);
    assert!(worst <= 1.28 && over <= 25, "{worst}, {over} of {}", rows.len());
}

/// Nothing was chosen by these traces. They show what the goals are worth elsewhere.
#[test]
fn traces_held_out_are_read_no_worse_than_when_they_were_recorded() {
    let rows = trace_rows(true);
    let (to_best, _) = against_the_goal("to the best policy", &rows, TraceRow::to_best);
    let (ahead, _) = against_the_goal("with readahead", &rows, TraceRow::readahead_ratio);
    assert!(to_best <= 1.10 && ahead <= 1.115, "{to_best}, {ahead}");
}

#[test]
fn what_cannot_be_used_is_said_with_what_can() {
    for (name, value, part) in [
        ("generators", "lru", "zipf-0.8"),
        ("devices", "floppy", "nvme-ssd"),
        ("parts", "1", "2 to 1024"),
        ("pages", "7", "1024"),
        ("traces", "floppy", "vm-tight"),
    ] {
        let error = run(&[(name, value)]).err().unwrap().to_string();
        let refused = format!("invalid value '{value}' for '--{name} ");
        assert!(error.contains(&refused) && error.contains(part), "{error}");
    }
}

#[test]
fn a_spread_has_its_percentiles() {
    let spread = Spread::of((0..=100).map(|percent| f64::from(percent) / 100.0));
    assert_eq!((spread.p10, spread.p90, spread.worst), (0.1, 0.9, 0.0));
    assert!((spread.mean - 0.5).abs() < 1e-9);
}
