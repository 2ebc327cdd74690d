//! Room: how much callers may make a server hold, and who waits for more.
//!
//! First a front end asks whether a call may begin. It counts what the call holds, and gives that back when the call has
//! ended. A call without room waits where it costs little: in its socket, or in its program. Then it is woken.
//!
//! Owns: the bounds' rules, the sums that are held, the calls and connections that wait.
//! Does not own: the figures of the bounds, what counts as held (front ends); the room of all connections (worlds).
//! Invariants: no party takes all that others may need. Who holds nothing may begin. Waiters are woken outside the locks.

mod connection;
mod messages;
mod parties;
mod shares;

pub use connection::{ConnectionRoom, RoomBounds};
pub use messages::{HeldMessage, MessageRoom, RoomTurn};
pub use parties::{Parties, PartyShare};
pub use shares::FairShares;
