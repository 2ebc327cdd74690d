//! The machine over a volume in virtual time, with a kernel that sends messages.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod appends;
mod data;
mod failing;
mod fairness;
mod kept;
mod kernel;
mod locks;
mod names;
mod nodes;
mod notices;
mod outliving;
mod samples;
mod start;
mod synchronous;
mod users;
mod xattrs;
