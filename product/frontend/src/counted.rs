//! Counts of what a front end has answered, in the same form for each protocol.
//!
//! Owns: the kinds of rows; the sums of the calls, of those that use a file's bytes, of those that are not admitted.
//! Does not own: the rows (front ends), their display (the command).
//! Invariants: a reader of rows asks for their kind, not for their names. So a protocol that is added later counts
//! wherever the others do.

use crate::trace::TracedOperation;

/// The kind of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowKind {
    /// Calls have one answer each.
    Call,
    /// Operations are parts of calls.
    Operation,
    /// Messages that the front end did not carry out as calls.
    Refusal,
    /// Calls of callers that are not admitted.
    Unauthorized,
    /// Answers that report an error.
    Failure,
    /// Connections of clients.
    Connection,
}

/// A row of a front end's counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedRow {
    /// Its name, with the name of the protocol.
    pub name: &'static str,
    /// The kind of the counted things.
    pub kind: RowKind,
    /// How the counted calls or operations use a file's bytes.
    pub traced: Option<TracedOperation>,
    /// The count since the start.
    pub count: u64,
}

/// The sum over a front end's rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnsweredSum {
    /// Count of calls that have ended.
    pub calls: u64,
    /// Calls, or operations in them, that read bytes.
    pub reads: u64,
    /// Those that wrote bytes.
    pub writes: u64,
    /// Those that asked for bytes to be durable.
    pub syncs: u64,
    /// Calls of callers that are not admitted.
    pub unauthorized: u64,
}

impl AnsweredSum {
    /// The sum of all rows.
    pub fn of(rows: &[CountedRow]) -> Self {
        let sum =
            |is_meant: &dyn Fn(&CountedRow) -> bool| rows.iter().filter(|row| is_meant(row)).map(|row| row.count).sum();
        let of_kind = |kind| sum(&|row| row.kind == kind);
        let traced = |operation| sum(&|row| row.traced == Some(operation));
        Self {
            calls: of_kind(RowKind::Call),
            reads: traced(TracedOperation::Read),
            writes: traced(TracedOperation::Write),
            syncs: traced(TracedOperation::Sync),
            unauthorized: of_kind(RowKind::Unauthorized),
        }
    }
}
