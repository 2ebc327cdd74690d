//! The outcome of a simulated run: plain figures for tables, JSON and plots.
//!
//! Owns: the shapes and their units.
//! Does not own: their measurement (`simulation`, `recorder`), their display (`report` and the command).
//! Invariants: all times are virtual and in nanoseconds; every figure was counted in the run itself.

use afflux_engine::DelayTimes;

use crate::job::Logs;
use afflux_simulator::{DiskWait, OffsetSample};

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The seed of everything random.
    pub seed: u64,
    /// All events as one number, equal for equal runs.
    pub trace_hash: u64,
    /// Virtual time from the start until the last job has ended and everything is on the disks.
    pub virtual_ns: u64,
    /// Each job, in the order of the job files; without `group_reporting`, each clone of it, as fio has them.
    pub jobs: Vec<JobOutcome>,
    /// Each job with all its clones, if `jobs` has some clones apart; else empty.
    pub groups: Vec<JobOutcome>,
    /// The cache and its counters.
    pub engine: EngineOutcome,
    /// Each device.
    pub devices: Vec<DeviceOutcome>,
    /// The most bytes, over time, that a power loss would have taken: accepted and not yet durable.
    pub at_risk_bytes_max: u64,
    /// Time from the last accepted write until everything was on the disks.
    pub settle_ns: u64,
    /// Data that could never be written, if any.
    pub unwritten: Vec<Unwritten>,
    /// The power loss or kill that ended the run, if any.
    pub loss: Option<Loss>,
    /// The caller broke the run off at [`Outcome::virtual_ns`]. All figures are up to that time. Data in memory was not
    /// written, and the disks are not checked.
    pub cut: bool,
    /// The last events in words, if requested.
    pub trace_lines: Vec<String>,
    /// Single calls of the jobs that request logs.
    pub logs: Vec<JobLog>,
}

impl Outcome {
    /// Each job with all its clones.
    pub fn by_job(&self) -> &[JobOutcome] {
        if self.groups.is_empty() { &self.jobs } else { &self.groups }
    }
}

/// The calls of one clone, for the logs that its job requests.
#[derive(Clone, Debug, Default)]
pub struct JobLog {
    /// The clone's number among all, from 1, which is part of the names of fio's logs.
    pub number: u64,
    /// The requested logs.
    pub logs: Logs,
    /// The calls, in the order of their ends.
    pub calls: Vec<LoggedCall>,
    /// Later calls, which were not stored.
    pub left_out: u64,
}

/// One call of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedCall {
    /// The time of its end since the clone's start.
    pub at_ns: u64,
    /// Its duration.
    pub took_ns: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// 0 for a read, 1 for a write, 2 for a trim, as in fio's logs.
    pub direction: u8,
}

/// Accepted data that could not be written, although no fault was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// A file's path, or a device's name if the file is not known.
    pub what: String,
    /// The reason.
    pub why: String,
    /// Dirty bytes of its device.
    pub dirty_bytes: u64,
}

/// The event that ended everything in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Power was lost: each sector that was not durable survived or not, at random.
    PowerLoss,
    /// The process was killed: its devices lived on.
    Kill,
}

/// The damage of a power loss or a kill. It contains no synced data: the run checks that, and fails otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The event.
    pub cause: LossCause,
    /// The time.
    pub at_ns: u64,
    /// Bytes accepted from writers by then.
    pub accepted_bytes: u64,
    /// The accepted bytes that the disks lack, in whole pages; `None` if contents are not checked.
    pub lost_bytes: Option<u64>,
    /// Files that lost data, and the bytes lost.
    pub files: Vec<(String, u64)>,
}

/// One job (with `group_reporting`: a group of them).
#[derive(Clone, Debug, Default)]
pub struct JobOutcome {
    /// As in the job file.
    pub name: String,
    /// The name of the device with its files.
    pub device: String,
    /// The number of clones under this name.
    pub clones: u64,
    /// From its first operation to its last, including closing syncs.
    pub elapsed_ns: u64,
    /// The time at which its last operation ended.
    pub ended_ns: u64,
    /// Its reads.
    pub read: OperationOutcome,
    /// Its writes.
    pub write: OperationOutcome,
    /// Its trims.
    pub trim: OperationOutcome,
    /// Its `fsync` and `fdatasync` calls.
    pub sync: OperationOutcome,
    /// Its syncs at the end (`end_fsync`), one for each file; fio does not count these.
    pub closing_sync: OperationOutcome,
    /// Failed operations by error, and the count of each.
    pub errors: Vec<(String, u64)>,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default)]
pub struct OperationOutcome {
    /// Bytes moved.
    pub bytes: u64,
    /// Calls that ended.
    pub ops: u64,
    /// From the start of the first operation to the end of the last.
    pub elapsed_ns: u64,
    /// The durations of operations.
    pub latency: LatencyOutcome,
    /// The longest call, if the causes of its wait are known.
    pub slowest: Option<SlowestCall>,
}

/// The call that took longer than all others of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlowestCall {
    /// The time at which it began.
    pub at_ns: u64,
    /// Its duration.
    pub took_ns: u64,
    /// The causes of its wait.
    pub waits: CallWaits,
}

