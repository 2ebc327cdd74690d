//! Figures for Prometheus.
//!
//! Owns: the text format, and the HTTP that serves it (one kind of request, one thread, bounds on everything that a
//! stranger can send or leave unread).
//! Does not own: the figures and their names: their owner makes an [`Exposition`] of them on request.
//! Invariants: nothing is made without a request, and at most a few times a second, however many requests come.

#![forbid(unsafe_code)]

mod listener;
mod text;

pub use listener::MetricsListener;
pub use text::{Exposition, Family, FamilyKind, Value};
