//! Every procedure with every error that a volume may return, the objects of paths, and a host that stands still, in
//! virtual time.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod calls;
mod errors;
mod failing;
mod paths;
mod permitted;
mod rig;
mod standing;
