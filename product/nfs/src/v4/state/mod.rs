//! The clients of a server of version 4, with their sessions and opens: pure state, which gets the time from its
//! caller.
//!
//! Owns: the modules below, which are independent of each other.
//! Does not own: the bytes of calls (`codec`), files (the volume), clocks.
//! Invariants: nothing here waits, reads a clock or touches a file. Each table has a bound for all and one for each
//! party.

pub(super) mod clients;
pub(super) mod delegations;
pub(super) mod leases;
pub(super) mod lock_states;
pub(super) mod opens;
pub(super) mod persisted;
pub(super) mod quota;
pub(super) mod sessions;
pub(super) mod slots;
pub(super) mod stateids;
