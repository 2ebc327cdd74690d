#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_engine::WaitTimes;

use super::goals::{find, goals};
use super::plan::OWN;
use super::run::{MEMORY_BYTES, Outcome, Start, TaskAccount};
use super::*;
use crate::experiment::tests::{Reported, asked, given};

fn cells(pairs: &[(&str, &str)]) -> Vec<Cell> {
    let plan = Plan::read(&given(&S3, pairs)).unwrap();
    plan.variants.iter().map(|variant| Cell::run(&plan, *variant).unwrap()).collect()
}

/// A quarter of the seed's machine, with as many readers a CPU, and as much memory for each.
const SMALL: [(&str, &str); 6] = [
    ("readers", "250"),
    ("cpus", "2"),
    ("memory", "768MiB"),
    ("file-size", "8MiB"),
    ("full", "yes"),
    ("start", "evenly"),
];

#[test]
fn larger_targets_make_fewer_and_longer_reclaims_and_no_interrupts() {
    let cells = cells(&[&SMALL[..], &[("variants", "base,wmark-min,wmark-high,time-limit-100ms,afflux")]].concat());
    let of = |variant: &str| find(&cells, variant).unwrap();
    let (base, min, high) = (of("base"), of("wmark-min"), of("wmark-high"));
    let stalls = |cell: &Cell| cell.count("allocstall");
    assert!(
        stalls(base) > 5.0 * stalls(min) && stalls(min) > 1.3 * stalls(high),
        "{} {} {}",
        stalls(base),
        stalls(min),
        stalls(high)
    );
    let delay = |cell: &Cell| cell.reclaim().mean_ms;
    assert!(delay(high) > 5.0 * delay(base), "{} {}", delay(base), delay(high));
    // A limit of time cuts the longest reclaims short, so that there are more.
    let limited = of("time-limit-100ms");
    assert!(delay(limited) < delay(high) && stalls(limited) > 1.3 * stalls(high), "{}", delay(limited));
    assert!(base.ipis() > 0.0);
    for cell in &cells {
        assert_eq!(cell.outcome.tasks.len(), 250);
        let evicted = cell.count("pgsteal_direct") + cell.count("kswapd_steal") + cell.count("pgsteal");
        let (read, kept) = (250.0 * 2048.0, f64::from(run::page_frames(768 << 20)));
        assert!((read - kept..=read).contains(&evicted), "{}: {evicted} of {read}", cell.variant);
    }
    let own = of(OWN);
    assert_eq!(own.count("demand_alloc_fail"), 0.0);
    assert!(own.reclaim().mean_ms <= 1.0 && own.reclaim().p99_ms <= 10.0, "{:?}", own.reclaim());
    assert!(own.reclaim_ms_a_reader() <= base.reclaim_ms_a_reader() / 100.0);
    let best = cells.iter().filter(|cell| cell.variant != OWN).map(Cell::total_s).min_by(f64::total_cmp).unwrap();
    assert!(own.total_s() <= best, "{} {best}", own.total_s());
}

#[test]
fn the_names_of_all_forms_are_known() {
    let forms = afflux_kernels::mm::FORMS.map(|form| form.name);
    let plan = Plan::read(&given(&S3, &[])).unwrap();
    let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name()).collect();
    assert_eq!(names, [&forms[..], &[OWN]].concat());
    for name in forms.into_iter().chain([OWN, "all"]) {
        assert!(Plan::read(&given(&S3, &[("variants", name)])).is_ok(), "{name}");
    }
    // Each published figure is of a known form, so that it has a row beside it.
    let published = published::PUBLISHED.iter().chain(published::OTHERS.iter().map(|other| &other.published));
    for variant in published.map(|published| published.variant) {
        assert!(forms.contains(&variant), "{variant}");
    }
}

/// kswapd's right to a CPU does not depend on the form. In a queue it comes after all readers, and finds nothing to do
/// where reclaims are large; ahead of all it leaves nothing to them.
#[test]
fn kswapd_does_as_much_under_each_form_if_the_queue_is_fair() {
    let steal = |scheduler, ahead, variant| {
        let options = [("scheduler", scheduler), ("ahead", ahead), ("variants", variant)];
        let cell = cells(&[&SMALL[..], &options].concat()).remove(0);
        (cell.count("kswapd_steal"), cell.count("allocstall"))
    };
    let (base, base_stalls) = steal("fair", "none", "base");
    let high = steal("fair", "none", "wmark-high").0;
    assert!((0.4..2.5).contains(&(high / base)), "{base} {high}");
    let queued = steal("queue", "none", "wmark-high").0;
    assert!(high > 2.0 * queued, "{high} {queued}");
    let (ahead, stalls) = steal("fair", "kswapd", "base");
    assert!(ahead > 5.0 * base && 5.0 * stalls < base_stalls, "{ahead} {base} {stalls} {base_stalls}");
}

