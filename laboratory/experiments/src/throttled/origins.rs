//! The origins of the figures of `throttled`.
//!
//! Owns: the labels of its cells. Does not own: what a label means (`labels`).
//! Invariants: a hold-out is a figure by which nothing in the law or the machine was chosen.

use crate::labels::{Cells, Label};
use crate::pick::Pick;

/// The origins of the figures. The measured side has none: it is what was measured.
pub(super) const LABELS: &[Cells] = &[
    Cells::of(
        Label::PutIn,
        "the disk's rate and latency, the jobs, the limits",
        &[
            "rate_bytes_per_s",
            "limit_pages",
            "background_pages",
            "disk_pages_per_s",
            "call_ns",
            "worker_ns_per_page",
            "hz",
        ],
    ),
    Cells::of(Label::PutIn, "accepted pages at 20 MB/s, which are the load", &["accepted_pages"])
        .only(&[("variant", "recorded-at-rate")]),
    Cells::of(
        Label::HoldOut,
        "the loads with ratios and with bursts, and the pauses and syncs of all loads",
        &["pauses", "sync_s", "small_syncs_s", "bursts_s"],
    )
    .only(RECORDED),
    Cells::of(
        Label::HoldOut,
        "the loads with ratios and with bursts, and the pauses and syncs of all loads",
        &["dirty_pages", "accepted_pages", "written_pages"],
    )
    .only(&[("variant", "recorded-default|recorded-burst")]),
];

const RECORDED: Pick =
    &[("variant", "recorded-bytes|recorded-default|recorded-at-rate|recorded-small-sync|recorded-burst")];
