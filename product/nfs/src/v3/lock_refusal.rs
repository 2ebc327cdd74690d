//! The lock service that clients of version 3 ask (NLM 4), which has no locks.
//!
//! Owns: the reply to each of its procedures: a client's program gets ENOLCK at once, and waits for nobody.
//! Does not own: the port at which clients find it (the command tells an rpcbind), locks of version 4 (`v4`).
//! Invariants: no procedure changes anything. The replies that would come as calls to the client are not offered.

use crate::wire::xdr::{Reader, Writer, XdrError};

pub(crate) const PROGRAM: u32 = 100_021;
/// Its version for version 3 of NFS.
pub(crate) const VERSION: u32 = 4;

const TEST: u32 = 1;
const LOCK: u32 = 2;
const UNLOCK: u32 = 4;
const SHARE: u32 = 20;
const UNSHARE: u32 = 21;
const LOCK_UNMONITORED: u32 = 22;
const FREE_ALL: u32 = 23;

const GRANTED: u32 = 0;
const DENIED_NOLOCKS: u32 = 2;

/// Most bytes by which a client knows a call.
const COOKIE_BYTES_MAX: usize = 1024;

/// Whether a procedure is answered.
pub(crate) fn is_answered(procedure: u32) -> bool {
    matches!(procedure, 0 | TEST..=UNLOCK | SHARE..=FREE_ALL)
}

/// Writes the result of a procedure.
pub(crate) fn answer(procedure: u32, arguments: &[u8], writer: &mut Writer) -> Result<(), XdrError> {
    if matches!(procedure, 0 | FREE_ALL) {
        return Ok(());
    }
    let cookie = Reader::new(arguments).opaque(COOKIE_BYTES_MAX)?;
    writer.opaque(cookie);
    writer.u32(match procedure {
        TEST | LOCK | SHARE | LOCK_UNMONITORED => DENIED_NOLOCKS,
        // There is nothing to give back.
        _ => GRANTED,
    });
    if matches!(procedure, SHARE | UNSHARE) {
        const SEQUENCE: u32 = 0;
        writer.u32(SEQUENCE);
    }
    Ok(())
}
