//! The simulated part of s4: the list of copies, and the row of each.
//!
//! Owns: the rows.
//! Does not own: the variants (`plan`), the server (`server`), the arrangement of rows (`findings`).
//! Invariants: each row is one copy of one file.

use afflux_engine::counters::Counter;
use afflux_report::{Fields, Row};

use super::plan::{OWN, Plan, Threshold};
use super::published;
use super::server::{Copy, ServerMachine};
use crate::experiment::{LabError, Watch};
use crate::machine::{self, rounded};

/// One cell of the table.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) variant: &'static str,
    pub(super) threshold: Threshold,
    pub(super) record_bytes: u32,
    pub(super) copy: Copy,
}

/// Makes all copies.
pub(super) fn run(plan: &Plan, watch: &mut dyn Watch, share: f64) -> Result<Vec<Cell>, LabError> {
    let all = plan.variants.len() * plan.columns.len() * plan.records.len();
    let mut cells = Vec::with_capacity(all);
    for &variant in &plan.variants {
        for &threshold in &plan.columns {
            let mut kept = None;
            for (number, &record_bytes) in plan.records.iter().enumerate() {
                let what = format!("{}, {threshold:?}, records of {record_bytes}", variant.name);
                watch.step(&what, share * cells.len() as f64 / all as f64);
                let machine = match kept.take() {
                    Some(machine) => machine,
                    None => ServerMachine::new(plan, variant.law, threshold, number as u64 + 1)?,
                };
                let copy = machine.copy(plan, &format!("file{number}"), plan.write_bytes_for(record_bytes))?;
                kept = variant.keeps.then_some(machine);
                let cell = Cell { variant: variant.name, threshold, record_bytes, copy };
                watch.row(&row(plan, &cell));
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}

fn row(plan: &Plan, cell: &Cell) -> Row {
    let copy = &cell.copy;
    let first_writes: Vec<f64> =
        copy.first_writes_bytes().iter().map(|bytes| rounded(*bytes as f64 / 1e6, 3)).collect();
    let published = published::of(cell.threshold, |cs| published::rate(cs, cell.record_bytes))
        .filter(|_| plan.is_published && cell.variant != OWN);
    let counted = |counter| copy.counter(counter);
    let params = Fields::new()
        .with("centisecs", cell.threshold.centisecs())
        .with("background_bytes", cell.threshold.bytes())
        .with("tuned", cell.threshold == Threshold::Tuned)
        .with("clients", plan.clients)
        .with("record_bytes", cell.record_bytes)
        .with("write_bytes", plan.write_bytes_for(cell.record_bytes))
        .with("size_bytes", plan.file_bytes)
        .with("client_window_bytes", plan.window_bytes)
        .with("link_bits_per_s", plan.link.bits_per_second)
        .with("disk_bytes_per_s", plan.disk_bytes_per_s)
        .with("beside_bytes_per_s", plan.beside)
        .with("memory_bytes", plan.memory_bytes);
    let metrics = Fields::new()
        .with("rate_mb_per_s", rounded(copy.rate_mb_per_s(), 3))
        .with("commit_wait_ms_mean", rounded(copy.commit_wait_ms(), 3))
        .with("commits", copy.client.commit_waits_ns.len())
        .with("elapsed_ns", copy.client.elapsed_ns)
        .with("first_write_at_dirty_mb", first_writes)
        .with("link_bytes", copy.link_bytes)
        .with("disk_busy_ns", copy.disk_busy_ns)
        .with("disk_commands", copy.disk_commands)
        .with("nr_dirtied", counted(Counter::PagesDirtied))
        .with("nr_written", counted(Counter::PagesWritten))
        .with("write_requests", counted(Counter::WriteRequests))
        .with("sync_requests", counted(Counter::SyncRequests))
        .with("flusher_turns", counted(Counter::FlusherTurns))
        .with("balance_calls", counted(Counter::BalanceCalls))
        .with("throttle_pauses", counted(Counter::ThrottlePauses))
        .with("delays", copy.delays.clone());
    let metrics = copy.beside.iter().fold(metrics, |metrics, [bytes, requests, dirty]| {
        let seconds = copy.client.elapsed_ns as f64 / 1e9;
        metrics
            .with("beside_mb_per_s", rounded(*bytes as f64 / 1e6 / seconds, 3))
            .with("beside_kib_a_write", rounded(*bytes as f64 / 1024.0 / (*requests).max(1) as f64, 1))
            .with("beside_dirty_mb", rounded(*dirty as f64 / 1e6, 2))
    });
    let published = published.map_or_else(Fields::new, |rate| Fields::new().with("rate_mb_per_s", rate));
    machine::row("s4", cell.variant, params, metrics, published)
}
