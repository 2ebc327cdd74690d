//! Runs a whole simulation: takes a machine, devices and jobs, and returns figures.
//!
//! Owns: building a machine from its description, running it, sampling it, the figures.
//! Does not own: the parts (the world, disks, workloads); the display of figures.
//! Invariants: the same description and seed give the same figures.

mod callers;
mod check;
mod description;
mod faults;
mod needs;
mod policy;
mod replaying;
mod run;
mod sampling;
mod serving;
mod settle;

pub use crate::contents::Contents;
pub use crate::outcome::{
    CallWaits, DelayOutcome, DeviceOutcome, DeviceSample, EngineOutcome, JobLog, JobOutcome, LatencyOutcome,
    LoggedCall, Loss, LossCause, OperationOutcome, Outcome, SlowestCall, Unwritten, WaitCause,
};
pub use afflux_simulator::{OWN_POLICY, policies};
pub use check::PlannedJob;
pub use description::{Callers, DeviceChoice, MakeDisk, Progress, START_SHIFT_NS_MAX, Simulation, SimulationError};
pub use needs::{CACHED_PAGE_OWN_BYTES, FRAME_OWN_BYTES};
