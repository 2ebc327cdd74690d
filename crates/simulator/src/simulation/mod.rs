//! A whole run: a machine, its devices and jobs in; figures out.
//!
//! Owns: putting a world together from its description, sampling it, the figures.
//! Does not own: the parts (`world`, `disk`, `workload`); how figures are shown.
//! Invariants: the same description and seed give the same figures.

mod callers;
mod faults;
mod needs;
mod outcome;
mod plan;
mod policy;
mod run;
mod sampling;
mod serving;
mod settle;

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::settings::KnobError;

use crate::costs::CostTable;
use crate::disk::{Disk, DiskOptions, FaultScript};
use crate::workload::Workload;
use crate::world::World;

pub(crate) use plan::{Plan, layout, plan};
pub(crate) use run::Left;

pub use needs::{CACHED_PAGE_OWN_BYTES, FRAME_OWN_BYTES};
pub use outcome::{
    DeviceOutcome, DeviceSample, EngineOutcome, JobOutcome, LatencyOutcome, Loss, LossCause, OffsetSample,
    OperationOutcome, Outcome, Unwritten,
};
pub use policy::{OWN_POLICY, policies};

/// What a system call that does nothing takes: `getppid` under Linux 6.18 on a virtual machine with two cores
/// of an AMD EPYC, best of five rounds.
const CALL_NS: u64 = 121;

/// Puts a disk into a world; the number tells it from the world's other disks. Called once a run.
pub type MakeDisk = Arc<dyn Fn(&World, u64) -> Result<Arc<Disk>, String> + Send + Sync>;

/// A run, described.
#[derive(Clone)]
pub struct Simulation {
    /// Everything is drawn from this.
    pub seed: u64,
    /// Virtual CPUs.
    pub cpus: u32,
    /// What work costs these.
    pub costs: CostTable,
    /// CPU time of one call of a job (`pread`, `pwrite`), beyond what the engine's work costs, in nanoseconds,
    /// where `callers` says nothing else. Nothing is charged for `ioengine=mmap`.
    pub call_ns: u64,
    /// What else calls of jobs cost.
    pub callers: Callers,
    /// Bytes of page frames.
    pub memory_bytes: u64,
    /// Whose policies: [`OWN_POLICY`], or a name of `linux-policies`. [`policies`] lists them.
    pub policy: String,
    /// Knobs of the engine, set after what the policy starts with, each as `KNOB=VALUE`.
    pub knobs: Vec<String>,
    /// Devices; at least one. A file is on the device with the longest directory above it.
    pub devices: Vec<DeviceChoice>,
    /// What runs, in the order of the report.
    pub workloads: Vec<Workload>,
    /// What happens to devices, files and links. A power loss or a kill ends the run: what the disks have is
    /// checked against what was synced, and nothing is written out. If the jobs end before, the machine
    /// is idle until then. All other faults end with the jobs.
    pub faults: FaultScript,
    /// Virtual time at which jobs that still run are stopped; what they wrote is then written out.
    pub until_ns: Option<u64>,
    /// What files hold, and how it is checked.
    pub contents: Contents,
    /// Keep the last events in words, in [`Outcome::trace_lines`].
    pub keep_trace: bool,
}

/// What files hold in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Contents {
    /// Bytes that name their file, place and version; each read is checked against all that it may
    /// return. For short runs: time and memory grow with the square of the number of writes.
    Exact,
    /// 16 bytes that name file, page and version at the start of each page; each read is checked against the
    /// versions that it may show. Of each page no more is kept, so a cache of 64 GB takes 256 MB.
    #[default]
    Stamped,
    /// The same without a check but of the counters.
    Unchecked,
}

/// What calls of jobs cost beyond the engine's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Callers {
    /// [`Simulation::call_ns`] a call; every copy is one of a page in the CPU's cache.
    #[default]
    InProcess,
    /// Copies of pages that are not in the CPU's cache take what memory takes, and under a kernel's policy a call
    /// is that kernel's: both by the table of costs ([`CallerCost`](crate::CallerCost)).
    AsMeasured,
}

/// A device of a run.
#[derive(Clone)]
pub struct DeviceChoice {
    /// The directory that is on it; `None`: all that is on no other.
    pub directory: Option<String>,
    /// What it was made from, for the report.
    pub model: String,
    /// Makes it.
    pub make: MakeDisk,
}

impl DeviceChoice {
    /// A plain disk for everything.
    pub fn plain(options: DiskOptions) -> Self {
        Self {
            directory: None,
            model: "plain".to_owned(),
            make: Arc::new(move |world, number| Ok(Disk::new(world, number, options.clone()))),
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Virtual time so far.
    pub virtual_ns: u64,
    /// Bytes that jobs have read and written so far.
    pub bytes: u64,
    /// Bytes that they will, where that is known.
    pub bytes_total: Option<u64>,
    /// Virtual time at which the last job that goes by time is over, or all are stopped; nothing where no
    /// job goes by time.
    pub time_total_ns: Option<u64>,
}

/// Why a run has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A knob's name or value is wrong.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The description asks for something impossible.
    #[error("{0}")]
    Description(String),
    /// The run could not go on, or a check failed.
    #[error("{what}\n(seed {seed}, at {at_ns} ns of virtual time)")]
    Run {
        /// What was found, with the names of who waits.
        what: String,
        /// The seed of the run.
        seed: u64,
        /// When.
        at_ns: u64,
    },
}

impl Simulation {
    /// A machine of 8 CPUs and 1 GiB of cache with one device and nothing to do.
    pub fn new(seed: u64, device: DeviceChoice) -> Self {
        Self {
            seed,
            cpus: 8,
            costs: CostTable::standard(),
            call_ns: CALL_NS,
            callers: Callers::default(),
            memory_bytes: 1 << 30,
            policy: OWN_POLICY.to_owned(),
            knobs: Vec::new(),
            devices: vec![device],
            workloads: Vec::new(),
            faults: FaultScript::default(),
            until_ns: None,
            contents: Contents::default(),
            keep_trace: false,
        }
    }

    /// Checks the policy's name and the knobs.
    ///
    /// # Errors
    /// When there is no such policy or knob, or a value is out of range.
    pub fn check_settings(&self) -> Result<(), SimulationError> {
        self.settings().map(|_| ())
    }

    /// Runs it to its end: all jobs done (or stopped), faults off, everything written out as by `sync`, all
    /// checks passed; or to a power loss or a kill, and the checks after that. `progress` is called at every sample, a few thousand times in all.
    ///
    /// # Errors
    /// When the description is wrong, the run cannot go on, or a check fails.
    pub fn run(&self, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, SimulationError> {
        self.carry_out(&mut |now| {
            progress(now);
            ControlFlow::Continue(())
        })
    }

    /// The same, but `progress` may break the run off: it ends where it is, with nothing written out and no
    /// disk checked, and its outcome is [`Outcome::cut`].
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_while(&self, progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Outcome, SimulationError> {
        self.carry_out(progress)
    }
}
