//! Every procedure with every error that a volume may return, and the objects of paths, in virtual time.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod calls;
mod errors;
mod failing;
mod paths;
mod permitted;
mod rig;
