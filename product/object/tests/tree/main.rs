//! The tree of names over records in memory, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test crate, also outside its test functions")]

mod acls;
mod bill;
mod check;
#[path = "../../../volume/tests/simulated/client.rs"]
mod client;
mod clients;
mod disk_core;
mod lab;
mod large_xattrs;
mod model;
mod records;
mod rules;
