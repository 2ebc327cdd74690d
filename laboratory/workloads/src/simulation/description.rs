//! A run, described.
//!
//! Owns: what a run is made from, how far one is, why one has no outcome.
//! Does not own: carrying it out (`run`), which policies and knobs there are (`policy`).
//! Invariants: a description is plain data, but for what makes its disks.

use std::sync::Arc;

use afflux_engine::eviction::EvictionKind;
use afflux_engine::settings::KnobError;
use afflux_engine::{Nanos, Readahead};
use afflux_simulator::{CostTable, Disk, DiskOptions, FaultScript, OWN_POLICY, SetupError, World};

use crate::contents::Contents;
use crate::workload::Workload;

/// What a system call that does nothing takes: `getppid` under Linux 6.18 on a virtual machine with two cores
/// of an AMD EPYC, best of five rounds.
const CALL_NS: u64 = 121;

/// Puts a disk into a world; the number tells it from the world's other disks. Called once a run.
pub type MakeDisk = Arc<dyn Fn(&World, u64) -> Result<Arc<Disk>, String> + Send + Sync>;

/// The most that a start is later in a run with shifted starts.
pub const START_SHIFT_NS_MAX: u64 = Nanos::SECOND;

/// A run, described.
#[derive(Clone)]
pub struct Simulation {
    /// Everything is drawn from this.
    pub seed: u64,
    /// 0: all begin when described. Otherwise each clone of a job and each client begins later, by up to
    /// [`START_SHIFT_NS_MAX`], as drawn from the seed and this number.
    pub shift: u64,
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
    /// Whose policies: [`OWN_POLICY`], or a name of `linux-policies`. [`policies`](super::policies) lists them.
    pub policy: String,
    /// Who decides what is read ahead; `None`: as comes along with the policy.
    pub readahead: Option<Readahead>,
    /// Which clean pages go when frames are needed; `None`: as comes along with the policy.
    pub eviction: Option<EvictionKind>,
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
    /// Keep the last events in words, in [`crate::simulation::Outcome::trace_lines`].
    pub keep_trace: bool,
}

/// What calls of jobs cost beyond the engine's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Callers {
    /// [`Simulation::call_ns`] a call; every copy is one of a page in the CPU's cache.
    #[default]
    InProcess,
    /// Copies of pages that are not in the CPU's cache take what memory takes, and under a kernel's policy a call
    /// is that kernel's: both by the table of costs ([`CallerCost`](afflux_simulator::CallerCost)).
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
            shift: 0,
            cpus: 8,
            costs: CostTable::standard(),
            call_ns: CALL_NS,
            callers: Callers::default(),
            memory_bytes: 1 << 30,
            policy: OWN_POLICY.to_owned(),
            readahead: None,
            eviction: None,
            knobs: Vec::new(),
            devices: vec![device],
            workloads: Vec::new(),
            faults: FaultScript::default(),
            until_ns: None,
            contents: Contents::default(),
            keep_trace: false,
        }
    }
}

impl From<SetupError> for SimulationError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Knob(error) => Self::Knob(error),
            error => Self::Description(error.to_string()),
        }
    }
}
