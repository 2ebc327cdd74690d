//! The experiments: what is run, what was published, what came out.
//!
//! Owns: one module an experiment, the slow hardware that measured runs need (`hardware`), how sure a mean is (`statistics`).
//! Does not own: the engine, the simulator, how rows and plots are drawn (`report`).
//! Invariants: a figure comes from a run, simulated or measured, and says which; what was published
//! stands beside it and never in its place.

#![forbid(unsafe_code)]

pub mod hardware;
pub mod statistics;
