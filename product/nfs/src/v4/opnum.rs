//! The numbers (`nfs_opnum4`) of the operations of versions 4.0 and 4.1 (RFC 8881, section 18) and 4.2 (RFC 7862,
//! section 15; RFC 8276, section 8.4), and their counts.
//!
//! Owns: the number of each operation, its name as a counter, the operations of each minor version; the counts of
//! operations and compounds.
//! Does not own: the arguments (`codec`), the meaning (`operations`), the counts of statuses, which both versions have
//! in common.
//! Invariants: the numbers follow each other. An operation that this server does not have is in the table, too. An
//! operation is counted once, when it has its result; a compound once, when it has come.

use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frontend::trace::TracedOperation;
use afflux_frontend::{CountedRow, RowKind};

macro_rules! operations {
    ($($name:ident $number:literal $counter:literal;)*) => {
        $(
            #[allow(dead_code, reason = "the table has operations that this server does not have")]
            pub(super) const $name: u32 = $number;
        )*

        /// The names as counters, from [`FIRST`] on.
        pub(super) const COUNTERS: [&str; [$($number),*].len()] = [$($counter),*];
        const _: () = {
            let (numbers, mut at) = ([$($number),*], 0);
            while at < numbers.len() {
                assert!(numbers[at] == FIRST + at as u32, "a number is left out");
                at += 1;
            }
        };
    };
}

operations! {
    ACCESS 3 "nfs_v4_access";
    CLOSE 4 "nfs_v4_close";
    COMMIT 5 "nfs_v4_commit";
    CREATE 6 "nfs_v4_create";
    DELEGPURGE 7 "nfs_v4_delegpurge";
    DELEGRETURN 8 "nfs_v4_delegreturn";
    GETATTR 9 "nfs_v4_getattr";
    GETFH 10 "nfs_v4_getfh";
    LINK 11 "nfs_v4_link";
    LOCK 12 "nfs_v4_lock";
    LOCKT 13 "nfs_v4_lockt";
    LOCKU 14 "nfs_v4_locku";
    LOOKUP 15 "nfs_v4_lookup";
    LOOKUPP 16 "nfs_v4_lookupp";
    NVERIFY 17 "nfs_v4_nverify";
    OPEN 18 "nfs_v4_open";
    OPENATTR 19 "nfs_v4_openattr";
    OPEN_CONFIRM 20 "nfs_v4_open_confirm";
    OPEN_DOWNGRADE 21 "nfs_v4_open_downgrade";
    PUTFH 22 "nfs_v4_putfh";
    PUTPUBFH 23 "nfs_v4_putpubfh";
    PUTROOTFH 24 "nfs_v4_putrootfh";
    READ 25 "nfs_v4_read";
    READDIR 26 "nfs_v4_readdir";
    READLINK 27 "nfs_v4_readlink";
    REMOVE 28 "nfs_v4_remove";
    RENAME 29 "nfs_v4_rename";
    RENEW 30 "nfs_v4_renew";
    RESTOREFH 31 "nfs_v4_restorefh";
    SAVEFH 32 "nfs_v4_savefh";
    SECINFO 33 "nfs_v4_secinfo";
    SETATTR 34 "nfs_v4_setattr";
    SETCLIENTID 35 "nfs_v4_setclientid";
    SETCLIENTID_CONFIRM 36 "nfs_v4_setclientid_confirm";
    VERIFY 37 "nfs_v4_verify";
    WRITE 38 "nfs_v4_write";
    RELEASE_LOCKOWNER 39 "nfs_v4_release_lockowner";
    BACKCHANNEL_CTL 40 "nfs_v4_backchannel_ctl";
    BIND_CONN_TO_SESSION 41 "nfs_v4_bind_conn_to_session";
    EXCHANGE_ID 42 "nfs_v4_exchange_id";
    CREATE_SESSION 43 "nfs_v4_create_session";
    DESTROY_SESSION 44 "nfs_v4_destroy_session";
    FREE_STATEID 45 "nfs_v4_free_stateid";
    GET_DIR_DELEGATION 46 "nfs_v4_get_dir_delegation";
    GETDEVICEINFO 47 "nfs_v4_getdeviceinfo";
    GETDEVICELIST 48 "nfs_v4_getdevicelist";
    LAYOUTCOMMIT 49 "nfs_v4_layoutcommit";
    LAYOUTGET 50 "nfs_v4_layoutget";
    LAYOUTRETURN 51 "nfs_v4_layoutreturn";
    SECINFO_NO_NAME 52 "nfs_v4_secinfo_no_name";
    SEQUENCE 53 "nfs_v4_sequence";
    SET_SSV 54 "nfs_v4_set_ssv";
    TEST_STATEID 55 "nfs_v4_test_stateid";
    WANT_DELEGATION 56 "nfs_v4_want_delegation";
    DESTROY_CLIENTID 57 "nfs_v4_destroy_clientid";
    RECLAIM_COMPLETE 58 "nfs_v4_reclaim_complete";
    ALLOCATE 59 "nfs_v4_allocate";
    COPY 60 "nfs_v4_copy";
    COPY_NOTIFY 61 "nfs_v4_copy_notify";
    DEALLOCATE 62 "nfs_v4_deallocate";
    IO_ADVISE 63 "nfs_v4_io_advise";
    LAYOUTERROR 64 "nfs_v4_layouterror";
    LAYOUTSTATS 65 "nfs_v4_layoutstats";
    OFFLOAD_CANCEL 66 "nfs_v4_offload_cancel";
    OFFLOAD_STATUS 67 "nfs_v4_offload_status";
    READ_PLUS 68 "nfs_v4_read_plus";
    SEEK 69 "nfs_v4_seek";
    WRITE_SAME 70 "nfs_v4_write_same";
    CLONE 71 "nfs_v4_clone";
    GETXATTR 72 "nfs_v4_getxattr";
    SETXATTR 73 "nfs_v4_setxattr";
    LISTXATTRS 74 "nfs_v4_listxattrs";
    REMOVEXATTR 75 "nfs_v4_removexattr";
}

pub(super) const FIRST: u32 = ACCESS;
/// The reply to a number that is none of the minor version's.
pub(super) const ILLEGAL: u32 = 10_044;

/// Whether a minor version has an operation with this number. 4.2 is with extended attributes.
#[inline]
pub(super) fn is_known(number: u32, minor: u32) -> bool {
    let last = if minor >= 2 { REMOVEXATTR } else { RECLAIM_COMPLETE };
    (FIRST..=last).contains(&number)
}

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

/// How an operation uses a file's bytes.
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
        let known = (FIRST..).zip(COUNTERS.into_iter().zip(&self.rows));
        let operations = known.map(move |(number, (name, count))| row(name, RowKind::Operation, traced(number), count));
        operations.chain([
            row(OTHERS, RowKind::Operation, None, &self.others),
            row(COMPOUNDS, RowKind::Call, None, &self.compounds),
        ])
    }
}
