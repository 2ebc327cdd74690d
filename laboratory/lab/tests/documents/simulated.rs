//! The simulated tables of the documents, made from the rows that their commands print with `--json`.
//!
//! A block of a document stands between two comments, `<!-- simulated: NAME -->` and `<!-- end -->`. `cargo xtask docs`
//! writes the short ones, `cargo xtask docs --long` all of them; tests compare them.
//!
//! Owns: the commands of each block, and its table.
//! Does not own: the figures and their labels (the experiments).
//! Invariants: no figure of a block is written by hand.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use afflux_experiments::{Experiment, Request, Watch, experiment};
use afflux_report::{Fields, FigureSource, Row, units};

const RESULTS: &str = "docs/results.md";
const THREADS: &str = "docs/threads.md";
const SIMULATOR: &str = "docs/develop/simulator.md";

/// A block of a document.
struct Block {
    document: &'static str,
    name: &'static str,
    /// What stands behind `afflux-lab run`, for each run.
    runs: &'static [&'static str],
    /// Whether it takes seconds.
    is_short: bool,
    table: fn(&[Rows]) -> String,
}

const BLOCKS: &[Block] = &[
    Block {
        document: THREADS,
        name: "s0",
        runs: &["s0 --case speeds --variant linux-2.6.31,s0-july --runs 3"],
        is_short: true,
        table: s0,
    },
    Block {
        document: THREADS,
        name: "s1",
        runs: &["s1 --quick --case two-writers,twelve-disks"],
        is_short: false,
        table: s1,
    },
    Block { document: THREADS, name: "s2", runs: &["s2 --loops none"], is_short: true, table: s2 },
    Block {
        document: THREADS,
        name: "s3",
        runs: &[
            "s3",
            "s3 --readers 100 --full --variants stop-above-high",
            "s3 --start one-task --variants base,afflux",
        ],
        is_short: false,
        table: s3,
    },
    Block { document: THREADS, name: "s4", runs: &["s4 --variants linux-3.6-kept,afflux"], is_short: false, table: s4 },
    Block {
        document: THREADS,
        name: "later",
        runs: &[
            "throttled --case kernel --forms fuse,default",
            "throttled --case kernel --forms default --dirtyable 256MiB",
            "s4 --record 32768 --centisecs 0 --background-bytes 4096 --variants linux-3.6,afflux",
            "s2 --loops none",
        ],
        is_short: true,
        table: later,
    },
    Block {
        document: RESULTS,
        name: "budget",
        runs: &["budget --quick --devices each --laws budget,linux-6.1,zfs-like,hard"],
        is_short: false,
        table: budget,
    },
    Block {
        document: SIMULATOR,
        name: "kernel",
        runs: &["throttled --case kernel --forms tuned,default"],
        is_short: true,
        table: kernel,
    },
    Block {
        document: SIMULATOR,
        name: "recorded",
        runs: &["throttled --case recorded"],
        is_short: true,
        table: recorded,
    },
];

/// The rows of a run.
struct Rows {
    experiment: &'static Experiment,
    rows: Vec<Row>,
}

impl Watch for Rows {
    fn row(&mut self, row: &Row) {
        self.rows.push(row.clone());
    }
    fn step(&mut self, _: &str, _: f64) {}
}

impl Rows {
    fn of(command: &str) -> Self {
        let mut words = command.split(' ');
        let experiment = experiment(words.next().unwrap()).unwrap();
        let (quick, words): (Vec<&str>, Vec<&str>) = words.partition(|word| *word == "--quick");
        let options = experiment.command().no_binary_name(true).get_matches_from(words);
        let request = Request { quick: !quick.is_empty(), measured: false, options };
        let mut rows = Self { experiment, rows: Vec::new() };
        experiment.run(&request, &mut rows).unwrap();
        rows
    }

