//! Rules of the volume, each shown in virtual time on simulated disks and trees.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod client;
mod clients;
mod clones;
mod devices;
mod failing_hosts;
mod folded_names;
mod held;
mod holes;
mod killed;
mod links;
mod listener;
mod listing;
mod privileges;
mod racing_over_kills;
mod renames;
mod settling;
mod stale_handles;
mod turns;
mod xattrs;
