//! Figures for Prometheus.
//!
//! Owns: the text format, the HTTP by which it is fetched (one kind of request, one thread, bounds on all that a
//! stranger can send or leave unread).
//! Does not own: the figures and their names: who has some makes an [`Exposition`] of them when it is asked to.
//! Invariants: nothing is made while nobody asks, and however often somebody does, it is made a few times a second.

#![forbid(unsafe_code)]

mod listener;
mod request;
mod text;

pub use listener::Listener;
pub use text::{Exposition, Family, Kind, Value};