    fn fitting<'a>(&'a self, variant: &'a str, pick: &'a [(&'a str, &'a str)]) -> impl Iterator<Item = &'a Row> {
        let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.rows.iter().filter(move |row| {
            let is = |(name, value): &(&str, &str)| row.params.get(name).map_or(String::new(), text) == *value;
            row.variant == variant && pick.iter().all(is)
        })
    }

    /// The mean of a figure over the rows that fit.
    fn number(&self, variant: &str, pick: &[(&str, &str)], name: &str) -> Option<f64> {
        mean(self.fitting(variant, pick).filter_map(|row| row.metrics.get(name)?.as_f64()))
    }

    /// The published figure beside it.
    fn published(&self, variant: &str, pick: &[(&str, &str)], name: &str, places: usize) -> String {
        let found = mean(self.fitting(variant, pick).filter_map(|row| row.published.get(name)?.as_f64()));
        found.map_or_else(|| "–".to_owned(), |figure| shown(figure, places))
    }

    /// A figure as text, with the mark of its label.
    fn figure(&self, variant: &str, pick: &[(&str, &str)], name: &str, places: usize) -> String {
        let text = self.number(variant, pick, name).map(|figure| shown(figure, places));
        let row = self.fitting(variant, pick).next();
        text.zip(row).map_or_else(|| "–".to_owned(), |(text, row)| self.experiment.marked(row, name, text))
    }
}

fn mean(all: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = all.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn shown(figure: f64, places: usize) -> String {
    if places == 0 && figure >= 0.0 { units::count(figure.round() as u64) } else { format!("{figure:.places$}") }
}

/// A table in Markdown.
fn table(head: &[&str], lines: Vec<Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|title| (*title).to_owned()).collect();
    let rule = format!("|{}\n", "-|".repeat(head.len()));
    lines.iter().fold(line(&head) + &rule, |text, cells| text + &line(cells))
}

