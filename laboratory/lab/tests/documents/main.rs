//! The simulated tables and the quoted answers of the documents have the figures of today, and the table of items has
//! its count.
//!
//! `AFFLUX_RENEW_DOCS=1` writes the tables that differ; `cargo xtask docs` sets it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod answers;
mod coverage;
mod simulated;
