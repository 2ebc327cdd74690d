//! Counts of calls by operation, and of error answers.
//!
//! Owns: the counters.
//! Does not own: the display of the figures (the command).
//! Invariants: a message is counted once, when it comes.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frontend::trace::TracedOperation;
use afflux_frontend::{CountedRow, RowKind};

use crate::abi::{OPERATIONS, op};

/// Opcodes are below this.
const OPCODES: usize = 64;

/// The use of a file's bytes by an operation.
fn traced(opcode: u32) -> Option<TracedOperation> {
    match opcode {
        op::READ => Some(TracedOperation::Read),
        op::WRITE => Some(TracedOperation::Write),
        op::FSYNC => Some(TracedOperation::Sync),
        _ => None,
    }
}

pub(crate) struct CallCounts {
    by_opcode: [AtomicU64; OPCODES],
    unknown: AtomicU64,
    errors: AtomicU64,
}

impl CallCounts {
    pub(crate) fn new() -> Self {
        Self {
            by_opcode: std::array::from_fn(|_| AtomicU64::new(0)),
            unknown: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }

    pub(crate) fn count(&self, opcode: u32) {
        let known = self.by_opcode.get(opcode as usize).unwrap_or(&self.unknown);
        known.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// The row of each operation, then that of the answers that were errors.
    pub(crate) fn rows(&self) -> Vec<CountedRow> {
        let known = OPERATIONS.iter().map(|(opcode, name)| {
            let count = self.by_opcode.get(*opcode as usize).map_or(0, |count| count.load(Ordering::Relaxed));
            CountedRow { name, kind: RowKind::Call, traced: traced(*opcode), count }
        });
        let count = self.errors.load(Ordering::Relaxed);
        known.chain([CountedRow { name: "fuse_errors", kind: RowKind::Failure, traced: None, count }]).collect()
    }
}
