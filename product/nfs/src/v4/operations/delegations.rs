//! The part of OPEN's result that is about a delegation.
//!
//! Owns: its bytes.
//! Does not own: the choice (`delegating`), the table (`state::delegations`).
//! Invariants: a client that said nothing of delegations hears no reason, since it may not know reasons.

use std::sync::Arc;

use crate::v4::delegating::{DelegationWish, NoDelegation};
use crate::v4::state::delegations::Delegation;
use crate::wire::xdr::Writer;

/// Writes the delegation that an OPEN got, or that it got none.
pub(super) fn write_delegation(
    granted: &Result<Arc<Delegation>, NoDelegation>,
    wish: DelegationWish,
    writer: &mut Writer,
) {
    const OPEN_DELEGATE_NONE: u32 = 0;
    const OPEN_DELEGATE_READ: u32 = 1;
    const OPEN_DELEGATE_NONE_EXT: u32 = 3;
    match granted {
        Ok(delegation) => {
            writer.u32(OPEN_DELEGATE_READ);
            writer.u32(delegation.stateid.seqid);
            writer.raw(&delegation.stateid.other);
            writer.bool(delegation.is_recalled());
            // An access control entry that lets nobody open the file without a question: allowed, no flags, no right,
            // an empty name.
            writer.words([0, 0, 0]);
            writer.opaque(b"");
        }
        Err(_) if wish == DelegationWish::None => writer.u32(OPEN_DELEGATE_NONE),
        Err(why) => {
            writer.u32(OPEN_DELEGATE_NONE_EXT);
            writer.u32(why.code());
            if matches!(why, NoDelegation::Contention | NoDelegation::Resource) {
                // The server does not tell when there may be one.
                writer.bool(false);
            }
        }
    }
}
