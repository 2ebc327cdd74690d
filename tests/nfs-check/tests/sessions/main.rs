//! Sessions of version 4 in the simulator, with kills of the server between any two stores.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod lockers;
mod mortal;
mod slots;
