//! A whole run: a machine, its devices and jobs in; figures out.
//!
//! Owns: putting a world together from its description, sampling it, the figures.
//! Does not own: the parts (`world`, `disk`, `workload`); how figures are shown.
//! Invariants: the same description and seed give the same figures.

mod outcome;

pub use outcome::{
    DeviceOutcome, DeviceSample, EngineOutcome, JobOutcome, LatencyOutcome, OffsetSample, OperationOutcome, Outcome,
};
