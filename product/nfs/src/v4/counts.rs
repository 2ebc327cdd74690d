//! Counts of operations by their kind.
//!
//! Owns: the names of operations as counters.
//! Does not own: the counts of statuses, which both versions share.
//! Invariants: an operation is counted once, when it has its result; a compound once, when it has come.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frontend::trace::TracedOperation;
use afflux_frontend::{CountedRow, RowKind};

/// The names by number, from the first operation on.
const NAMES: [&str; 73] = [
    "nfs_v4_access",
    "nfs_v4_close",
    "nfs_v4_commit",
    "nfs_v4_create",
    "nfs_v4_delegpurge",
    "nfs_v4_delegreturn",
    "nfs_v4_getattr",
    "nfs_v4_getfh",
    "nfs_v4_link",
    "nfs_v4_lock",
    "nfs_v4_lockt",
    "nfs_v4_locku",
    "nfs_v4_lookup",
    "nfs_v4_lookupp",
    "nfs_v4_nverify",
    "nfs_v4_open",
    "nfs_v4_openattr",
    "nfs_v4_open_confirm",
    "nfs_v4_open_downgrade",
    "nfs_v4_putfh",
    "nfs_v4_putpubfh",
    "nfs_v4_putrootfh",
    "nfs_v4_read",
    "nfs_v4_readdir",
    "nfs_v4_readlink",
    "nfs_v4_remove",
    "nfs_v4_rename",
    "nfs_v4_renew",
    "nfs_v4_restorefh",
    "nfs_v4_savefh",
    "nfs_v4_secinfo",
    "nfs_v4_setattr",
    "nfs_v4_setclientid",
    "nfs_v4_setclientid_confirm",
    "nfs_v4_verify",
    "nfs_v4_write",
    "nfs_v4_release_lockowner",
    "nfs_v4_backchannel_ctl",
    "nfs_v4_bind_conn_to_session",
    "nfs_v4_exchange_id",
    "nfs_v4_create_session",
    "nfs_v4_destroy_session",
    "nfs_v4_free_stateid",
    "nfs_v4_get_dir_delegation",
    "nfs_v4_getdeviceinfo",
    "nfs_v4_getdevicelist",
    "nfs_v4_layoutcommit",
    "nfs_v4_layoutget",
    "nfs_v4_layoutreturn",
    "nfs_v4_secinfo_no_name",
    "nfs_v4_sequence",
    "nfs_v4_set_ssv",
    "nfs_v4_test_stateid",
    "nfs_v4_want_delegation",
    "nfs_v4_destroy_clientid",
    "nfs_v4_reclaim_complete",
    "nfs_v4_allocate",
    "nfs_v4_copy",
    "nfs_v4_copy_notify",
    "nfs_v4_deallocate",
    "nfs_v4_io_advise",
    "nfs_v4_layouterror",
    "nfs_v4_layoutstats",
    "nfs_v4_offload_cancel",
    "nfs_v4_offload_status",
    "nfs_v4_read_plus",
    "nfs_v4_seek",
    "nfs_v4_write_same",
    "nfs_v4_clone",
    "nfs_v4_getxattr",
    "nfs_v4_setxattr",
    "nfs_v4_listxattrs",
    "nfs_v4_removexattr",
];
const FIRST: u32 = 3;
const COMMIT: u32 = 5;
const READ: u32 = 25;
const WRITE: u32 = 38;
const READ_PLUS: u32 = 68;
/// Operations that no version has.
const OTHERS: &str = "nfs_v4_other";
/// All calls; NULL counts as an empty one.
const COMPOUNDS: &str = "nfs_v4_compound";

/// A count for each kind of operation.
pub(crate) struct Counts {
    rows: [AtomicU64; NAMES.len()],
    others: AtomicU64,
    compounds: AtomicU64,
}

/// The way an operation uses a file's bytes.
fn traced(number: u32) -> Option<TracedOperation> {
    match number {
        READ | READ_PLUS => Some(TracedOperation::Read),
        WRITE => Some(TracedOperation::Write),
        COMMIT => Some(TracedOperation::Sync),
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
        let row = number.checked_sub(FIRST).and_then(|at| self.rows.get(at as usize)).unwrap_or(&self.others);
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
        let known = (FIRST..).zip(NAMES.into_iter().zip(&self.rows));
        let operations = known.map(move |(number, (name, count))| row(name, RowKind::Operation, traced(number), count));
        operations.chain([
            row(OTHERS, RowKind::Operation, None, &self.others),
            row(COMPOUNDS, RowKind::Call, None, &self.compounds),
        ])
    }
}