fn named(name: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

fn s0(runs: &[Rows]) -> String {
    let sizes = ["400", "500", "600", "700", "800", "900"];
    let of = |name: &str, variant: &str, change: Option<&str>, is_published: bool| {
        named(
            name,
            sizes.map(|size| {
                let pick = [("size_mib", size), ("change", change.unwrap_or(""))];
                match is_published {
                    true => runs[0].published(variant, &pick, "mib_per_s_mean", 1),
                    false => runs[0].figure(variant, &pick, "mib_per_s_mean", 1),
                }
            }),
        )
    };
    let untested = Some("device not tested against its share");
    table(
        &["MiB/s, by MiB stored", "400", "500", "600", "700", "800", "900"],
        vec![
            of("before the patch, published", "linux-2.6.31", None, true),
            of("before the patch, here", "linux-2.6.31", None, false),
            of("patched, published", "s0-july", None, true),
            of("July's form, here", "s0-july", None, false),
            of("August's form if it does not test the device", "s0-august", untested, false),
        ],
    )
}

fn s1(runs: &[Rows]) -> String {
    let writers = [
        ("linux-2.6.31-plain-100ms", "polling"),
        ("linux-2.6.31", "woken"),
        ("linux-2.6.32", "flushers"),
        ("afflux", "afflux"),
    ];
    let case = ("case", "two-writers");
    let queues = [
        ("2,048 × 64 KB", [case, ("nr_requests", "2048"), ("request_kib", "64")]),
        ("128 × 24 KB, disks without a cache", [case, ("nr_requests", "128"), ("request_kib", "24")]),
    ];
    let mut lines = Vec::new();
    for (queue, pick) in &queues {
        for (metric, what, places) in [
            ("throughput_mb_per_s", "MB/s", 0),
            ("pdflush_share", "pdflush's share", 2),
            ("queue_fullness_mean", "queue full", 2),
        ] {
            let cells = writers.map(|(variant, _)| runs[0].figure(variant, pick, metric, places));
            lines.push(named(&format!("two writers, {queue}: {what}"), cells));
        }
    }
    let two = table(&["", "polling", "woken", "flushers", "afflux"], lines);
    let of = |name: &str, variant: &str| {
        let cells =
            ["2048", "8192"].map(|memory| runs[0].figure(variant, &[("memory_mib", memory)], "change_percent", 1));
        let printed = runs[0].published(variant, &[("memory_mib", "2048")], "change_percent", 1);
        named(name, cells.into_iter().chain([printed]))
    };
    let seeks = |variant| {
        let pick = [("case", "twelve-disks"), ("memory_mib", "8192")];
        runs[0].figure(variant, &pick, "seeks_per_gb", 0)
    };
    let [own, rc1] = ["afflux", "linux-2.6.31-rc1"].map(seeks);
    two + "\n"
        + &table(
            &["twelve disks, change in %", "2 GiB", "8 GiB", "published"],
            vec![
                of("2.6.31-rc1 to rc2", "2.6.31-rc1 to 2.6.31"),
                of("the test on the share, with flushers", "flushers, without the test to with it"),
                of("2.6.31-rc1 to afflux", "2.6.31-rc1 to afflux"),
                of("the same with two seconds", "2.6.31-rc1 to afflux with two seconds"),
            ],
        )
        + &format!("\nWith 8 GiB a disk seeks {own} times a GB under the engine, and {rc1} times under 2.6.31-rc1.\n")
}

fn s2(runs: &[Rows]) -> String {
    let forms = ["ListPerClass", "BatchedDrain", "ShortcutDrain", "EmptyFirstDrain"];
    let contents = ["0/0/31", "31/0/0", "0/31/0", "10/0/21", "10/10/11"];
    let lines = contents
        .map(|pages| named(pages, forms.map(|form| runs[0].figure(form, &[("contents", pages)], "lists_examined", 0))));
    let known = runs[0].rows.iter().filter(|row| {
        let counted = row.metrics.get("kernel_source_lists_examined").filter(|count| !count.is_null());
        counted.is_some() && counted == row.metrics.get("lists_examined")
    });
    let same = known.count();
    let text =
        table(&["lists that a drain of 31 pages looks at", "patch 1", "patch 2", "2.6.39", "6.1"], lines.to_vec());
    format!(
        "{text}\nOf these and other drains, {same} counts were also made by hand from the kernels' sources, and are equal.\n"
    )
}

fn s3(runs: &[Rows]) -> String {
    let counts = [("allocstall", 0), ("nr_alloc_fail", 0), ("reclaim_delay_ms_avg", 1), ("kswapd_steal", 0)];
    let line = |rows: &Rows, name: &str, variant: &str| {
        let pair = |metric, places| {
            format!("{}; {}", rows.figure(variant, &[], metric, places), rows.published(variant, &[], metric, places))
        };
        let own = counts.map(|(metric, places)| pair(metric, places));
        named(name, own.into_iter().chain([rows.figure(variant, &[], "total_s", 0)]))
    };
    let forms = [
        "base",
        "wmark-min",
        "wmark-high",
        "time-limit-100ms",
        "time-limit-20ms",
        "stop-above-high",
        "keep-freed-pages",
        "afflux",
    ];
    let mut lines: Vec<_> = forms.iter().map(|form| line(&runs[0], form, form)).collect();
    lines.push(line(&runs[1], "stop-above-high, 100 readers", "stop-above-high"));
    lines.push(line(&runs[2], "base, one task over all files", "base"));
    lines.push(line(&runs[2], "afflux, one task over all files", "afflux"));
    let heads = ["here; published", "stalls", "failures", "a reclaim, ms", "kswapd freed", "total, s"];
    let mut text = table(&heads, lines);
    let off = |rows: &Rows, variant: &str, metric: &str| {
        let row = rows.fitting(variant, &[]).next()?;
        let [own, published] = [&row.metrics, &row.published].map(|fields| fields.get(metric)?.as_f64());
        Some((own? / published? - 1.0) * 100.0)
    };
    let of = |metric: &str| {
        let forms = forms.map(|form| (&runs[0], form, form));
        let others = [(&runs[1], "stop-above-high", "100 readers"), (&runs[2], "base", "one task")];
        let all = forms.into_iter().chain(others);
        let far = all.filter_map(|(rows, form, name)| {
            let percent = off(rows, form, metric).filter(|percent| percent.abs() > FAR_PERCENT)?;
            Some(format!("{name} {percent:+.0}"))
        });
        far.collect::<Vec<_>>().join(", ")
    };
    let counts = counts.map(|(metric, _)| metric).into_iter().zip(&heads[1..]);
    let all: Vec<String> = counts.map(|(metric, head)| format!("{head}: {}", of(metric))).collect();
    let delay = |form: &str, of: fn(&Row) -> &Fields| {
        let row = runs[0].fitting(form, &[]).next().unwrap();
        of(row).get("reclaim_delay_ms_avg").and_then(serde_json::Value::as_f64).unwrap()
    };
    let own = delay("time-limit-100ms", |row| &row.metrics) / delay("wmark-high", |row| &row.metrics);
    let published = delay("time-limit-100ms", |row| &row.published) / delay(LIMITED_SCAN, |row| &row.published);
    let _ = writeln!(text, "\nA limit of 100 ms shortens a reclaim to {own:.2}; published {published:.2}.");
    let _ = writeln!(text, "\nOff by more than {FAR_PERCENT} %, in %: {}.", all.join("; "));
    text
}

/// The form of the published reclaims without a limit of time.
const LIMITED_SCAN: &str = "wmark-high-limited-scan";

/// A figure of s3 that is farther than this from the published one is named below the table; the experiment's goal is
/// the same.
const FAR_PERCENT: f64 = 15.0;

fn s4(runs: &[Rows]) -> String {
    let columns = [
        [("centisecs", "0"), ("background_bytes", "null")],
        [("centisecs", "300"), ("background_bytes", "null")],
        [("centisecs", "200"), ("background_bytes", "null")],
        [("centisecs", "100"), ("background_bytes", "null")],
        [("centisecs", "0"), ("background_bytes", "25000000")],
    ];
    let metric = "rate_mb_per_s";
    table(
        &["MB/s, mean of ten copies", "off", "300 cs", "200 cs", "100 cs", "25 MB"],
        vec![
            named("published", columns.map(|pick| runs[0].published("linux-3.6-kept", &pick, metric, 2))),
            named(
                "linux-3.6, one server for all copies",
                columns.map(|pick| runs[0].figure("linux-3.6-kept", &pick, metric, 2)),
            ),
            named("afflux", columns.map(|pick| runs[0].figure("afflux", &pick, metric, 2))),
        ],
    )
}

/// What the kernel got after the threads.
fn later(runs: &[Rows]) -> String {
    let throttled = |rows: &Rows, form, metric, places| rows.figure(form, &[], metric, places);
    let of = |rows: &Rows, form| {
        let [dirty, sync] =
            [("dirty_mb", 0), ("sync_s", 1)].map(|(metric, places)| throttled(rows, form, metric, places));
        (dirty, sync)
    };
    let (fuse, plain, group) =
        (of(&runs[0], "kernel-fuse"), of(&runs[0], "kernel-default"), of(&runs[1], "kernel-default"));
    let copy = |variant, bytes| {
        let pick = [("background_bytes", bytes)];
        let [rate, wait] =
            ["rate_mb_per_s", "commit_wait_ms_mean"].map(|name| runs[2].number(variant, &pick, name).unwrap());
        format!("{rate:.2} MB/s and {wait:.0} ms a COMMIT")
    };
    let drains = |variant| runs[3].figure(variant, &[("part", "frees in a row")], "drains_in_a_row", 0);
    let modes = "[`io_cache_write`](https://docs.kernel.org/filesystems/nfs/nfsd-io-modes.html)";
    let flush = "[later flush](https://lkml.iu.edu/2604.1/01115.html)";
    let line = |what: &str, found: String| vec![what.to_owned(), found];
    table(
        &["", "found, or why not"],
        vec![
            line(
                "FUSE's strict limit of 1 % (`fuse_bdi_init`)",
                format!("{} MB dirty for {}, a sync of {} s for {}", fuse.0, plain.0, fuse.1, plain.1),
            ),
            line(
                "writeback by control group (4.2)",
                format!(
                    "alone in a group of 256 MiB: {} MB dirty, a sync of {} s; not a writer in two domains",
                    group.0, group.1
                ),
            ),
            line(
                &format!("nfsd without a page cache ({modes}), DONTCACHE's {flush}"),
                format!(
                    "written from the first page on: {}, the engine with nothing set {}. DONTCACHE of 6.14: `classes`",
                    copy("linux-3.6", "4096"),
                    copy("afflux", "null")
                ),
            ),
            line(
                "drains that grow (`nr_pcp_free`, 5.13)",
                format!("{} drains for {}", drains("EmptyFirstDrain"), drains("BatchedDrain")),
            ),
            line(
                "the block layer's throttling",
                "measured once, no difference ([notebook](../notebook/threads.md)); the simulated queue has none"
                    .to_owned(),
            ),
            line("multi-generational LRU", "no: no page tables".to_owned()),
        ],
    )
}

const LAWS: [&str; 4] = ["budget", "linux-6.1", "zfs-like", "hard"];

fn budget(runs: &[Rows]) -> String {
    let line = |name: &str, load: &str, device: &str, metrics: &[(&str, usize)]| {
        let pick = [("load", load), ("device", device)];
        let of = |law: &str| {
            let figures = metrics.iter().map(|(metric, places)| runs[0].figure(law, &pick, metric, *places));
            figures.collect::<Vec<_>>().join(", ")
        };
        named(name, LAWS.map(of))
    };
    let stream = &[("percent_of_raw", 0), ("backlog_s", 2), ("write_p999_ms", 1)];
    let fsync = &[("fsync_p50_ms", 1), ("fsync_max_ms", 0)];
    let mut text = table(
        &["load, device", "budget", "linux-6.1", "ZFS-like", "limit of 64 MiB"],
        vec![
            line("stream, 25 MB/s", "stream", "25MB/s", stream),
            line("stream, USB stick", "stream", "usb", stream),
            line("stream, object store", "stream", "object", stream),
            line("100 streams, 25 MB/s", "100-streams", "25MB/s", stream),
            line("100 streams, HDD", "100-streams", "hdd", stream),
            line("fsync of 4 KiB beside a stream at 25 MB/s, p50, longest, ms", "fsync-beside", "25MB/s", fsync),
            line(
                "burst to an SSD beside a full slow disk, to alone",
                "burst-beside-full",
                "ssd",
                &[("times_alone", 2)],
            ),
        ],
    );
    let goals: Vec<&Row> = runs[0].rows.iter().filter(|row| row.experiment == "budget-goals").collect();
    let word = |row: &Row, name: &str| -> String {
        let value = row.params.get(name).or_else(|| row.metrics.get(name));
        value.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let missed = goals.iter().filter(|row| word(row, "goal") == "missed");
    let lines: Vec<Vec<String>> = missed
        .map(|row| {
            let [load, device, metric, wanted, found] =
                ["load", "device", "metric", "wanted", "found"].map(|name| word(row, name));
            vec![format!("{load}, {device}"), format!("`{metric}`"), wanted, found]
        })
        .collect();
    let _ = write!(text, "\n{} of {} goals are missed:\n\n", lines.len(), goals.len());
    text + &table(&["load, device", "figure", "goal", "found"], lines)
}

fn kernel(runs: &[Rows]) -> String {
    let of = |name: &str, variant: &str| {
        let figure = |metric, places| runs[0].figure(variant, &[], metric, places);
        named(name, [figure("accepted_mb_per_s", 1), figure("dirty_mb", 0), figure("sync_s", 2)])
    };
    table(
        &["`linux-6.1` alone in the simulator", "accepted, MB/s", "dirty, MB", "fsync, s"],
        vec![of("limit of 50 MB", "kernel-tuned"), of("defaults, 22 GiB", "kernel-default")],
    )
}

/// The loads of the recorded kernel, with the seconds that the table shows.
const RECORDED: [(&str, &str, [usize; 4]); 5] = [
    ("`vm.dirty_bytes` 400 MB", "recorded-bytes", [5, 20, 30, 45]),
    ("ratios of 4 GiB", "recorded-default", [5, 20, 30, 45]),
    ("400 MB, 20 MB/s", "recorded-at-rate", [5, 12, 21, 45]),
    ("400 MB, small file", "recorded-small-sync", [5, 12, 21, 45]),
    ("400 MB, bursts", "recorded-burst", [5, 17, 30, 45]),
];

/// Seconds in which memory fills and the law finds the rate.
const FILLING_S: usize = 4;

fn recorded(runs: &[Rows]) -> String {
    let lines = RECORDED.into_iter().map(|(name, variant, seconds)| {
        let side = |source| runs[0].rows.iter().find(|row| row.variant == variant && row.source == source).unwrap();
        let (real, own) = (side(FigureSource::Measured), side(FigureSource::Simulated));
        let series = |row: &Row, name: &str| -> Vec<f64> {
            let values = row.metrics.get(name).and_then(|value| value.as_array()).cloned().unwrap_or_default();
            values.iter().filter_map(serde_json::Value::as_f64).collect()
        };
        // The rows go on until the fsync ends. The writer's time is what is compared.
        let writing = real.params.get("seconds").and_then(serde_json::Value::as_u64).unwrap() as usize;
        let pages = [real, own].map(|row| series(row, "dirty_pages"));
        let mark = |name: &str, text: String| runs[0].experiment.marked(own, name, text);
        let at = |second: usize| {
            let [real, own] =
                [&pages[0], &pages[1]].map(|pages| pages.get(second.min(pages.len() - 1)).copied().unwrap_or(0.0));
            format!("{}: {}, {}", second, shown(real, 0), mark("dirty_pages", shown(own, 0)))
        };
        let shares: Vec<f64> = pages[0]
            .iter()
            .zip(&pages[1])
            .take(writing)
            .skip(FILLING_S)
            .map(|(real, own)| (own / real - 1.0).abs())
            .collect();
        let most = 100.0 * shares.iter().copied().fold(0.0, f64::max);
        let mean = 100.0 * shares.iter().sum::<f64>() / shares.len() as f64;
        let both = |name: &str, of: &dyn Fn(&Row) -> String| format!("{}, {}", of(real), mark(name, of(own)));
        let sum = |name: &'static str| move |row: &Row| shown(series(row, name).iter().sum(), 0);
        let seconds_of = |name: &'static str| {
            move |row: &Row| match row.metrics.get(name).and_then(serde_json::Value::as_f64) {
                Some(seconds) => format!("{seconds:.2}"),
                None => series(row, name).iter().map(|seconds| format!("{seconds:.2}")).collect::<Vec<_>>().join(" "),
            }
        };
        let further = |name: &'static str| {
            if series(real, name).is_empty() { "–".to_owned() } else { both(name, &seconds_of(name)) }
        };
        vec![
            name.to_owned(),
            seconds.map(at).join("<br>"),
            format!("{most:.1}, {mean:.1}"),
            both("accepted_pages", &|row| shown(series(row, "accepted_pages").into_iter().fold(0.0, f64::max), 0)),
            both("pauses", &sum("pauses")),
            both("sync_s", &seconds_of("sync_s")),
            further("small_syncs_s"),
            further("bursts_s"),
        ]
    });
    table(
        &[
            "real, simulated",
            "dirty pages at second",
            "apart in a second from second 4 on, at most and in the mean, %",
            "pages accepted",
            "pauses",
            "fsync, s",
            "fsyncs of the small file, s",
            "bursts and their fsyncs, s",
        ],
        lines.collect(),
    )
}

