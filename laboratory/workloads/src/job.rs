//! One job of a fio job file, with every option that the simulator knows, in plain units.
//!
//! Owns: the shape and fio's defaults.
//! Does not own: the text form (`fio`), its execution.
//! Invariants: values have fio 3.33's meaning.

/// The kinds and the order of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pattern {
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// It gives blocks back to the disk. If it also writes, each write is of the block trimmed before it.
    pub trims: bool,
    /// Offsets are random, not sequential.
    pub random: bool,
}

/// The method of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// `pread` and `pwrite`, or their vectored variants.
    #[default]
    Psync,
    /// `lseek`, then `read` or `write`: the same to the cache.
    Sync,
    /// Loads and stores in a mapping: whole pages become dirty, and a call costs nothing.
    Mmap,
    /// Linux's own asynchronous calls. Past the cache up to `iodepth` calls are in flight. Through the cache a call is
    /// carried out during its submission, so that only one call is in flight.
    Libaio,
    /// Up to `iodepth` calls in flight, through the cache too.
    Uring,
    /// The C library's threads, one per file: a file has at most one call in flight.
    Posixaio,
    /// Calls that do nothing.
    Null,
    /// No calls: a share of a CPU's time.
    Cpu,
    /// One call for each file, about its name or size only: nothing is read or written.
    Names,
}

/// The distribution of random offsets.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Distribution {
    /// Every block once, in random order (with `norandommap`: any block at any time).
    #[default]
    Uniform,
    /// Zipf with this theta: a few blocks are used far more often than the others.
    Zipf(f64),
    /// Pareto: this share of the blocks gets the larger part of the accesses.
    Pareto(f64),
    /// Around the middle, with this deviation in percent of the file.
    Normal(f64),
    /// Percent of the accesses, and the percent of the file that they go to, counted from its start.
    Zoned(Vec<(u64, u64)>),
    /// Percent of the accesses, and the bytes that they go to, counted from the file's start.
    ZonedBytes(Vec<(u64, u64)>),
}

/// A part of a file: bytes, or a percentage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// This many bytes.
    Bytes(u64),
    /// This many hundredths of the file, or of the job's bytes.
    Percent(u64),
}

impl Amount {
    /// The amount in bytes, if the whole has `whole` bytes.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// The choice of the next file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Service {
    /// One after the other.
    #[default]
    RoundRobin,
    /// One file until it is done.
    Sequential,
    /// A random one.
    Random,
}

/// The jobs that a job's end ends (`exit_what`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ends {
    /// The jobs of its group.
    #[default]
    Group,
    /// The running jobs.
    Running,
    /// All jobs, including those that have not begun.
    All,
}

/// Zones of a file (`zonemode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zones {
    /// This many bytes inside a range, then the next range after a gap.
    Strided {
        /// `zonerange`.
        range: u64,
        /// `zonesize`.
        bytes: u64,
        /// `zoneskip`.
        skip: u64,
    },
    /// Each zone is written only from its start to its end, and restarted when it is full.
    Sequential {
        /// `zonesize`.
        bytes: u64,
        /// `max_open_zones`: zones written to at a time; 0: any number.
        open: u64,
    },
}

/// Reading back of written data (`verify`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verify {
    /// `verify_backlog`: after this many writes; 0: after all writes.
    pub backlog: u64,
    /// `verify_backlog_batch`: this many at a time.
    pub batch: u64,
    /// `do_verify`.
    pub at_end: bool,
    /// `verify_only`: nothing is written; the blocks that would be written are read.
    pub only: bool,
}

/// Bytes of a call, from the smallest to the largest, in steps of the smallest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockSizes {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
}

/// The line of an option or a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceLine {
    /// The job file.
    pub file: String,
    /// The line in it, from 1.
    pub line: u64,
}

