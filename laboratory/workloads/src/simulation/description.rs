//! A run, described.
//!
//! Owns: the inputs of a run, its progress, its errors.
//! Does not own: execution (`run`), policies and knobs (`policy`).
//! Invariants: a description is plain data, except for the functions that make its disks.

use std::sync::Arc;

use afflux_engine::eviction::EvictionKind;
use afflux_engine::settings::KnobError;
use afflux_engine::{Nanos, Readahead};
use afflux_simulator::{CostTable, Disk, DiskOptions, FaultScript, OWN_POLICY, SetupError, World};

use crate::contents::Contents;
use crate::workload::Workload;

/// Time of a system call that does nothing: `getppid` under Linux 6.18 on a virtual machine with two cores of an AMD
/// EPYC, best of five rounds.
const CALL_NS: u64 = 121;

/// Creates a disk in a world; the number identifies it there. Called once per run.
pub type MakeDisk = Arc<dyn Fn(&World, u64) -> Result<Arc<Disk>, String> + Send + Sync>;

/// The largest delay of a start in a run with shifted starts.
pub const START_SHIFT_NS_MAX: u64 = Nanos::SECOND;

/// A run, described.
#[derive(Clone)]
pub struct Simulation {
    /// The seed of everything random.
    pub seed: u64,
    /// 0: all jobs and clients start as described. Otherwise each clone of a job and each client starts later by up to
    /// [`START_SHIFT_NS_MAX`], drawn from the seed and this number.
    pub shift: u64,
    /// The number of virtual CPUs.
    pub cpus: u32,
    /// The table of CPU costs.
    pub costs: CostTable,
    /// CPU time of one call of a job (`pread`, `pwrite`) besides the engine's work, in nanoseconds, unless `callers`
    /// overrides it. Nothing is charged for `ioengine=mmap`.
    pub call_ns: u64,
    /// Further costs of jobs' calls.
    pub callers: Callers,
    /// Bytes of page frames.
    pub memory_bytes: u64,
    /// The name of the policies: [`OWN_POLICY`], or a name of `linux-policies`. [`policies`](super::policies) lists
    /// them.
    pub policy: String,
    /// The policy for readahead; `None`: the default of `policy`.
    pub readahead: Option<Readahead>,
    /// The policy for eviction; `None`: the default of `policy`.
    pub eviction: Option<EvictionKind>,
    /// Knobs of the engine, set after those of the policy, each as `KNOB=VALUE`.
    pub knobs: Vec<String>,
    /// Devices; at least one. A file is on the device with the longest directory above it.
    pub devices: Vec<DeviceChoice>,
    /// The workloads, in the order of the report.
    pub workloads: Vec<Workload>,
    /// Faults of devices, files and links. A power loss or a kill ends the run: the disks' contents are checked against
    /// the synced data, and nothing is written out. If the jobs end before it, the machine is idle until then. All
    /// other faults end with the jobs.
    pub faults: FaultScript,
    /// Virtual time at which running jobs are stopped; their data is then written out.
    pub until_ns: Option<u64>,
    /// The contents of files, and the method of checking them.
    pub contents: Contents,
    /// Keep the last events in words, in [`crate::simulation::Outcome::trace_lines`].
    pub keep_trace: bool,
}

/// Costs of jobs' calls besides the engine's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Callers {
    /// [`Simulation::call_ns`] per call; all copies are from the CPU's cache.
    #[default]
    InProcess,
    /// Copies of pages outside of the CPU's cache take the time of memory. Under a kernel's policy a call costs that
    /// kernel's call. Both figures are from the table of costs ([`CallerCost`](afflux_simulator::CallerCost)).
    AsMeasured,
}

/// A device of a run.
#[derive(Clone)]
pub struct DeviceChoice {
    /// The directory on this device; `None`: all paths without another device.
    pub directory: Option<String>,
    /// The name of its model, for the report.
    pub model: String,
    /// Creates it.
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

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Virtual time so far.
    pub virtual_ns: u64,
    /// Bytes that jobs have read and written so far.
    pub bytes: u64,
    /// Bytes that they will move in all, if that is known.
    pub bytes_total: Option<u64>,
    /// Virtual time of the end of the last job that is limited by time, or of the stop of all jobs; `None` if no job is
    /// limited by time.
    pub time_total_ns: Option<u64>,
}

/// The reason that a run has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A knob's name or value is wrong.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The description asks for something impossible.
    #[error("{0}")]
    Description(String),
    /// The run could not continue, or a check failed.
    #[error("{what}\n(seed {seed}, at {at_ns} ns of virtual time)")]
    Run {
        /// The finding, with the names of the waiting tasks.
        what: String,
        /// The seed of the run.
        seed: u64,
        /// The time.
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
