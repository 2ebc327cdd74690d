//! The control socket: how the other subcommands talk to a running server.
//!
//! Owns: the messages, the sockets' places, the checks of trust, listening and asking.
//! Does not own: the effects of a request (`serve`), how people see an answer (`stat`, `set`, `drain`).
//! Invariants: each request and each reply is one JSON object on one line; the length of a line and the number of
//! connections are bounded; only the serving user can connect.

pub(crate) mod client;
pub(crate) mod listener;
pub(crate) mod messages;
pub(crate) mod socket_paths;
pub(crate) mod trust;
