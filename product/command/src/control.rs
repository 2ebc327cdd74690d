//! The control socket: how the other subcommands talk to a running server.
//!
//! Owns: the messages, where sockets are, whom to trust there, listening and asking.
//! Does not own: what a request leads to (`serve`), how an answer looks to people (`stat`, `set`,
//! `drain`).
//! Invariants: one JSON object a line each way; a line and the number of connections are bounded;
//! only the serving user can connect.

pub(crate) mod client;
pub(crate) mod listener;
pub(crate) mod messages;
mod neighbours;
pub(crate) mod place;
pub(crate) mod trust;
