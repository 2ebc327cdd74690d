//! `afflux-lab`, as a user runs it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod bad_input;
mod command;
mod experiments;
mod fio_rates;
mod manual;
mod simulate;
mod traces;
