//! A page with all kinds of parts, as a reader sees it in a real browser.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::env;
use std::fs;
use std::path::PathBuf;

use afflux_report::{Align, Axis, Bar, Bars, Cell, HtmlPage, Plot, Quantity, Series, Shape, Table};
use afflux_scratch::Scratch;

/// The variable that names a directory for pictures of the pages.
const PICTURES: &str = "AFFLUX_PICTURES";

#[test]
fn a_reader_finds_no_fault_with_a_page() {
    if afflux_page_check::installed().is_none() {
        afflux_scratch::skipped!("no Chromium (Debian: apt-get install --no-install-recommends chromium)");
        return;
    }
    let scratch = Scratch::new(&env::temp_dir(), "report-pages").unwrap();
    let page = scratch.path().join("everything.html");
    fs::write(&page, everything()).unwrap();
    let pictures = env::var_os(PICTURES).map(PathBuf::from);
    let faults = afflux_page_check::Checker::start().unwrap().check(&page, pictures.as_deref()).unwrap();
    assert_eq!(faults, Vec::<String>::new());
}

fn everything() -> String {
    let mut page = HtmlPage::new("Everything that a page can have, and <b>names</b> that are rather long", "simulated");
    page.answer("What came out in a sentence with its figures: accepted after 65 s, on disk after 87 s.");
    page.paragraph("Text that says what this is about, in a sentence or two.");
    page.listing(
        "afflux-lab simulate 'my job.fio' --device=usb2-disk --policy=linux-6.1 --policy=afflux --set=budget_ms=2500",
    );
    page.facts([
        ("seed", "18446744073709551615".to_owned()),
        ("trace", "0123456789abcdef".to_owned()),
        ("device", "five-sata-disks-in-a-stripe-as-in-2009".to_owned()),
        ("virtual time", "63.2 s".to_owned()),
    ]);
    page.section("Plots");
    let long = "a series whose name is so long that no telephone in the world could ever show it whole";
    for (count, points) in [(6, 2_000), (2, 5), (1, 1), (1, 0)] {
        let x = Axis::new("Time", Quantity::Time).range(0.0, 93.0);
        let mut plot = Plot::new(format!("{count} lines of {points} points"), x, Axis::new("Dirty", Quantity::Memory))
            .note("The limit is dashed.")
            .with(Series::new("limit in force", Shape::Reference, vec![(0.0, 4e8), (40.0, 3e8)]));
        for order in 0..count {
            let name = if order == 5 { long.to_owned() } else { format!("series {order}") };
            plot = plot.with(Series::new(name, Shape::Line, wave(order, points)));
        }
        page.figure(plot);
    }
    let same =
        Plot::new("Lines on each other", Axis::new("Time", Quantity::Time), Axis::new("Dirty", Quantity::Memory));
    page.figure(
        ["linux-3.6", "linux-3.6-kept", "another"].into_iter().fold(same, |plot, name| {
            plot.with(Series::new(name, Shape::Line, wave(usize::from(name == "another"), 300)))
        }),
    );
    page.figure(offsets());
    page.figure(latencies());
    page.figure(bars());
    page.section("Tables");
    page.table(&wide_table());
    page.table(&words_table());
    page.words([("seed", "the number from which all that is random in a run is made")]);
    page.folded("All of it", |page| {
        page.table(&wide_table());
        page.listing("[backup]\nrw=write\nsize=1g");
    });
    page.html("seed 18446744073709551615, trace 0123456789abcdef")
}

fn wave(order: usize, points: usize) -> Vec<(f64, f64)> {
    let height = |at: f64| 2e8 + 1e8 * (at / 9.0 + order as f64).sin() + 2e7 * (at * 31.0).sin();
    (0..points).map(|at| 93.0 * at as f64 / points as f64).map(|at| (at, height(at))).collect()
}

fn wide_table() -> Table {
    let columns = ["job", "call", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max", "published", "ours", "sd"];
    let columns: Vec<_> = columns.iter().map(|&title| (title, Align::Right)).collect();
    let mut table = Table::new("Latency", &columns);
    for job in ["backup", "desktop with a long name"] {
        let mut cells: Vec<Cell> = vec![job.into(), "write".into()];
        cells.extend((1..10).map(|at| Cell::from(format!("{at}.25 ms"))));
        cells.push(Cell::flagged("41.3 s"));
        table.row(cells);
    }
    table.note("* differs by more than the published spread.");
    table
}

fn words_table() -> Table {
    let columns = ["what was asked", "what was found", "MB/s"].map(|title| (title, Align::Left));
    let mut table = Table::new("Sentences, which are broken into lines", &columns);
    let long = "A sentence that is far too long for a line of a table, so that it is broken into several of them.";
    table.row([long, long, "1"]);
    table
}

fn offsets() -> Plot {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31)
    };
    let writes = (0..15_000).map(|at| (f64::from(at) / 161.3, 4e10 * next() * f64::from(at) / 15_000.0)).collect();
    let reads = (0..5_000).map(|at| (f64::from(at) / 53.8, 9e10 + 1e9 * next())).collect();
    let x = Axis::new("Time", Quantity::Time).range(0.0, 93.0);
    Plot::new("Where the disk worked", x, Axis::new("Offset", Quantity::Data))
        .with(Series::new("writes", Shape::Dots, writes))
        .with(Series::new("reads", Shape::Ticks, reads))
}

fn latencies() -> Plot {
    let steps = [(50.0, 4e-6), (90.0, 4.1e-5), (99.0, 0.0123), (99.9, 0.9), (99.99, 2.5)];
    let y = Axis::new("Latency", Quantity::Time).log();
    Plot::new("Latency on a logarithmic axis", Axis::new("Percentile", Quantity::Plain("%")).range(50.0, 100.0), y)
        .with(Series::new("fsync", Shape::Steps, steps.to_vec()))
        .with(Series::new("write", Shape::Line, steps.map(|(at, value)| (at, value / 7.0)).to_vec()))
}

fn bars() -> Bars {
    Bars::new("Time of one allocation and free", "Time", Quantity::Time, ["ours", "published", "third", "fourth"])
        .note("Whiskers are 99 % confidence intervals.")
        .group(
            "order 0, one thread",
            [20e-9, 41e-9, 5e-9, 1e-9].map(|v| Some(Bar::new(v).within(v * 0.9, v * 1.1))).into(),
        )
        .group("order 9, two threads, shuffled frees", vec![Some(Bar::new(80e-9)), None, Some(Bar::new(0.0))])
}