/// A job, before it is cloned by `numjobs`.
#[derive(Clone, Debug)]
pub struct Job {
    /// The section's name.
    pub name: String,
    /// The start of its section.
    pub position: SourceLine,
    /// `rw`.
    pub pattern: Pattern,
    /// `rwmixread`: the reads among 100 operations of a mixed job.
    pub mix_read_percent: u64,
    /// `bs`, `bsrange`, for reads and for writes.
    pub block_bytes: [BlockSizes; 2],
    /// `size` in bytes, of all files of one clone together; 0 if `filesize` gives the size.
    pub size: u64,
    /// `size` in percent of the files' sizes, if `filesize` gives these; 100 otherwise.
    pub size_percent: u64,
    /// `filesize`: the smallest and the largest.
    pub file_bytes: Option<(u64, u64)>,
    /// `numjobs`.
    pub clones: u64,
    /// `nrfiles`.
    pub files: u64,
    /// `filename`: names that all clones share; empty: names of the clone's own.
    pub file_names: Vec<String>,
    /// `directory`: the clones use them in rotation; empty: the working directory.
    pub directories: Vec<String>,
    /// `fsync`: after this many writes; 0: never.
    pub fsync_every: u64,
    /// `fdatasync`: after this many writes; 0: never.
    pub fdatasync_every: u64,
    /// `end_fsync`.
    pub end_fsync: bool,
    /// `rate`: bytes per second of reads and of writes; 0: no limit.
    pub rate_bytes: [u64; 2],
    /// `rate_iops`: calls per second of reads and of writes; 0: no limit.
    pub rate_calls: [u64; 2],
    /// `thinktime`: the pause after each block.
    pub think_ns: u64,
    /// `runtime`: the longest time; 0: no limit.
    pub runtime_ns: u64,
    /// `time_based`: begin again until `runtime` is over.
    pub time_based: bool,
    /// `startdelay`.
    pub start_delay_ns: u64,
    /// The largest of a range of `startdelay`, from which each clone draws; else the same.
    pub start_delay_max_ns: u64,
    /// `stonewall`: starts only after all jobs above have ended.
    pub stonewall: bool,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// `ioengine`.
    pub engine: Engine,
    /// `group_reporting`: reported together with neighbours that have it too.
    pub group_reporting: bool,
    /// Less common options.
    pub more: More,
}

/// Options that most jobs leave at their defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct More {
    /// `iodepth`: calls in flight, if the engine supports several.
    pub depth: u64,
    /// `iodepth_batch`: this many calls are submitted together.
    pub batch: u64,
    /// `iodepth_low`: a full queue runs down to this level before it is refilled.
    pub depth_low: u64,
    /// `direct`: past the cache.
    pub direct: bool,
    /// `sync`: each write is durable before it returns.
    pub sync_writes: bool,
    /// `io_submit_mode=offload`: other threads submit, so that completed calls are handled during a pause.
    pub offload: bool,
    /// `norandommap`.
    pub any_block: bool,
    /// `bssplit`: bytes and percent, for reads and for writes; empty: `bs` applies.
    pub split: [Vec<(u64, u64)>; 2],
    /// `bs_is_seq_rand`: the two sizes apply to sequential and random calls.
    pub sizes_by_order: bool,
    /// `blockalign`: random offsets are multiples of this; 0: the smallest block.
    pub align: [u64; 2],
    /// `offset`.
    pub offset: Amount,
    /// `offset_increment`, for each clone.
    pub offset_increment: Amount,
    /// `offset_align`; 0: none.
    pub offset_align: u64,
    /// `io_size`: bytes to move, if they differ from the files' bytes.
    pub io_bytes: Option<Amount>,
    /// `number_ios`: at most this many calls; 0: no limit.
    pub calls_max: u64,
    /// `loops`.
    pub loops: u64,
    /// `ramp_time`, which is not counted.
    pub ramp_ns: u64,
    /// `wait_for`: starts only after all clones of this job have ended.
    pub wait_for: Option<String>,
    /// `exitall`: its end ends others.
    pub exit_all: bool,
    /// `exitall_on_error`: its end by an error ends others.
    pub exit_all_on_error: bool,
    /// `exit_what`.
    pub ends: Ends,
    /// `new_group`, or the start of one by `stonewall`.
    pub new_group: bool,
    /// `rate_min`: the job fails below this many bytes per second; 0: none.
    pub rate_min: [u64; 2],
    /// `rate_iops_min`: the same in calls.
    pub rate_min_calls: [u64; 2],
    /// `rate_cycle`: the interval of these checks.
    pub rate_cycle_ns: u64,
    /// `rate_process=poisson`: calls arrive at random, with the rate as their mean.
    pub poisson: bool,
    /// `thinktime_blocks`: a pause after this many calls.
    pub think_every: u64,
    /// `thinktime_spin`: the part of a pause that keeps a CPU busy.
    pub think_spin_ns: u64,
    /// `thinktime_iotime`: a pause after this time.
    pub think_after_ns: u64,
    /// `flow`: its weight among jobs of the same `flow_id`; 0: none.
    pub flow: u64,
    /// `flow_id`.
    pub flow_id: u64,
    /// `flow_sleep`.
    pub flow_sleep_ns: u64,
    /// `percentage_random`.
    pub random_percent: [u64; 2],
    /// `rw=read:-8k`: the number added to the offset after each sequential call.
    pub stride: i64,
    /// `rw=randread:8`: one call in this many is random; the other calls follow the random call.
    pub random_every: u64,
    /// `rw_sequencer=identical`: those other calls are at the same offset.
    pub repeat_offset: bool,
    /// `unlink`.
    pub unlink: bool,
    /// `overwrite`: written blocks exist before the run.
    pub overwrite: bool,
    /// `invalidate`: the files' cached pages are dropped before the job.
    pub invalidate: bool,
    /// `pre_read`: the files are read before the job.
    pub pre_read: bool,
    /// `openfiles`: the number of files that are used in rotation; 0: all.
    pub open_files: u64,
    /// `file_service_type`.
    pub service: Service,
    /// This many calls before the next file.
    pub service_calls: u64,
    /// `verify`.
    pub verify: Option<Verify>,
    /// `fill_device`: until the device is full.
    pub fill: bool,
    /// `zonemode`.
    pub zones: Option<Zones>,
    /// `continue_on_error`: whether reads and writes may fail.
    pub may_fail: [bool; 2],
    /// `filename_format`.
    pub name_format: Option<String>,
    /// Writes become comparisons by the device (`sg_write_mode`).
    pub checks: bool,
    /// `percentile_list`; empty: the usual percentiles.
    pub percentiles: Vec<f64>,
    /// `write_bw_log`, `write_lat_log`, `write_iops_log`: names of files.
    pub logs: Logs,
    /// `cpuload`, for [`Engine::Cpu`].
    pub cpu_percent: u64,
    /// `cpuchunks`.
    pub cpu_chunk_ns: u64,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,
    /// `create_only`: nothing runs.
    pub create_only: bool,
}

