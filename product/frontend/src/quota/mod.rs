//! Quota: how much callers may make a server hold, and who waits for more.
//!
//! First a front end asks whether a call may begin. It counts what the call holds, and gives that back when the call
//! has ended. A call without quota waits where it costs little: in its socket, or in its program. Then it is woken.
//!
//! Owns: the bounds' rules, the sums of held bytes, the calls and connections that wait.
//! Does not own: the figures of the bounds, the choice of bytes that count (front ends); the quota of all connections
//! (worlds).
//! Invariants: no party takes all that others may need. A caller that holds nothing, and has left nothing behind, may
//! begin a call. Waiters are woken outside the locks.

mod connection;
mod fair_quotas;
mod messages;
mod parties;

pub use connection::{ByteBounds, ConnectionQuota};
pub use fair_quotas::FairQuotas;
pub use messages::{HeldMessage, MessageQuota, QuotaFreed};
pub use parties::{OutlivingBytes, Parties, PartyQuota};
