//! Throttling: the policy in force admits writers or makes them wait, as `balance_dirty_pages` does in Linux.
//!
//! Owns: asking the policy about payers, the waits.
//! Does not own: the policy, the payers' accounts (`policy`); charges (`dirty`); background writeback.
//! Invariants: no lock is held while a writer waits. Writers to a device that keeps failing get the error
//! instead of waiting.

mod admit;
mod pause;

pub(crate) use admit::Throttle;
pub(crate) use pause::PayingCall;
