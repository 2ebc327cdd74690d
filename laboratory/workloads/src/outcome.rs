//! What a simulated run was like: plain figures, for tables, JSON and plots.
//!
//! Owns: the shapes and their units.
//! Does not own: how they are measured (`simulation`, `workload`), how they are shown (`report` and
//! the command).
//! Invariants: all times are virtual and in nanoseconds; every figure was counted in the run itself.

use afflux_engine::DelayTimes;

use crate::job::Logs;
use afflux_simulator::{DiskWait, OffsetSample};

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What everything was drawn from.
    pub seed: u64,
    /// All that happened, as one number: equal for equal runs.
    pub trace_hash: u64,
    /// Virtual time from the start until the last job ended and everything was on the disks.
    pub virtual_ns: u64,
    /// Each job, in the order of the job files.
    pub jobs: Vec<JobOutcome>,
    /// The cache and its counters.
    pub engine: EngineOutcome,
    /// Each device.
    pub devices: Vec<DeviceOutcome>,
    /// What a power loss at the worst moment would have taken: bytes accepted and not yet durable.
    pub at_risk_bytes_max: u64,
    /// From the last write that was accepted until all was on the disks.
    pub settle_ns: u64,
    /// What could never be written, where something could not.
    pub unwritten: Vec<Unwritten>,
    /// How the run ended, where power was lost or the process killed.
    pub loss: Option<Loss>,
    /// Whoever asked for the run broke it off at [`Outcome::virtual_ns`]: all figures are up to there, what was
    /// in memory was not written, and the disks are not checked.
    pub cut: bool,
    /// The last events in words, where they were asked for.
    pub trace_lines: Vec<String>,
    /// Calls one by one, of the jobs that ask for logs.
    pub logs: Vec<JobLog>,
}

/// The calls of one clone, for the logs that its job asks for.
#[derive(Clone, Debug, Default)]
pub struct JobLog {
    /// The clone's number among all, from 1: fio's logs are named after it.
    pub number: u64,
    /// Which logs.
    pub logs: Logs,
    /// The calls, in the order of their ends.
    pub calls: Vec<LoggedCall>,
    /// Calls after these, that were not kept.
    pub left_out: u64,
}

/// One call of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedCall {
    /// When it ended, from the clone's start on.
    pub at_ns: u64,
    /// How long it took.
    pub took_ns: u64,
    /// What it moved.
    pub bytes: u64,
    /// Where in its file.
    pub offset: u64,
    /// It read, wrote or trimmed: 0, 1 or 2, as in fio's logs.
    pub way: u8,
}

/// Something that was accepted and could not be written, though no fault was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// A file's path, or a device's name where it is not known which.
    pub what: String,
    /// Why.
    pub why: String,
    /// Dirty bytes of its device.
    pub dirty_bytes: u64,
}

/// What ended everything in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Power was lost: of what was not durable each sector survived or not, as drawn.
    PowerLoss,
    /// The process was killed: its devices lived on.
    Kill,
}

/// What a power loss or a kill took. That nothing synced is among it was checked, or there would be no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What happened.
    pub cause: LossCause,
    /// When.
    pub at_ns: u64,
    /// Bytes that writers had had accepted by then.
    pub accepted_bytes: u64,
    /// Of these, what the disks lack, in whole pages; `None` where contents are not checked.
    pub lost_bytes: Option<u64>,
    /// Files that lost something, and how many bytes.
    pub files: Vec<(String, u64)>,
}

/// One job (with `group_reporting`: a group of them).
#[derive(Clone, Debug, Default)]
pub struct JobOutcome {
    /// As in the job file.
    pub name: String,
    /// Where its files are: the device's name.
    pub device: String,
    /// How many ran under this name.
    pub clones: u64,
    /// From its first operation to its last, closing syncs included.
    pub elapsed_ns: u64,
    /// When its last operation ended.
    pub ended_ns: u64,
    /// Its reads.
    pub read: OperationOutcome,
    /// Its writes.
    pub write: OperationOutcome,
    /// What it gave back to the disk.
    pub trim: OperationOutcome,
    /// Its `fsync` and `fdatasync` calls.
    pub sync: OperationOutcome,
    /// Its syncs at the end (`end_fsync`), one for each file; fio does not count these.
    pub closing_sync: OperationOutcome,
    /// Operations that failed, as what failed and how often.
    pub errors: Vec<(String, u64)>,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default)]
