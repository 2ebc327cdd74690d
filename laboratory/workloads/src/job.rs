//! One job of a fio job file, with every option that the simulator knows, in plain units.
//!
//! Owns: the shape and fio's defaults.
//! Does not own: the text form (`fio`), how it is carried out.
//! Invariants: a value here means what fio 3.33 means by it.

/// Which operations, in which order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pattern {
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// It gives blocks back to the disk; where it writes too each write is of the block trimmed before it.
    pub trims: bool,
    /// Offsets are random, not sequential.
    pub random: bool,
}

/// How calls are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// `pread` and `pwrite`, or their vectored kin.
    #[default]
    Psync,
    /// `lseek`, then `read` or `write`: the same to the cache.
    Sync,
    /// Loads and stores in a mapping: whole pages become dirty, nothing is paid for a call.
    Mmap,
    /// Linux's own asynchronous calls. Past the cache up to `iodepth` are in flight; through it a call is carried out
    /// while it is submitted, so that there is one.
    Libaio,
    /// Up to `iodepth` in flight, through the cache too.
    Uring,
    /// The C library's threads, of which each file has one: what is in flight of a file is one call.
    Posixaio,
    /// Calls that do nothing.
    Null,
    /// No calls: a share of a CPU's time.
    Cpu,
    /// One call for each file, about its name or its size alone: nothing is read or written.
    Names,
}

/// How random offsets are drawn.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Distribution {
    /// Every block once, in random order (with `norandommap`: any block any time).
    #[default]
    Uniform,
    /// Zipf with this theta: a few blocks far more often than the others.
    Zipf(f64),
    /// Pareto: of the accesses the larger part goes to this share of the blocks.
    Pareto(f64),
    /// Around the middle, with this deviation in percent of the file.
    Normal(f64),
    /// Percent of the accesses, and the percent of the file that they go to, from its start on.
    Zoned(Vec<(u64, u64)>),
    /// Percent of the accesses, and the bytes that they go to, from the file's start on.
    ZonedBytes(Vec<(u64, u64)>),
}

/// A part of a file: bytes, or a percentage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths of the file, or of the job's bytes.
    Percent(u64),
}

impl Amount {
    /// In bytes, of so many.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// Which file is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Service {
    /// One after the other.
    #[default]
    RoundRobin,
    /// One until it is done.
    Sequential,
    /// Any.
    Random,
}

/// What a job's end ends (`exit_what`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ends {
    /// The jobs of its group.
    #[default]
    Group,
    /// The jobs that run.
    Running,
    /// All jobs, those that have not begun too.
    All,
}

/// Zones of a file (`zonemode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zones {
    /// So many bytes inside a range, then the next range, with a gap between.
    Strided {
        /// `zonerange`.
        range: u64,
        /// `zonesize`.
        bytes: u64,
        /// `zoneskip`.
        skip: u64,
    },
    /// Each zone is written from its start to its end only, and begun anew when it is full.
    Sequential {
        /// `zonesize`.
        bytes: u64,
        /// `max_open_zones`: written to at a time; 0: any.
        open: u64,
    },
}

/// What of the written is read back (`verify`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verify {
    /// `verify_backlog`: after so many writes; 0: when all is written.
    pub backlog: u64,
    /// `verify_backlog_batch`: so many at a time.
    pub batch: u64,
    /// `do_verify`.
    pub at_end: bool,
    /// `verify_only`: nothing is written, what would have been is read.
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

/// Where an option or a job stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
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
    /// Where its section begins.
    pub place: Place,
    /// `rw`.
    pub pattern: Pattern,
    /// `rwmixread`: of 100 operations of a mixed job, how many are reads.
    pub mix_read_percent: u64,
    /// `bs`, `bsrange`: of reads and of writes.
    pub block_bytes: [BlockSizes; 2],
    /// `size` in bytes: of all files of one clone together; 0 where `filesize` says it all.
    pub size: u64,
    /// `size` in percent of the files' sizes, where `filesize` gives these; 100 otherwise.
    pub size_percent: u64,
    /// `filesize`: the smallest and the largest.
    pub file_bytes: Option<(u64, u64)>,
    /// `numjobs`.
    pub clones: u64,
    /// `nrfiles`.
    pub files: u64,
    /// `filename`: names that all clones share; empty: names of the clone's own.
    pub file_names: Vec<String>,
    /// `directory`: the clones take turns at them; empty: the working directory.
    pub directories: Vec<String>,
    /// `fsync`: after so many writes; 0: never.
    pub fsync_every: u64,
    /// `fdatasync`: after so many writes; 0: never.
    pub fdatasync_every: u64,
    /// `end_fsync`.
    pub end_fsync: bool,
    /// `rate`: bytes a second of reads and of writes; 0: no limit.
    pub rate_bytes: [u64; 2],
    /// `rate_iops`: calls a second of reads and of writes; 0: no limit.
    pub rate_calls: [u64; 2],
    /// `thinktime`: the pause after each block.
    pub think_ns: u64,
    /// `runtime`: at most so long; 0: no limit.
    pub runtime_ns: u64,
    /// `time_based`: begin again until `runtime` is over.
    pub time_based: bool,
    /// `startdelay`.
    pub start_delay_ns: u64,
    /// `stonewall`: not before all jobs above have ended.
    pub stonewall: bool,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// `ioengine`.
    pub engine: Engine,
    /// `group_reporting`: reported together with its neighbours that say the same.
    pub group_reporting: bool,
    /// What fewer jobs ask for.
    pub more: More,
}