/// Logs of single calls and of rates (`write_lat_log` and its variants): the start of the files' names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Logs {
    /// Bytes per second.
    pub bandwidth: Option<String>,
    /// Times of calls.
    pub latency: Option<String>,
    /// Calls per second.
    pub calls: Option<String>,
    /// `log_avg_msec`: averages over this time; 0: each call.
    pub mean_ns: u64,
}

impl Logs {
    /// Whether any log is requested.
    pub fn any(&self) -> bool {
        self.bandwidth.is_some() || self.latency.is_some() || self.calls.is_some()
    }
}

impl Default for More {
    fn default() -> Self {
        Self {
            depth: 1,
            batch: 1,
            depth_low: 0,
            direct: false,
            sync_writes: false,
            offload: false,
            any_block: false,
            split: [Vec::new(), Vec::new()],
            sizes_by_order: false,
            align: [0; 2],
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            offset_align: 0,
            io_bytes: None,
            calls_max: 0,
            loops: 1,
            ramp_ns: 0,
            wait_for: None,
            exit_all: false,
            exit_all_on_error: false,
            ends: Ends::Group,
            new_group: false,
            rate_min: [0; 2],
            rate_min_calls: [0; 2],
            rate_cycle_ns: 1_000_000_000,
            poisson: false,
            think_every: 1,
            think_spin_ns: 0,
            think_after_ns: 0,
            flow: 0,
            flow_id: 0,
            flow_sleep_ns: 0,
            random_percent: [100; 2],
            stride: 0,
            random_every: 1,
            repeat_offset: false,
            unlink: false,
            overwrite: false,
            invalidate: true,
            pre_read: false,
            open_files: 0,
            service: Service::RoundRobin,
            service_calls: 1,
            verify: None,
            fill: false,
            zones: None,
            may_fail: [false; 2],
            name_format: None,
            checks: false,
            percentiles: Vec::new(),
            logs: Logs::default(),
            cpu_percent: 0,
            cpu_chunk_ns: 50_000_000,
            fsync_on_close: false,
            create_only: false,
        }
    }
}

impl Job {
    /// Whether its calls go past the cache.
    pub fn is_direct(&self) -> bool {
        self.more.direct && !matches!(self.engine, Engine::Null | Engine::Cpu | Engine::Names | Engine::Mmap)
    }

    /// Whether its calls move bytes.
    pub fn moves_bytes(&self) -> bool {
        !matches!(self.engine, Engine::Null | Engine::Cpu | Engine::Names)
    }

    /// Most calls that it has in flight.
    pub fn in_flight_max(&self) -> u64 {
        let files = self.files.max(1);
        match self.engine {
            Engine::Libaio if self.is_direct() => self.more.depth,
            Engine::Uring => self.more.depth,
            Engine::Posixaio => self.more.depth.min(files),
            Engine::Null => 1,
            _ if self.more.offload => self.more.depth,
            _ => 1,
        }
    }
}

impl Job {
    /// A job with fio's defaults, and no size yet.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            position: SourceLine::default(),
            pattern: Pattern { reads: true, writes: false, trims: false, random: false },
            mix_read_percent: 50,
            block_bytes: [BlockSizes { min: 4096, max: 4096 }; 2],
            size: 0,
            size_percent: 100,
            file_bytes: None,
            clones: 1,
            files: 1,
            file_names: Vec::new(),
            directories: Vec::new(),
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            rate_bytes: [0; 2],
            rate_calls: [0; 2],
            think_ns: 0,
            runtime_ns: 0,
            time_based: false,
            start_delay_ns: 0,
            start_delay_max_ns: 0,
            stonewall: false,
            distribution: Distribution::Uniform,
            engine: Engine::Psync,
            group_reporting: false,
            more: More::default(),
        }
    }
}
