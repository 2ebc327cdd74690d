//! The device under the engine, over a simulated store.
//!
//! All figures here are simulated: virtual time, a store of stated latency and bandwidth.

mod figures;
mod fixture;
