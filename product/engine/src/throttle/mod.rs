//! Throttling: writers are let in, made to wait, or made to write, as the policy in force says.
//!
//! Owns: asking the policy about payers, the waits.
//! Does not own: the policy, the payers' accounts (`policy`); what is charged (`dirty`); background writeback.
//! Invariants: no lock is held while a writer waits or writes. A device that keeps failing tells its writers
//! instead of making them wait.

mod admit;
mod pause;

pub(crate) use admit::Throttle;
pub(crate) use pause::Paying;