/// The script's shell waits for a whole round of the queue for each process that it starts.
#[test]
fn a_shell_starts_readers_the_slower_the_more_there_are() {
    let start = |readers: &'static str, start: &'static str| {
        let options = [("readers", readers), ("start", start), ("file-size", "256MiB"), ("variants", "base")];
        let load = [("cpus", "2"), ("memory", "256MiB"), ("full", "yes")];
        cells(&[&options[..], &load].concat()).remove(0).start_s()
    };
    let (ten, twenty) = (start("10", "shell"), start("20", "shell"));
    // By hand: a round of n readers on 2 CPUs with slices of 3.25 ms is n / 2 * 3.25 ms; the sum of all is n² / 4 *
    // 3.25 ms. That is 0.081 and 0.325 s, and 1.3 ms more for each process.
    assert!((0.05..0.16).contains(&ten) && (0.25..0.5).contains(&twenty), "{ten} {twenty}");
    let error = Plan::read(&given(&S3, &[("start", "shell")])).unwrap_err().to_string();
    assert!(error.contains("--full"), "{error}");
}

/// By hand, for 3 GiB: the min mark is 1,773 pages, the high one 2,659, and a first pass scans 163 of 666,000. Passes
/// double: six have scanned 10,279. If a tenth to four fifths of the pages cannot go, a pass frees the rest of what it
/// scans.
#[test]
fn pages_that_cannot_go_stretch_a_reclaim_by_whole_passes() {
    let of_a_stall = |variant: &'static str, dirty: &'static str| {
        let load = [("readers", "60"), ("file-size", "16MiB"), ("full", "yes"), ("start", "evenly"), ("dirty", dirty)];
        let cell = cells(&[&load[..], &[("variants", variant)]].concat()).remove(0);
        ["pgscan_direct", "pgsteal_direct"].map(|name| cell.count(name) / cell.count("allocstall"))
    };
    let near = |found: f64, by_hand: f64| (found / by_hand - 1.0).abs() < 0.04;
    let [scanned, freed] = of_a_stall("base", "30");
    assert!(near(scanned, 163.0) && near(freed, 0.7 * 163.0), "base: one pass, as without: {scanned} {freed}");
    // Four passes free 1,716, less than the min mark. The fifth makes both marks equal.
    let (min, high) = (of_a_stall("wmark-min", "30"), of_a_stall("wmark-high", "30"));
    assert!(near(high[1], 0.7 * 5069.0) && near(min[1], high[1]), "{min:?} {high:?}");
    // Six passes free 4,112 with 60 % dirty, and 2,261 with 78 %: less than the high mark. Limited scan ends there.
    let limited = "wmark-high-limited-scan";
    let (all, less) = (of_a_stall("wmark-high", "60"), of_a_stall(limited, "60"));
    assert!(near(all[0], 10_279.0) && near(less[0], all[0]), "{all:?} {less:?}");
    let (all, less) = (of_a_stall("wmark-high", "78"), of_a_stall(limited, "78"));
    assert!(near(less[0], 10_279.0) && all[0] > 1.6 * less[0], "{all:?} {less:?}");
}

#[test]
fn one_task_over_many_files_finds_kswapd_in_time() {
    let load = [("readers", "50"), ("cpus", "4"), ("memory", "128MiB"), ("file-size", "4MiB"), ("full", "yes")];
    let cell = cells(&[&load[..], &[("start", "one-task"), ("variants", "base")]].concat()).remove(0);
    assert!(cell.count("kswapd_steal") > 10_000.0, "{}", cell.count("kswapd_steal"));
    assert_eq!(cell.count("slab_alloc_fail"), 0.0);
    let own = cells(&[&load[..], &[("start", "one-task"), ("variants", "afflux")]].concat()).remove(0);
    assert!(own.total_s() > 0.0 && own.outcome.tasks.len() == 50);
}

