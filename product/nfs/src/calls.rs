//! Counts of calls by procedure, and by outcome.
//!
//! Owns: the rows (procedures, refusals, statuses other than OK), a connection's tally, their sum.
//! Does not own: the display of the figures (the command).
//! Invariants: an answered call is counted once under its procedure or its refusal, and once more under its status if
//! that is not OK. A connection's tally is added to the sum after each poll.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frontend::{CountedRow, RowKind};

use crate::status::NfsStatus;
use crate::v3::{arguments, side_protocols};
use crate::wire::rpc::Refusal;

/// Refusals and other outcomes of a record, after the procedures.
const OTHERS: [(&str, RowKind); 12] = [
    ("rpc_mismatch", RowKind::Refusal),
    ("rpc_auth_rejected", RowKind::Refusal),
    ("rpc_auth_bad", RowKind::Refusal),
    ("rpc_auth_tooweak", RowKind::Unauthorized),
    ("rpc_prog_unavail", RowKind::Refusal),
    ("rpc_prog_mismatch", RowKind::Refusal),
    ("rpc_proc_unavail", RowKind::Refusal),
    ("rpc_garbage_args", RowKind::Refusal),
    ("rpc_stray_reply", RowKind::Refusal),
    ("rpc_duplicate_call", RowKind::Refusal),
    ("rpc_connections", RowKind::Connection),
    ("nlm_calls", RowKind::Call),
];

const MOUNT_AT: usize = arguments::PROCEDURES.len();
const OTHERS_AT: usize = MOUNT_AT + side_protocols::MOUNT_PROCEDURES.len();
const STATUSES_AT: usize = OTHERS_AT + OTHERS.len();
const ROWS: usize = STATUSES_AT + NfsStatus::ALL.len();

/// The rows in use are marked in a word this wide.
const _: () = assert!(ROWS <= u128::BITS as usize);

/// An event that is counted.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    Nfs(u32),
    Mount(u32),
    Refused(Refusal),
    StrayReply,
    Duplicate,
    Connected,
    LockService,
    Ended(NfsStatus),
}

impl Event {
    fn row(self) -> usize {
        match self {
            Self::Nfs(procedure) => procedure as usize,
            Self::Mount(procedure) => MOUNT_AT + procedure as usize,
            Self::Refused(refusal) => {
                OTHERS_AT
                    + match refusal {
                        Refusal::RpcMismatch => 0,
                        Refusal::RejectedCredential => 1,
                        Refusal::BadCredential => 2,
                        Refusal::WeakCredential => 3,
                        Refusal::ProgramUnavailable => 4,
                        Refusal::ProgramMismatch { .. } => 5,
                        Refusal::ProcedureUnavailable => 6,
                        Refusal::GarbageArguments => 7,
                    }
            }
            Self::StrayReply => OTHERS_AT + 8,
            Self::Duplicate => OTHERS_AT + 9,
            Self::Connected => OTHERS_AT + 10,
            Self::LockService => OTHERS_AT + 11,
            Self::Ended(status) => STATUSES_AT + status as usize,
        }
    }
}

/// The sum over all connections.
pub(crate) struct Calls {
    rows: [AtomicU64; ROWS],
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self { rows: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// The rows, without that of the status OK: it follows from the others.
    pub(crate) fn rows(&self) -> Vec<CountedRow> {
        let calls = arguments::PROCEDURES.into_iter().chain(side_protocols::MOUNT_PROCEDURES);
        let statuses = NfsStatus::ALL.iter().map(|status| (status.name(), RowKind::Failure));
        let kinds = calls.map(|name| (name, RowKind::Call)).chain(OTHERS).chain(statuses);
        kinds
            .zip(&self.rows)
            .enumerate()
            .filter(|(_, ((name, _), _))| *name != NfsStatus::Ok.name())
            .map(|(at, ((name, kind), count))| CountedRow {
                name,
                kind,
                traced: arguments::traced(at),
                count: count.load(Ordering::Relaxed),
            })
            .collect()
    }

    /// Counts one event at once.
    pub(crate) fn count(&self, event: Event) {
        self.rows[event.row()].fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection's counts since it last added them to the sum. These are plain stores, so that two reactors do not pass
/// the sum's cache lines to and fro with every call.
pub(crate) struct Tally {
    rows: [u32; ROWS],
    used: u128,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { rows: [0; ROWS], used: 0 }
    }

    /// Counts one event.
    pub(crate) fn count(&mut self, event: Event) {
        let row = event.row();
        self.rows[row] = self.rows[row].saturating_add(1);
        self.used |= 1 << row;
    }

    /// Counts a call's status.
    pub(crate) fn ended(&mut self, status: NfsStatus) {
        if status != NfsStatus::Ok {
            self.count(Event::Ended(status));
        }
    }

    /// Adds everything to the sum and starts again.
    pub(crate) fn add_to(&mut self, calls: &Calls) {
        while self.used != 0 {
            let row = self.used.trailing_zeros() as usize;
            self.used &= self.used - 1;
            calls.rows[row].fetch_add(std::mem::take(&mut self.rows[row]).into(), Ordering::Relaxed);
        }
    }
}
