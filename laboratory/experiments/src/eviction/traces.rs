//! The third part: bytes read of real traces, by policy, with and without readahead.
//!
//! Owns: the list of traces, a row of the table, pages of calls as touches.
//! Does not own: the traces' form (`calls`), the run of the whole engine (`replay`), tables (`findings`).
//! Invariants: all policies of a row see the same calls in the same order. A trace that is held out changed no policy
//! before the measured share; the rows of all were seen while its constants were chosen.

mod calls;
mod replay;

use std::collections::HashMap;

use afflux_engine::eviction::EvictionKind;
use afflux_engine::settings::did_you_mean;
use afflux_workloads::touches::{Sequence, Touch};

use super::part::Part;
use super::ratios::{ENGINES, POLICIES, cache, to_best};
use super::references::run;
use crate::experiment::LabError;
use crate::machine::PAGE_BYTES;
use calls::Call;

/// The parts of a trace's pages that caches hold.
pub(super) const PARTS: [Part; 10] = [
    Part(1, 16),
    Part(1, 8),
    Part(1, 4),
    Part(1, 2),
    Part(7, 10),
    Part(8, 10),
    Part(9, 10),
    Part(19, 20),
    Part(99, 100),
    Part(1, 1),
];

/// The cache of a quick run.
pub(super) const QUICK_PARTS: [Part; 1] = [Part(1, 4)];

/// A recorded trace.
pub(super) struct RealTrace {
    pub(super) name: &'static str,
    pub(super) held_out: bool,
    packed: &'static [u8],
}

macro_rules! trace {
    ($name:literal, $held_out:literal) => {
        RealTrace {
            name: $name,
            held_out: $held_out,
            packed: include_bytes!(concat!("../../traces/", $name, ".calls")),
        }
    };
}

/// All traces; `laboratory/experiments/traces/README.md` tells how each was recorded.
pub(super) const TRACES: &[RealTrace] = &[
    trace!("git", false),
    trace!("build", false),
    trace!("mail", false),
    trace!("database", false),
    trace!("video", false),
    trace!("vm-roomy", false),
    trace!("vm-tight", false),
    trace!("vm-held-out", true),
    trace!("database-held-out", true),
];

/// The trace of this name; the error lists the names.
pub(super) fn named(name: &str) -> Result<&'static RealTrace, String> {
    TRACES.iter().find(|trace| trace.name == name).ok_or_else(|| {
        let names: Vec<&str> = TRACES.iter().map(|trace| trace.name).collect();
        let near = did_you_mean(name, names.iter().copied());
        format!("there is no such trace{near}; there are {}, all, none", names.join(", "))
    })
}

/// A trace with one cache size.
pub(super) struct TraceRow {
    pub(super) trace: &'static str,
    pub(super) held_out: bool,
    /// The part of the pages that the cache holds.
    pub(super) part: Part,
    /// Pages read without readahead, in the order of [`POLICIES`].
    pub(super) misses: Vec<u64>,
    /// Bytes that a disk reads under the engine's policies, in the order of [`ENGINES`]: without and with readahead.
    pub(super) disk_bytes: [[u64; 2]; 2],
}

impl TraceRow {
    pub(super) fn run(trace: &RealTrace, part: Part) -> Result<Self, LabError> {
        let calls = calls::unpacked(trace.packed).map_err(LabError::Failed)?;
        let (sequence, pages) = touches(&calls);
        let frames = part.of(pages).max(16);
        let misses = POLICIES.iter().map(|policy| misses(policy, frames as usize, &sequence)).collect();
        let mut disk_bytes = [[0; 2]; 2];
        for (kind, bytes) in ENGINES.into_iter().zip(&mut disk_bytes) {
            *bytes =
                [replay::bytes_read(&calls, frames, kind, false)?, replay::bytes_read(&calls, frames, kind, true)?];
        }
        Ok(Self { trace: trace.name, held_out: trace.held_out, part, misses, disk_bytes })
    }

    /// [`to_best`] of this row.
    pub(super) fn to_best(&self) -> f64 {
        to_best(&self.misses)
    }

    /// Bytes that a disk reads under the default with readahead, for each byte without.
    pub(super) fn readahead_ratio(&self) -> f64 {
        let default = ENGINES.iter().position(|kind| *kind == EvictionKind::default()).unwrap_or(0);
        let [without, with] = self.disk_bytes[default];
        with as f64 / without.max(1) as f64
    }
}

/// The pages of all calls in order, numbered by their first call; and how many there are.
fn touches(calls: &[Call]) -> (Sequence, u64) {
    let mut numbers: HashMap<(u32, u64), u32> = HashMap::new();
    let mut touches = Vec::new();
    for call in calls.iter().filter(|call| call.bytes > 0) {
        for page in call.offset / PAGE_BYTES..(call.offset + call.bytes).div_ceil(PAGE_BYTES) {
            let next = numbers.len() as u32;
            let page = *numbers.entry((call.file, page)).or_insert(next);
            touches.push(Touch { page, write: call.writes, ahead: 0 });
        }
    }
    (Sequence::from(touches), numbers.len() as u64)
}

fn misses(policy: &str, frames: usize, sequence: &Sequence) -> u64 {
    let counts = run(&mut *cache(policy, frames, sequence), &sequence.touches, 0);
    counts.touches - counts.hits
}
