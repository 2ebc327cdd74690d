//! Versions 4.1 and 4.2 of NFS (RFC 8881, RFC 7862): compounds of operations, in sessions.
//!
//! Owns: the state that all connections share; the path of a compound from a record to its reply.
//! Does not own: the transport (`wire`), the volume's operations (`operations` above), version 3.
//! Invariants: this folder and `v3` never import each other. The lock of the state is held for look-ups alone, and
//! never over an await; a session's slots and its back channel have locks of their own below it.
//!
//! | RFC | what | where |
//! |-|-|-|
//! | 8881, 2.4, 18.35, 18.50 | client IDs, client owners: EXCHANGE_ID, DESTROY_CLIENTID | `state/clients.rs` |
//! | 8881, 2.10, 18.36, 18.37 | sessions, channel attributes: CREATE_SESSION, DESTROY_SESSION | `state/sessions.rs`, `state/slots.rs` |
//! | 8881, 2.10.6, 18.46 | slots, exactly-once semantics, the reply cache: SEQUENCE | `state/slots.rs`, `operations/sessions.rs` |
//! | 8881, 2.10.3.1, 18.34, 20 | the back channel: BIND_CONN_TO_SESSION, CB_SEQUENCE, CB_NOTIFY_LOCK, CB_RECALL | `back_channel.rs` |
//! | 8881, 5 | attributes: GETATTR, SETATTR, VERIFY | `attributes.rs`, `operations/attributes.rs` |
//! | 8881, 7 | the pseudo file system: PUTROOTFH | `pseudo_root.rs`, `operations/handles.rs` |
//! | 8881, 8.2 | stateids, seqids: FREE_STATEID, TEST_STATEID | `state/stateids.rs` |
//! | 8881, 8.3 | the lease and its renewal, courtesy to silent clients | `state/leases.rs` |
//! | 8881, 8.4 | server restart: the grace period, reclaims, RECLAIM_COMPLETE | `grace.rs`, `recovery.rs`, `state/persisted.rs` |
//! | 8881, 9.1 to 9.7, 18.10 to 18.12 | byte-range locks, lock owners: LOCK, LOCKT, LOCKU | `locking.rs`, `state/lock_states.rs`, `operations/locks.rs` |
//! | 8881, 9.8, 9.9, 18.2, 18.16, 18.18 | share reservations, open owners: OPEN, OPEN_DOWNGRADE, CLOSE | `state/opens.rs`, `operations/opens.rs` |
//! | 8881, 10.2 to 10.5, 18.6 | read delegations: DELEGRETURN | `state/delegations.rs`, `delegating.rs` |
//! | 8881, 15 | the errors, NFS4ERR_ | `../status.rs` |
//! | 8881, 16, 17 | COMPOUND, the table of operations | `compound.rs`, `course.rs`, `opnum.rs`, `codec.rs` |
//! | 7862; 8276 | SEEK, ALLOCATE; COPY, CLONE; extended attributes | `operations/data.rs`, `operations/copies.rs`, `operations/attributes.rs` |
//!
//! ```text
//! a client   EXCHANGE_ID -> unconfirmed -> CREATE_SESSION -> confirmed -> RECLAIM_COMPLETE
//!            each SEQUENCE renews the lease; 60 s without one: expired, a courtesy client
//!            expired -> another wants its state: revoked | silent for a day: forgotten | DESTROY_CLIENTID
//!
//! an open    OPEN -> stateid with seqid 1 -> OPEN, OPEN_DOWNGRADE: seqid + 1 -> CLOSE
//!            with the last CLOSE its lock owners end, and with the client all its opens
//!
//! a delegation
//!            OPEN -> stateid -> a change by others: CB_RECALL -> DELEGRETURN
//!            not returned within a lease: revoked -> SEQUENCE tells the client -> FREE_STATEID
//!
//! a lock     LOCK with an open stateid -> lock stateid -> LOCK, LOCKU: seqid + 1 -> FREE_STATEID, or CLOSE
//!            LOCK that waits -> NFS4ERR_DENIED -> CB_NOTIFY_LOCK when the bytes are free -> LOCK
//! ```

mod attributes;
mod back_channel;
pub(crate) mod client_info;
mod client_state;
mod codec;
pub(crate) mod compound;
pub(crate) mod course;
mod delegating;
pub(crate) mod grace;
mod locking;
mod operations;
mod opnum;
mod owners;
mod posix_acls;
mod pseudo_root;
pub(crate) mod recovery;
pub(crate) mod service;
mod state;

pub(crate) use service::Service;
pub(crate) use state::leases::LEASE_NS;

/// Reads all operations of a compound whose arguments start at `at`, as far as that needs no volume. For fuzzers: it
/// returns for any bytes.
pub(crate) fn is_decodable(record: &[u8], at: usize) -> bool {
    let Ok(head) = codec::head(record, at) else { return false };
    let (mut at, mut operation) = (head.at, codec::ArgOp::Unsupported);
    for _ in 0..head.count {
        match codec::read_operation(record, at, head.minor, &mut operation) {
            Ok((_, Ok(next))) => at = next,
            _ => return false,
        }
    }
    true
}