pub struct OperationOutcome {
    /// Bytes moved.
    pub bytes: u64,
    /// Calls that ended.
    pub ops: u64,
    /// From the first of them to the end of the last.
    pub elapsed_ns: u64,
    /// How long they took.
    pub latency: LatencyOutcome,
    /// The call that took longest, if the causes of its wait are known.
    pub slowest: Option<SlowestCall>,
}

/// A call that took longer than all others of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlowestCall {
    /// When it began.
    pub at_ns: u64,
    /// How long it took.
    pub took_ns: u64,
    /// The causes of its wait.
    pub waits: CallWaits,
}

/// The causes of a call's wait, in nanoseconds. For the rest of its time the disk had nothing of the call: a sync waits until
/// the cache hands its data to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallWaits {
    /// The dirty limit: the policy paused the writer.
    pub pause_ns: u64,
    /// The disk's elevator, which let later requests go first.
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
    /// Later requests that the elevator let go first.
    Elevator,
    /// Earlier requests in the disk's queue.
    Queue,
    /// The disk's own work.
    Disk,
    /// The cache, which had not handed the call's data to the disk.
    Backlog,
}

impl WaitCause {
    /// In a word.
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
    /// Each cause and how long the call waited for it; together what it took.
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

    /// The cause that it waited for longest, and how long.
    pub fn cause(&self) -> (WaitCause, u64) {
        self.causes().into_iter().max_by_key(|(_, ns)| *ns).unwrap_or((WaitCause::Backlog, 0))
    }
}

/// How long operations took.
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
    /// Pauses of writers: cause, how many, in sum.
    pub pauses: Vec<(String, u64, u64)>,
    /// CPU time that virtual CPUs were busy, all together.
    pub cpu_busy_ns: u64,
    /// Virtual CPUs.
    pub cpus: u32,
    /// What jobs' calls and copies were charged with besides the engine's work, in words.
    pub callers: String,
}

/// One device.
#[derive(Clone, Debug, Default)]
pub struct DeviceOutcome {
    /// Its name in the run: a directory, or `disk`.
    pub name: String,
    /// The parameter file it was made from.
    pub model: String,
    /// Time with at least one request in flight.
    pub busy_ns: u64,
    /// Data requests completed: reads, writes.
    pub requests: (u64, u64),
    /// Bytes read and written.
    pub bytes: (u64, u64),
    /// Head movements, or flash blocks that had to be merged; 0 where the model has neither.
    pub seeks: u64,
    /// How often two writes that followed each other were of different files.
    pub file_switches: u64,
    /// What each task waited for it, the longest first.
    pub delays: Vec<DelayOutcome>,
    /// What those waited together that are not told apart: too many came after them.
    pub delays_of_others: DelayTimes,
    /// How many these are.
    pub others: u64,
    /// Samples over time, `series[0]` first.
    pub samples: Vec<DeviceSample>,
    /// Where the device worked, for the offset plot: at most 20,000 points, thinned evenly.
    pub offsets: Vec<OffsetSample>,
}

/// What a task waited for a device.
#[derive(Clone, Debug, Default)]
pub struct DelayOutcome {
    /// A clone of a job, or a client.
    pub who: String,
    /// By what it waited for.
    pub times: DelayTimes,
}

/// A device at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceSample {
    /// When.
    pub at_ns: u64,
    /// Dirty in the cache and not yet handed over.
    pub dirty_bytes: u64,
    /// Handed over and not completed.
    pub writeback_bytes: u64,
    /// The dirty limit in force.
    pub dirty_limit_bytes: u64,
    /// Requests in flight.
    pub queue_depth: u32,
    /// Bytes completed since the last sample: read, written.
    pub moved_bytes: (u64, u64),
    /// Bytes that writers had accepted since the last sample.
    pub accepted_bytes: u64,
    /// Share of the time since the last sample with a request in flight, in thousandths.
    pub busy_per_mille: u32,
}
