//! The simulator against the real machine: the same jobs on a throttled disk, simulated and measured; and `linux-6.1`
//! in the simulator, alone and against a recorded 6.1.
//!
//! Owns: the list of cases, the labels of their cells.
//! Does not own: the options (`plan`), the cases (`jobs`, `kernel`, `recorded`), their worlds (`simulated`, `real`),
//! the slow disk (`hardware`).
//! Invariants: both sides run the same operations in the same order, from the same seed.

mod compare;
mod jobs;
mod kernel;
mod plan;
mod real;
mod recorded;
mod simulated;

use crate::experiment::{Experiment, Findings, KeptRows, LabError, Request};
use crate::labels::{Cells, Label};
use crate::pick::Pick;

/// The experiment.
pub(crate) static THROTTLED: Experiment = Experiment {
    name: "throttled",
    about: "The simulator against the real thing: a disk with a byte rate, simulated and measured",
    labels: LABELS,
    thread: "Thread: none. It asks whether the simulator that other experiments use may be trusted; the law beside the kernel is \
         'IO-less dirty throttling', Wu Fengguang, linux-kernel, 2010 and 2011",
    words: include_str!("words.md"),
    options: plan::OPTIONS,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut KeptRows<'_>) -> Result<Findings, LabError> {
    match plan::CASE.value(request)? {
        plan::Case::Jobs => jobs::run(request, watch),
        plan::Case::Kernel => kernel::run(request, watch),
        plan::Case::Recorded => recorded::run(watch),
    }
}

/// The origins of the figures. The measured side has none: it is what was measured.
const LABELS: &[Cells] = &[
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