/// The document before a block's text, the text, and the rest.
fn parts(document: &str, name: &str, text: &str) -> [String; 3] {
    let begin = format!("<!-- simulated: {name} -->\n");
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{document} has no block {name}"));
    let (own, after) = rest.split_once("<!-- end -->").unwrap_or_else(|| panic!("the block {name} has no end"));
    [format!("{before}{begin}"), own.to_owned(), format!("<!-- end -->{after}")]
}

/// One test at a time writes a document.
static WRITING: Mutex<()> = Mutex::new(());

/// Fails if a block has not this text, or writes it if that is asked for.
pub(crate) fn hold(document: &str, name: &str, text: &str) {
    let place: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let [before, own, after] = parts(document, name, &fs::read_to_string(&place).unwrap());
    if own != text {
        let is_asked = env::var_os("AFFLUX_RENEW_DOCS").is_some();
        assert!(is_asked, "{name} is stale; cargo xtask docs --long writes:\n{text}");
        fs::write(&place, before + text + &after).unwrap();
    }
}

/// Fails if a block of this length is not what its commands give, or writes it if that is asked for.
fn are_fresh(is_short: bool) {
    for block in BLOCKS.iter().filter(|block| block.is_short == is_short) {
        let runs: Vec<Rows> = block.runs.iter().map(|command| Rows::of(command)).collect();
        let commands: Vec<String> = block.runs.iter().map(|command| format!("`afflux-lab run {command}`")).collect();
        let text = format!("{}\n{}, S.\n", (block.table)(&runs), commands.join(", "));
        hold(block.document, block.name, &text);
    }
}

#[test]
fn short_simulated_tables_are_what_their_commands_give() {
    are_fresh(true);
}

#[test]
#[ignore = "simulations of minutes"]
fn long_simulated_tables_are_what_their_commands_give() {
    are_fresh(false);
}
