//! Every procedure with every error that a volume may return, and the way to a path of the host, in virtual time.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod calls;
mod errors;
mod failing;
mod permitted;
mod rig;
mod way;
