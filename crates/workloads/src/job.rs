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
    /// Offsets are random, not sequential.
    pub random: bool,
}

/// How calls are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// `pread` and `pwrite`.
    #[default]
    Psync,
    /// `lseek`, then `read` or `write`: the same to the cache.
    Sync,
    /// Loads and stores in a mapping: whole pages become dirty, nothing is paid for a call.
    Mmap,
}

/// How random offsets are drawn.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Distribution {
    /// Every block once, in random order (with `norandommap`: any block any time).
    #[default]
    Uniform,
    /// Zipf with this theta: a few blocks far more often than the others.
    Zipf(f64),
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
}

impl Job {
    /// A job with fio's defaults, and no size yet.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            place: Place::default(),
            pattern: Pattern { reads: true, writes: false, random: false },
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
        }
    }
}