/// Options that most jobs leave as they are.
#[derive(Clone, PartialEq, Debug)]
pub struct More {
    /// `iodepth`: calls in flight, where the engine can have several.
    pub depth: u64,
    /// `iodepth_batch`: so many are submitted together.
    pub batch: u64,
    /// `iodepth_low`: once the queue is full it is let run down to this.
    pub depth_low: u64,
    /// `direct`: past the cache.
    pub direct: bool,
    /// `sync`: each write is durable before it returns.
    pub sync_writes: bool,
    /// `io_submit_mode=offload`: others submit, so that a pause keeps nobody from looking at what has ended.
    pub offload: bool,
    /// `norandommap`.
    pub any_block: bool,
    /// `bssplit`: bytes and percent, of reads and of writes; empty: `bs` says it.
    pub split: [Vec<(u64, u64)>; 2],
    /// `bs_is_seq_rand`: the two sizes are of sequential and of random calls.
    pub sizes_by_order: bool,
    /// `blockalign`: what random offsets are multiples of; 0: the smallest block.
    pub align: [u64; 2],
    /// `offset`.
    pub offset: Amount,
    /// `offset_increment`, for each clone.
    pub offset_increment: Amount,
    /// `offset_align`; 0: none.
    pub offset_align: u64,
    /// `io_size`: bytes to move, where these are not those of the files.
    pub io_bytes: Option<Amount>,
    /// `number_ios`: at most so many calls; 0: no limit.
    pub calls_max: u64,
    /// `loops`.
    pub loops: u64,
    /// `ramp_time`: not counted.
    pub ramp_ns: u64,
    /// `wait_for`: not before all clones of this job have ended.
    pub wait_for: Option<String>,
    /// `exitall`: its end ends others.
    pub exit_all: bool,
    /// `exit_what`.
    pub ends: Ends,
    /// `new_group`, or the start of one by `stonewall`.
    pub new_group: bool,
    /// `rate_min`: bytes a second below which the job fails; 0: none.
    pub rate_min: [u64; 2],
    /// `rate_iops_min`: the same in calls.
    pub rate_min_calls: [u64; 2],
    /// `rate_cycle`: over so long.
    pub rate_cycle_ns: u64,
    /// `rate_process=poisson`: calls come by chance, at the rate in the mean.
    pub poisson: bool,
    /// `thinktime_blocks`: a pause after so many calls.
    pub think_every: u64,
    /// `thinktime_spin`: so much of a pause keeps a CPU busy.
    pub think_spin_ns: u64,
    /// `thinktime_iotime`: a pause after so long.
    pub think_after_ns: u64,
    /// `flow`: its weight among jobs of the same `flow_id`; 0: none.
    pub flow: u64,
    /// `flow_id`.
    pub flow_id: u64,
    /// `flow_sleep`.
    pub flow_sleep_ns: u64,
    /// `percentage_random`.
    pub random_percent: [u64; 2],
    /// `rw=read:-8k`: what is added to the offset after each sequential call.
    pub stride: i64,
    /// `rw=randread:8`: one in so many is random, the others follow it.
    pub random_every: u64,
    /// `rw_sequencer=identical`: those others are at the same place.
    pub repeat_place: bool,
    /// `unlink`.
    pub unlink: bool,
    /// `overwrite`: what is written is there before.
    pub overwrite: bool,
    /// `invalidate`: what the cache has of the files is dropped before the job.
    pub invalidate: bool,
    /// `pre_read`: the files are read before the job.
    pub pre_read: bool,
    /// `openfiles`: among so many the calls go round; 0: all.
    pub open_files: u64,
    /// `file_service_type`.
    pub service: Service,
    /// So many calls before the next file.
    pub service_calls: u64,
    /// `verify`.
    pub verify: Option<Verify>,
    /// `fill_device`: until there is no space.
    pub fill: bool,
    /// `zonemode`.
    pub zones: Option<Zones>,
    /// `continue_on_error`: of reads and writes, those that may fail.
    pub may_fail: [bool; 2],
    /// `filename_format`.
    pub name_format: Option<String>,
    /// A device is asked to compare what a write would write with what it has (`sg_write_mode`).
    pub checks: bool,
    /// `percentile_list`; empty: the usual ones.
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

/// Logs of single calls, and of rates (`write_lat_log` and its kin): the start of their files' names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Logs {
    /// Bytes a second.
    pub bandwidth: Option<String>,
    /// Times of calls.
    pub latency: Option<String>,
    /// Calls a second.
    pub calls: Option<String>,
    /// `log_avg_msec`: means over so long; 0: each call.
    pub mean_ns: u64,
}

impl Logs {
    /// Whether there is any.
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
            repeat_place: false,
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

    /// Whether its calls move bytes at all.
    pub fn moves_bytes(&self) -> bool {
        !matches!(self.engine, Engine::Null | Engine::Cpu | Engine::Names)
    }

    /// Calls that it has in flight at most.
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
            place: Place::default(),
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
            stonewall: false,
            distribution: Distribution::Uniform,
            engine: Engine::Psync,
            group_reporting: false,
            more: More::default(),
        }
    }
}
