//! A quick form teaches what the full form does: each effect has its sign, and at least half of its size.

#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_report::Row;

use crate::experiment::tests::{Reported, given};
use crate::views::Pick;
use crate::{Request, experiment};

/// The rows of a variant that have these parameters.
type Of = (&'static str, Pick);

/// An effect that a thread, or a full form, states.
struct Effect {
    what: &'static str,
    metric: &'static str,
    from: Of,
    to: Of,
    stated: Stated,
}

#[derive(Clone, Copy)]
enum Stated {
    /// So many times as much. Its size is its logarithm.
    Times(f64),
    /// More by so much: for shares, which may be 0.
    More(f64),
}

use Stated::{More, Times};

impl Stated {
    /// Which part of the stated effect was found.
    fn part(self, from: f64, to: f64) -> f64 {
        match self {
            Times(times) => (to / from).ln() / times.ln(),
            More(more) => (to - from) / more,
        }
    }
}

/// The mean of a figure over the rows.
fn figure(rows: &[Row], (variant, pick): Of, metric: &str) -> f64 {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fits = |row: &&Row| {
        let is = |(name, value): &(&str, &str)| row.params.get(name).map_or(String::new(), text) == *value;
        row.variant == variant && pick.iter().all(is)
    };
    let found: Vec<f64> = rows.iter().filter(fits).filter_map(|row| row.metrics.get(metric)?.as_f64()).collect();
    assert!(!found.is_empty(), "no row of {variant} {pick:?} has {metric}");
    found.iter().sum::<f64>() / found.len() as f64
}

/// Runs the quick form; fails for each effect of which less than half is there.
fn teaches(name: &str, options: &[(&str, &str)], effects: &[Effect]) {
    let mut kept = Reported::default();
    let experiment = experiment(name).unwrap();
    experiment.run(&Request { quick: true, ..given(experiment, options) }, &mut kept).unwrap();
    let of = |effect: &Effect| {
        let [from, to] = [effect.from, effect.to].map(|of| figure(&kept.rows, of, effect.metric));
        let part = effect.stated.part(from, to);
        println!("{name}, {}: from {from} to {to}, {part:.2} of the effect", effect.what);
        (part < 0.5 || part.is_nan()).then(|| format!("{}: from {from} to {to}, {part:.2} of the effect", effect.what))
    };
    let missing: Vec<String> = effects.iter().filter_map(of).collect();
    assert!(missing.is_empty(), "the quick form of {name} lacks: {missing:#?}");
}

#[test]
fn the_quick_form_of_s0_has_the_gain_near_the_limit_and_the_saved_reads() {
    const CALL: Pick = &[("path", "C")];
    let reads = |what, metric, to, before: f64, after: f64| Effect {
        what,
        metric,
        from: ("linux-2.6.31", CALL),
        to: (to, CALL),
        stated: Times(after / before),
    };
    teaches(
        "s0",
        &[],
        &[
            Effect {
                what: "the patched column at 600 MB",
                metric: "mib_per_s_mean",
                from: ("linux-2.6.31", &[("size_mib", "600")]),
                to: ("s0-august", &[("size_mib", "600"), ("change", crate::s0::LIMIT_OF_ALL_ONLY)]),
                stated: Times(374.25 / 308.875),
            },
            reads("shared counters that a call reads", "global_reads_per_call", "s0-july", 14.0, 9.0),
            reads("the device's counters that a call reads", "device_reads_per_call", "s0-august", 4.0, 2.0),
        ],
    );
}

const CASES_OF_TWO: &str = "two-superblocks,sync-of-two,blocking-rival,pool-alone";

#[test]
fn the_quick_form_of_s1_has_both_sides_of_the_argument() {
    const BEGUN: Pick =
        &[("case", "two-superblocks"), ("begun_as", "background"), ("nr_requests", "2048"), ("request_kib", "512")];
    const ALONE: Pick = &[("case", "pool-alone"), ("request_kib", "24"), ("disk_cache_kib", "0")];
    const RIVAL: Pick = &[("case", "blocking-rival"), ("nr_requests", "128")];
    let passes = |passes: Pick| ("linux-2.6.31", passes);
    teaches(
        "s1",
        &[("case", CASES_OF_TWO)],
        &[
            Effect {
                what: "A is exhausted before B has its turn",
                metric: "share_of_b",
                from: ("linux-2.6.32", BEGUN),
                to: ("linux-2.6.31", BEGUN),
                stated: More(-0.5),
            },
            Effect {
                what: "sync begins all disks before it waits",
                metric: "b_ends_s",
                from: passes(&[("case", "sync-of-two"), ("passes", "1")]),
                to: passes(&[("case", "sync-of-two"), ("passes", "2")]),
                stated: Times(0.5),
            },
            Effect {
                what: "a pool that polls congestion starves beside a writer that waits",
                metric: "share_beside_rival",
                from: ("blocking-flusher", RIVAL),
                to: ("linux-2.6.31", RIVAL),
                stated: More(-0.5),
            },
            // The full form's figures: 51 and 362 MB/s.
            Effect {
                what: "a sleep that outlasts queue and caches starves the disks",
                metric: "throughput_mb_per_s",
                from: ("linux-2.6.32", ALONE),
                to: ("linux-2.6.31-plain-100ms", ALONE),
                stated: Times(51.0 / 362.0),
            },
        ],
    );
}

#[test]
fn the_quick_form_of_s1_has_what_the_graphs_show_of_pdflush() {
    const PUBLISHED: Pick = &[("nr_requests", "2048"), ("request_kib", "64")];
    const BARE: Pick = &[("nr_requests", "128"), ("request_kib", "24"), ("disk_cache_kib", "0")];
    teaches(
        "s1",
        &[("case", "two-writers")],
        &[
            Effect {
                what: "pdflush does the vast majority of the writing",
                metric: "pdflush_share",
                from: ("linux-2.6.32", PUBLISHED),
                to: ("linux-2.6.31", PUBLISHED),
                stated: More(1.0),
            },
            Effect {
                what: "the queue falls to six eighths",
                metric: "queue_fullness_mean",
                from: ("linux-2.6.32", PUBLISHED),
                to: ("linux-2.6.31-plain-100ms", PUBLISHED),
                stated: Times(0.75),
            },
            // The full form's figures: 193 and 299 MB/s.
            Effect {
                what: "polling loses where the disks have no cache",
                metric: "throughput_mb_per_s",
                from: ("linux-2.6.32", BARE),
                to: ("linux-2.6.31-plain-100ms", BARE),
                stated: Times(193.0 / 299.0),
            },
        ],
    );
}

#[test]
fn the_quick_form_of_s1_has_the_loss_on_twelve_disks() {
    const LEAST_MEMORY: Pick = &[("memory_mib", "2048")];
    let effect = |what, from, to, stated| Effect {
        what,
        metric: "throughput_mb_per_s",
        from: (from, LEAST_MEMORY),
        to: (to, LEAST_MEMORY),
        stated: Times(stated),
    };
    teaches(
        "s1",
        &[("case", "twelve-disks")],
        &[
            effect("from 2.6.31-rc1 to rc2", "linux-2.6.31-rc1", "linux-2.6.31", 400.0 / 460.0),
            effect("the test on the share costs flushers", "linux-2.6.32-no-share-test", "linux-2.6.32", 450.0 / 484.0),
        ],
    );
}

#[test]
fn the_quick_form_of_s2_has_the_saved_looks_at_lists() {
    const MOVABLE: Pick = &[("contents", "0/0/31")];
    let effect = |what, to, before: f64, after: f64| Effect {
        what,
        metric: "lists_examined",
        from: ("ListPerClass", MOVABLE),
        to: (to, MOVABLE),
        stated: Times(after / before),
    };
    teaches(
        "s2",
        &[("loops", "none")],
        &[
            effect("a drain takes more from long lists", "BatchedDrain", 92.0, 32.0),
            effect("6.1 empties one list after the other", "EmptyFirstDrain", 92.0, 1.0),
        ],
    );
}

#[test]
fn the_quick_form_of_s3_has_fewer_and_longer_reclaims() {
    let effect = |what, metric, (from, to), stated| Effect { what, metric, from: (from, &[]), to: (to, &[]), stated };
    let high = ("base", "wmark-high");
    let limited = ("wmark-high", "time-limit-100ms");
    teaches(
        "s3",
        &[],
        &[
            effect("stalls, min mark", "allocstall", ("base", "wmark-min"), Times(105_551.0 / 1_576_602.0)),
            effect("stalls, high mark", "allocstall", high, Times(53_860.0 / 1_576_602.0)),
            effect("failures, high mark", "nr_alloc_fail", high, Times(282.0 / 10_496.0)),
            effect("a reclaim's delay", "reclaim_delay_ms_avg", high, Times(640.8 / 28.0)),
            effect("stalls with a limit of time", "allocstall", limited, Times(128_800.0 / 53_860.0)),
            effect("the delay with a limit of time", "reclaim_delay_ms_avg", limited, Times(349.0 / 640.8)),
            effect("total time", "total_s", ("base", "wmark-high"), Times(515.0 / 529.0)),
        ],
    );
}

#[test]
fn the_quick_form_of_s4_has_the_gain_of_each_threshold() {
    const OFF: Of = ("linux-3.6-kept", &[("centisecs", "0"), ("background_bytes", "null")]);
    let effect = |what, pick, rate| Effect {
        what,
        metric: "rate_mb_per_s",
        from: OFF,
        to: ("linux-3.6-kept", pick),
        stated: Times(rate / 8.395),
    };
    teaches(
        "s4",
        &[],
        &[
            effect("300 centiseconds", &[("centisecs", "300")], 8.743),
            effect("200 centiseconds", &[("centisecs", "200")], 9.531),
            effect("100 centiseconds", &[("centisecs", "100")], 10.460),
            effect("25 MB", &[("background_bytes", "25000000")], 10.5),
        ],
    );
}

#[test]
fn the_quick_form_of_the_budget_has_what_it_promises_beside_linux() {
    let effect = |what, load: Pick, metric, from: f64, to: f64| Effect {
        what,
        metric,
        from: ("linux-6.1", load),
        to: ("budget", load),
        stated: Times(to / from),
    };
    teaches(
        "budget",
        &[("loads", "stream,fsync-beside,burst-beside-full")],
        &[
            effect("the backlog", &[("load", "stream")], "backlog_s", 34.0, 1.0),
            effect("a write, one in a thousand", &[("load", "stream")], "write_p999_ms", 37.9, 9.4),
            effect("a sync beside a stream", &[("load", "fsync-beside")], "fsync_max_ms", 3904.0, 308.0),
            effect("a burst to another disk", &[("load", "burst-beside-full")], "times_alone", 20.0, 1.0),
        ],
    );
}

#[test]
fn the_quick_form_of_govern_has_the_shorter_sync() {
    const FULL: Pick = &[("race", "full-speed")];
    let effect = Effect {
        what: "fsync of everything",
        metric: "sync_s",
        from: ("kernel", FULL),
        to: ("governed", FULL),
        stated: Times(1.0 / 33.0),
    };
    teaches("govern", &[], &[effect]);
}

#[test]
fn the_quick_form_of_eviction_has_what_each_policy_saves() {
    // The full form's hits.
    let effect = |what, pick, from, to, before: f64, after: f64| Effect {
        what,
        metric: "hit_ratio",
        from: (from, pick),
        to: (to, pick),
        stated: More(after - before),
    };
    const SCAN: Pick = &[("generator", "zipf+scan"), ("cache_part", "16")];
    const ZIPF: Pick = &[("generator", "zipf-1.0"), ("cache_part", "16")];
    const RECENT: Pick = &[("generator", "recency"), ("cache_part", "16")];
    teaches(
        "eviction",
        &[("generators", "zipf-1.0,zipf+scan,recency"), ("devices", "none"), ("traces", "none")],
        &[
            effect("a scan costs the kernel's lists more", SCAN, "two-list", "s3-window", 0.209, 0.249),
            effect("popular pages stay", ZIPF, "lru", "s3-window", 0.677, 0.746),
            effect("what the future would save", ZIPF, "s3-window", "belady", 0.746, 0.810),
            effect("where the kernel's lists are better", RECENT, "s3-window", "two-list", 0.493, 0.565),
        ],
    );
}

#[test]
fn the_quick_form_of_throttled_has_the_price_of_the_kernels_defaults() {
    // The full form's figures.
    let effect = |what, metric, from: f64, to: f64| Effect {
        what,
        metric,
        from: ("kernel-default", &[]),
        to: ("kernel-tuned", &[]),
        stated: Times(to / from),
    };
    teaches(
        "throttled",
        &[("case", "kernel")],
        &[
            effect("the dirty bytes", "dirty_mb", 4_201.0, 42.0),
            effect("the sync of everything", "sync_s", 165.92, 1.71),
            effect("what is accepted", "accepted_mb_per_s", 20.1, 25.0),
        ],
    );
}
