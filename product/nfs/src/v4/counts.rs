//! Counts of operations by their kind.
//!
//! Owns: the counts of operations and compounds.
//! Does not own: the names of operations as counters (`opnum`), the counts of statuses, which both versions share.
//! Invariants: an operation is counted once, when it has its result; a compound once, when it has come.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frontend::trace::TracedOperation;
use afflux_frontend::{CountedRow, RowKind};

use super::opnum::{self, COUNTERS};

/// Operations that no version has.
const OTHERS: &str = "nfs_v4_other";
/// All calls; NULL counts as an empty one.
const COMPOUNDS: &str = "nfs_v4_compound";

/// A count for each kind of operation.
pub(crate) struct Counts {
    rows: [AtomicU64; COUNTERS.len()],
    others: AtomicU64,
    compounds: AtomicU64,
}

/// The way an operation uses a file's bytes.
fn traced(number: u32) -> Option<TracedOperation> {
    match number {
        opnum::READ | opnum::READ_PLUS => Some(TracedOperation::Read),
        opnum::WRITE => Some(TracedOperation::Write),
        opnum::COMMIT => Some(TracedOperation::Sync),
        _ => None,
    }
}

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            rows: std::array::from_fn(|_| AtomicU64::new(0)),
            others: AtomicU64::new(0),
            compounds: AtomicU64::new(0),
        }
    }

    /// Counts one operation.
    pub(super) fn count(&self, number: u32) {
        let row = number.checked_sub(opnum::FIRST).and_then(|at| self.rows.get(at as usize)).unwrap_or(&self.others);
        row.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one call.
    pub(crate) fn count_compound(&self) {
        self.compounds.fetch_add(1, Ordering::Relaxed);
    }

    /// Each kind with its count.
    pub(crate) fn rows(&self) -> impl Iterator<Item = CountedRow> {
        let row = |name, kind, traced, count: &AtomicU64| CountedRow {
            name,
            kind,
            traced,
            count: count.load(Ordering::Relaxed),
        };
        let known = (opnum::FIRST..).zip(COUNTERS.into_iter().zip(&self.rows));
        let operations = known.map(move |(number, (name, count))| row(name, RowKind::Operation, traced(number), count));
        operations.chain([
            row(OTHERS, RowKind::Operation, None, &self.others),
            row(COMPOUNDS, RowKind::Call, None, &self.compounds),
        ])
    }
}
