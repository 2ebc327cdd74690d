//! The simulated tables of the documents have the figures of today.
//!
//! `AFFLUX_RENEW_DOCS=1` writes the tables that differ; `cargo xtask docs` sets it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod simulated;
