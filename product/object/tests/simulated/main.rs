//! The device under the engine, over a simulated store.
//!
//! All figures here are simulated: virtual time, a store of stated latency and bandwidth.

mod away;
mod figures;
mod fixture;
mod kills;
