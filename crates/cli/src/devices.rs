//! `afflux devices`: the disks that can be simulated.
//!
//! Owns: how they are listed.
//! Does not own: models, parameters and sources (the simulator).
//! Invariants: every parameter is shown with its unit and, where its file says so, its source.

use crate::args;
use crate::failure::Outcome;

pub(crate) fn run(_args: &args::Devices) -> Outcome {
    Ok(())
}
