//! What a run would do, without running it.
//!
//! Owns: the look at jobs on their devices.
//! Does not own: planning (`plan`), running (`run`).
//! Invariants: what is refused here is refused by a run, and what is not refused here begins.

use super::description::{Simulation, SimulationError};
use crate::plan::plan;
use afflux_simulator::{Random, World};

/// One job, as it would run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedJob {
    /// As in the job file.
    pub name: String,
    /// How many run under this name.
    pub clones: u64,
    /// The device that its first file is on; empty where it has none.
    pub device: String,
    /// Files of each clone.
    pub files: u64,
    /// Bytes that all clones move, if no time ends them.
    pub bytes: u64,
    /// Calls of each clone in flight at most.
    pub in_flight: u64,
    /// They go past the cache.
    pub direct: bool,
    /// It begins when all before it have ended.
    pub stonewall: bool,
}

impl Simulation {
    /// The jobs that would run, in their order.
    ///
    /// # Errors
    /// All that is wrong with them on these devices.
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
