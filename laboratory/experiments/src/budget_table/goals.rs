//! The goals of the flush budget.
//!
//! Owns: the goals. Does not own: the figures.
//! Invariants: 'met' is computed from rows of the run; a goal whose cell was not run has no row.

use afflux_report::{Fields, Row};
use afflux_rig::Bound::{self, AtLeast, AtMost};

use super::findings::{Cell, figure, text};
use super::laws::Law;
use crate::machine::row;
use crate::options::Named;

/// A figure of a cell and its bound.
struct Goal {
    load: &'static str,
    device: &'static str,
    metric: &'static str,
    bound: Bound,
}

const fn goal(load: &'static str, device: &'static str, metric: &'static str, bound: Bound) -> Goal {
    Goal { load, device, metric, bound }
}

/// The USB stick may miss its goal in throughput if its backlog stays within eight budgets, which is the next goal.
const GOALS: &[Goal] = &[
    goal("100-streams", "hdd", "percent_of_raw", AtLeast(90.0)),
    goal("100-streams", "usb", "percent_of_raw", AtLeast(80.0)),
    goal("100-streams", "usb", "backlog_s", AtMost(8.0)),
    goal("stream", "object", "percent_of_raw", AtLeast(98.0)),
    goal("stream", "nvme", "percent_of_raw", AtLeast(99.0)),
    goal("stream", "25MB/s", "percent_of_raw", AtLeast(98.0)),
    goal("stream", "25MB/s", "write_p999_ms", AtMost(6.0)),
    goal("stream", "25MB/s", "sync_all_s", AtMost(1.2)),
    goal("fsync-beside", "25MB/s", "fsync_max_ms", AtMost(300.0)),
    goal("burst-beside-full", "ssd", "times_alone", AtMost(1.05)),
    goal("burst-beside-hung", "ssd", "times_alone", AtMost(1.05)),
    goal("three-sizes", "25MB/s", "jain_of_bytes", AtLeast(0.99)),
];

/// Light payers may raise the backlog above T by this part of T. Each payer may add one allowance, in milliseconds: 1
/// ms unpaid and a piece of 256 KiB at 25 MB/s.
const LIGHT_PART: f64 = 1.0 / 8.0;
const ALLOWANCE_MS: f64 = 1.0 + 10.5;

fn of_goal(cells: &[Cell], goal: &Goal) -> Option<Row> {
    let cell = cells.iter().find(|cell| cell.is(Law::Budget, goal.load, goal.device))?;
    Some(goal_row(goal.load, goal.device, goal.metric, goal.bound, figure(&cell.row, goal.metric)))
}

fn goal_row(load: &str, device: &str, metric: &str, bound: Bound, found: Option<f64>) -> Row {
    let params = Fields::new().with("load", load).with("device", device).with("metric", metric);
    let met = found.is_some_and(|found| bound.is_met(found));
    let metrics = Fields::new()
        .with("wanted", bound.to_string())
        .with("found", found)
        .with("goal", if met { "met" } else { "missed" });
    row("budget-goals", &Law::Budget.name(), params, metrics, Fields::new())
}

/// The bound of the backlog, on every device and load: the largest T in force, plus the share of light payers, plus one
/// allowance for each payer.
fn of_backlog(cell: &Cell) -> Option<Row> {
    let (load, device) = (text(&cell.row, "load"), text(&cell.row, "device"));
    let (found, limit_s) =
        (figure(&cell.row, "backlog_s")?, figure(&cell.row, "limit_s").filter(|limit| *limit > 0.0)?);
    let payers = if load == "100-streams" { 100.0 } else { 4.0 };
    let bound = (limit_s * (1.0 + LIGHT_PART) + payers * ALLOWANCE_MS / 1000.0) * 1000.0;
    let bound = bound.round() / 1000.0;
    Some(goal_row(load, device, "backlog_s", AtMost(bound), Some(found)))
}

/// All goals that the cells of this run can decide.
pub(super) fn rows(cells: &[Cell]) -> Vec<Row> {
    let own = cells.iter().filter(|cell| cell.row.variant == Law::Budget.name());
    let fixed = GOALS.iter().filter_map(|goal| of_goal(cells, goal));
    fixed.chain(own.filter_map(of_backlog)).collect()
}

#[cfg(test)]
mod tests;
