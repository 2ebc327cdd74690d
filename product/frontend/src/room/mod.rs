//! Room: how much callers may make a server hold, and who waits for more.
//!
//! First a front end asks whether a call may begin. It counts what the call holds, and gives that back when the call
//! has ended. A call without room waits where it costs little: in its socket, or in its program. Then it is woken.
//!
//! Owns: the bounds' rules, the sums of held bytes, the calls and connections that wait.
//! Does not own: the figures of the bounds, the choice of bytes that count (front ends); the room of all connections
//! (worlds).
//! Invariants: no party takes all that others may need. A caller that holds nothing, and has left nothing behind, may
//! begin a call. Waiters are woken outside the locks.

mod connection;
mod messages;
mod parties;
mod shares;

pub use connection::{ConnectionRoom, RoomBounds};
pub use messages::{HeldMessage, MessageRoom, RoomTurn};
pub use parties::{OutlivingBytes, Parties, PartyShare};
pub use shares::FairShares;
