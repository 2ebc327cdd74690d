//! A run's jobs, without running them.
//!
//! Owns: the check of jobs against their devices.
//! Does not own: planning (`plan`), running (`run`).
//! Invariants: a run refuses the same descriptions and starts all others.

use super::description::{Simulation, SimulationError};
use crate::plan::plan;
use afflux_simulator::{Random, World};

/// One job of a planned run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedJob {
    /// As in the job file.
    pub name: String,
    /// The number of clones under this name.
    pub clones: u64,
    /// The device of its first file; empty if it has no file.
    pub device: String,
    /// Files of each clone.
    pub files: u64,
    /// Bytes that all clones move, unless a time limit ends them.
    pub bytes: u64,
    /// Most calls that each clone has in flight.
    pub in_flight: u64,
    /// Its calls bypass the cache.
    pub direct: bool,
    /// It starts after all earlier jobs have ended.
    pub stonewall: bool,
}

impl Simulation {
    /// The planned jobs, in order.
    ///
    /// # Errors
    /// All errors of the jobs on these devices.
    pub fn check(&self) -> Result<Vec<PlannedJob>, SimulationError> {
        let world = World::new(self.world_options());
        let (machine, _) = self.machine(&world)?;
        let seed = Random::new(self.seed).fork(4);
        let plan = plan(&self.workloads, &machine, &seed).map_err(SimulationError::Description)?;
        let mut jobs: Vec<PlannedJob> = Vec::new();
        for start in &plan.starts {
            for (at, clone) in start.clones.iter().enumerate() {
                let bytes = if clone.job.moves_bytes() { clone.sequence.total_bytes() } else { 0 };
                if let (Some(job), 1..) = (jobs.last_mut(), clone.number) {
                    job.clones += 1;
                    job.bytes = job.bytes.saturating_add(bytes);
                    continue;
                }
                jobs.push(PlannedJob {
                    name: clone.name.clone(),
                    clones: 1,
                    device: clone
                        .files
                        .first()
                        .map_or_else(String::new, |file| machine.volumes[file.volume].name.clone()),
                    files: clone.job.files,
                    bytes,
                    in_flight: clone.job.in_flight_max(),
                    direct: clone.job.is_direct(),
                    stonewall: start.stonewall && at == 0,
                });
            }
        }
        Ok(jobs)
    }
}