#[test]
fn published_figures_stand_beside_their_own_load_alone() {
    let load = |pairs: &[(&str, &str)]| Plan::read(&given(&S3, pairs)).unwrap().load;
    let of = |variant, pairs: &[(&str, &str)]| published::of(variant, &load(pairs)).map(|it| it.nr_alloc_fail);
    assert_eq!(of("base", &[]), Some(&[10_496][..]));
    assert_eq!(of("base", &[("start", "one-task")]), Some(&[733][..]));
    assert_eq!(of("stop-above-high", &[("readers", "100")]), Some(&[162][..]));
    assert_eq!(of("stop-above-high", &[("readers", "100"), ("start", "one-task")]), None);
    assert_eq!(of("wmark-high", &[("readers", "100")]), None);
    assert_eq!(of("base", &[("dirty", "10")]), None);
    assert_eq!(load(&[("full", "yes")]).start, Start::Shell);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = || {
        let cells = cells(&[
            ("readers", "40"),
            ("file-size", "8MiB"),
            ("memory", "64MiB"),
            ("full", "yes"),
            ("start", "evenly"),
            ("variants", "base,afflux"),
        ]);
        cells.iter().map(|cell| cell.row().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(once(), once());
}

#[test]
fn a_part_of_each_file_gives_the_same_counts() {
    let with = |size| {
        cells(&[
            ("readers", "100"),
            ("cpus", "4"),
            ("memory", "96MiB"),
            ("file-size", size),
            ("full", "yes"),
            ("start", "evenly"),
            ("variants", "base"),
        ])
        .remove(0)
    };
    let (whole, half) = (with("16MiB"), with("8MiB"));
    // The memory that fills at first is a larger part of a small file.
    let filled = |cell: &Cell| 100.0 * cell.load.file_bytes as f64 / 4096.0 - f64::from(run::page_frames(96 << 20));
    let rate = |cell: &Cell| cell.count("allocstall") / filled(cell);
    assert!((rate(&half) / rate(&whole) - 1.0).abs() < 0.1, "{} {}", rate(&half), rate(&whole));
}

#[test]
fn rows_have_every_metric_and_the_published_figures_of_their_load_alone() {
    let mut kept = Reported::default();
    let small =
        [("readers", "20"), ("file-size", "64MiB"), ("memory", "64MiB"), ("variants", "base,time-limit-20ms,afflux")];
    let findings = S3.run(&given(&S3, &small), &mut kept).unwrap();
    assert_eq!(kept.rows.len(), 3);
    for row in &kept.rows {
        for metric in [
            "demand_alloc_fail",
            "nr_alloc_fail",
            "allocstall",
            "function_call_ipis",
            "reclaim_count_mean",
            "reclaim_total_ms_mean",
            "reclaim_delay_ms_avg",
            "reclaim_delay_ms_p99",
            "start_s",
            "total_s",
        ] {
            assert!(row.metrics.get(metric).is_some(), "{metric} of {row}");
        }
        assert!(row.published.get("allocstall").is_none(), "the seed did not measure this: {row}");
    }
    assert!(kept.remarks[0].contains("8th of each file") && kept.remarks[0].contains("--full"), "{:?}", kept.remarks);
    assert!(kept.done.is_sorted() && kept.done.last() == Some(&1.0), "{:?}", kept.done);
    assert_eq!((findings.tables.len(), findings.details.len(), findings.figures.len()), (4, 1, 4));
    assert!(findings.answer.starts_with("Goals: "), "{}", findings.answer);
    let words: Vec<&str> = findings.opening.iter().map(|(word, _)| *word).collect();
    assert_eq!(words, ["proposed", "found", "open"]);
    // A sentence that tells of one task over all files is not here, for that was not run.
    assert!(!findings.opening[1].1.contains("733") && findings.labels.contains("put in: the machine"), "{findings:?}");
}

/// A cell of the published load with these figures.
fn published_cell(variant: &'static str, stalls: u64, failures: u64, delay_ms: u64, ipis: u64) -> Cell {
    let plan = Plan::read(&given(&S3, &[("full", "yes")])).unwrap();
    let delays = WaitTimes { count: 1000, ns: delay_ms * 1_000_000_000, ..WaitTimes::default() };
    let counts = vec![
        ("allocstall", stalls),
        ("nr_alloc_fail", failures),
        ("demand_alloc_fail", 0),
        ("kswapd_steal", 4_500_000),
    ];
    let interactive_ns = vec![1_000_000];
    let outcome =
        Outcome { counts, interrupts: vec![ipis], delays, total_ns: 516, interactive_ns, ..Outcome::default() };
    assert_eq!(plan.load.memory_bytes, MEMORY_BYTES);
    Cell { variant, outcome, load: plan.load, part: plan.part }
}

#[test]
fn goals_are_met_by_the_published_figures_and_not_by_worse_ones() {
    let published = || {
        vec![
            published_cell("base", 1_576_602, 10_496, 28, 1_761_627),
            published_cell("wmark-min", 105_551, 704, 300, 2_654),
            published_cell("wmark-high", 53_860, 282, 641, 2_664),
            published_cell("time-limit-100ms", 128_800, 1_103, 346, 0),
            published_cell("time-limit-20ms", 132_101, 1_662, 371, 0),
            published_cell(OWN, 0, 0, 0, 0),
        ]
    };
    let missed = |cells: &[Cell]| goals(cells).into_iter().filter(|goal| !goal.met).collect::<Vec<_>>();
    assert_eq!((goals(&published()).len(), missed(&published())), (16, vec![]));
    type Worse = fn(&mut Vec<Cell>);
    let worse: [Worse; 9] = [
        |cells| cells[3].outcome.counts[3].1 = 2_000_000,
        |cells| cells[0].outcome.counts[0].1 = 1_300_000,
        |cells| cells[2].outcome.counts[0].1 = 63_000,
        |cells| cells[2].outcome.delays.ns /= 3,
        |cells| cells[3].outcome.delays.ns /= 2,
        |cells| cells[2].outcome.interactive_ns = vec![9_000_000],
        |cells| cells[1].outcome.counts[1].1 = 200,
        |cells| cells[5].outcome.counts[2].1 = 1,
        |cells| cells[5].outcome.total_ns = 517,
    ];
    for (number, change) in worse.into_iter().enumerate() {
        let mut cells = published();
        change(&mut cells);
        assert!(!missed(&cells).is_empty(), "change {number}");
    }
}

#[test]
fn slabs_fail_where_readers_start_below_the_low_mark_and_the_more_the_less_a_reclaim_brings() {
    let failures = |pairs: &[(&str, &str)]| cells(pairs)[0].count("slab_alloc_fail");
    let with = |form| failures(&[&SMALL[..], &[("variants", form)]].concat());
    let (base, high) = (with("base"), with("wmark-high"));
    assert!(base > 4.0 * high && high > 0.0, "{base} {high}");
    // Each of four slabs takes two requests.
    assert!(base <= 250.0 * 8.0, "{base}");
    assert_eq!(failures(&[("readers", "20"), ("memory", "1GiB"), ("file-size", "1MiB"), ("variants", "base")]), 0.0);
}

#[test]
fn bad_options_are_told_with_what_there_is() {
    for (pairs, told) in [
        (&[("readers", "0")][..], "1 to 10000"),
        (&[("memory", "1MB")], "64 MiB to 64 GiB"),
        (&[("variants", "wmark-low")], "wmark-high-limited-scan"),
        (&[("cpus", "33")], "1 to 32"),
        (&[("dirty", "81")], "0 to 80"),
        (&[("dirty", "50"), ("mapped", "31")], "more than 80 percent"),
    ] {
        let error = asked(&S3, pairs).and_then(|request| Plan::read(&request)).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn figures_of_a_part_are_those_of_whole_files_and_those_of_a_wait_are_not() {
    let mut cell = published_cell("base", 1000, 10, 28, 16);
    cell.part = 8;
    cell.outcome.interactive_ns = (1..=100).map(|ms| ms * 1_000_000).collect();
    cell.outcome.tasks = [30, 10, 20].map(|ms| TaskAccount { reclaim_ns: ms, ..TaskAccount::default() }).to_vec();
    // By hand: 262,144,000 pages in all and an eighth of these, each less the 668,467 that fill memory.
    let times: f64 = (262_144_000.0 - 668_467.0) / (32_768_000.0 - 668_467.0);
    assert!((cell.times() / times - 1.0).abs() < 1e-9, "{}", cell.times());
    assert_eq!((cell.count("allocstall"), cell.ipis()), (8146.0, 130.0));
    // A reader starts once, so this count does not depend on the part of the file.
    cell.outcome.counts.push(("slab_alloc_fail", 7));
    assert_eq!((cell.count("nr_alloc_fail"), cell.count("slab_alloc_fail")), (88.0, 7.0));
    // A thousand reclaims of 28 ms by a thousand readers.
    assert_eq!((cell.reclaims_a_reader(), cell.reclaim().mean_ms), (times, 28.0));
    assert!((cell.reclaim_ms_a_reader() / (times * 28.0) - 1.0).abs() < 1e-9);
    assert_eq!((cell.interactive().mean_ms, cell.interactive().p99_ms), (50.5, 99.0));
    assert_eq!(cell.middle_reader().unwrap().reclaim_ns, 20);
}

#[test]
fn a_drain_interrupts_the_other_cpus_alone() {
    let load = [("readers", "40"), ("file-size", "8MiB"), ("memory", "64MiB"), ("full", "yes"), ("start", "evenly")];
    let load = [&load[..], &[("variants", "base")]].concat();
    let ipis = |cpus: &'static str| cells(&[&load[..], &[("cpus", cpus)]].concat()).remove(0).ipis();
    assert_eq!(ipis("1"), 0.0);
    assert!(ipis("2") > 0.0);
}