/// The causes of a call's wait, in nanoseconds. In the rest of its time the disk had no request of the call: a sync
/// waits until the cache hands its data to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallWaits {
    /// The dirty limit: the policy paused the writer.
    pub pause_ns: u64,
    /// The disk's elevator, which served later requests first.
    pub elevator_ns: u64,
    /// Earlier requests in the disk's queue.
    pub queue_ns: u64,
    /// The disk's work on the call's own requests.
    pub disk_ns: u64,
}

impl CallWaits {
    /// A wait at the disk alone.
    pub(crate) fn at_disk(waited: DiskWait) -> Self {
        let DiskWait { elevator_ns, queue_ns, disk_ns } = waited;
        Self { pause_ns: 0, elevator_ns, queue_ns, disk_ns }
    }
}

/// A cause of a call's wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitCause {
    /// The dirty limit.
    Pause,
    /// Later requests that the elevator served first.
    Elevator,
    /// Earlier requests in the disk's queue.
    Queue,
    /// The disk's own work.
    Disk,
    /// The cache, which had not handed the call's data to the disk.
    Backlog,
}

impl WaitCause {
    /// The cause in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Elevator => "elevator",
            Self::Queue => "queue",
            Self::Disk => "disk",
            Self::Backlog => "backlog",
        }
    }
}

impl SlowestCall {
    /// Each cause and the time that the call waited for it. The sum is the call's duration.
    pub fn causes(&self) -> [(WaitCause, u64); 5] {
        let CallWaits { pause_ns, elevator_ns, queue_ns, disk_ns } = self.waits;
        let backlog_ns = self.took_ns.saturating_sub(pause_ns + elevator_ns + queue_ns + disk_ns);
        [
            (WaitCause::Pause, pause_ns),
            (WaitCause::Elevator, elevator_ns),
            (WaitCause::Queue, queue_ns),
            (WaitCause::Disk, disk_ns),
            (WaitCause::Backlog, backlog_ns),
        ]
    }

    /// The cause of the longest part of the wait, and its time.
    pub fn cause(&self) -> (WaitCause, u64) {
        self.causes().into_iter().max_by_key(|(_, ns)| *ns).unwrap_or((WaitCause::Backlog, 0))
    }
}

/// The durations of operations.
#[derive(Clone, Debug, Default)]
pub struct LatencyOutcome {
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Percentile (50.0 to 99.99) and value, ascending.
    pub percentiles_ns: Vec<(f64, u64)>,
}

/// The cache.
#[derive(Clone, Debug, Default)]
pub struct EngineOutcome {
    /// Bytes of page frames.
    pub cache_bytes: u64,
    /// Every counter of the engine, by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Pauses of writers: cause, number, total time.
    pub pauses: Vec<(String, u64, u64)>,
    /// Total CPU time that virtual CPUs were busy.
    pub cpu_busy_ns: u64,
    /// The number of virtual CPUs.
    pub cpus: u32,
    /// The costs charged for jobs' calls and copies besides the engine's work, in words.
    pub callers: String,
}

/// One device.
#[derive(Clone, Debug, Default)]
pub struct DeviceOutcome {
    /// Its name in the run: a directory, or `disk`.
    pub name: String,
    /// The parameter file of its model.
    pub model: String,
    /// Time with at least one request in flight.
    pub busy_ns: u64,
    /// Data requests completed: reads, writes.
    pub requests: (u64, u64),
    /// Bytes read and written.
    pub bytes: (u64, u64),
    /// Head movements, or merges of flash blocks; 0 in models that have neither.
    pub seeks: u64,
    /// Pairs of consecutive writes that were of different files.
    pub file_switches: u64,
    /// Each task's waits for the device, the longest first.
    pub delays: Vec<DelayOutcome>,
    /// The total waits of the tasks that have no entry of their own because too many came after them.
    pub delays_of_others: DelayTimes,
    /// The number of those tasks.
    pub others: u64,
    /// Samples over time, `series[0]` first.
    pub samples: Vec<DeviceSample>,
    /// The device's positions, for the offset plot: at most 20,000 points, thinned evenly.
    pub offsets: Vec<OffsetSample>,
}

/// A task's waits for a device.
#[derive(Clone, Debug, Default)]
pub struct DelayOutcome {
    /// A clone of a job, or a client.
    pub who: String,
    /// Its waits by cause.
    pub times: DelayTimes,
}

/// A device at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceSample {
    /// The time.
    pub at_ns: u64,
    /// Dirty bytes in the cache, not yet in writeback.
    pub dirty_bytes: u64,
    /// Bytes under writeback.
    pub writeback_bytes: u64,
    /// The dirty limit in force.
    pub dirty_limit_bytes: u64,
    /// Requests in flight.
    pub queue_depth: u32,
    /// Bytes completed since the last sample: read, written.
    pub moved_bytes: (u64, u64),
    /// Bytes accepted from writers since the last sample.
    pub accepted_bytes: u64,
    /// Pauses of writers since the last sample, those to other devices included: number, total time.
    pub pauses: (u64, u64),
    /// Share of the time since the last sample with a request in flight, in thousandths.
    pub busy_per_mille: u32,
}
