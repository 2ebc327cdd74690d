//! What runs on the simulated machine: jobs of fio job files, and built-in workloads.
//!
//! Owns: the job file parser (`fio`), what a job is (`job`) and does (`sequence`, `runner`), the files that
//! jobs share (`machine`), the other workloads' descriptions.
//! Does not own: the machine and the figures of a run (`simulation`); the disks.
//! Invariants: a description is plain data; running it depends on it and on the seed alone.

mod blocks;
pub(crate) mod caller;
pub(crate) mod contents;
mod engine_run;
pub mod fio;
mod job;
pub(crate) mod machine;
pub mod nfs_client;
pub(crate) mod recorder;
pub(crate) mod runner;
pub(crate) mod sequence;
pub(crate) mod site;
mod zipf;

pub use engine_run::{EngineRun, EngineRunHandle};
pub use job::{BlockSizes, Distribution, Engine, Job, Pattern, Place};

/// One line of a run's report: a job, or a built-in workload.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few, and all but a few are jobs")]
pub enum Workload {
    /// A job of a fio job file, with all its clones.
    Job(Job),
    /// Many sequential readers.
    Readers(Readers),
    /// A client that writes a file over a link, to the real NFS server.
    NfsClient(NfsStream),
}

/// An NFS client that writes one file and commits it, from the start of the run.
#[derive(Clone, Debug)]
pub struct NfsStream {
    /// How the report names it, and the name of its file.
    pub name: String,
    /// Where the file is; the server serves the device that this directory is on.
    pub directory: String,
    /// What it does; its file's name is set by the run.
    pub client: nfs_client::NfsClientOptions,
    /// The link between client and server, its own.
    pub link: crate::link::LinkOptions,
}

impl NfsStream {
    /// The path of its file.
    pub fn path(&self) -> String {
        format!("{}/{}", self.directory.trim_end_matches('/'), self.name)
    }
}

/// N sequential readers of sparse files, one file each, that start evenly over a time.
#[derive(Clone, Debug)]
pub struct Readers {
    /// How the report names them.
    pub name: String,
    /// Where the files are.
    pub directory: String,
    /// How many.
    pub count: u64,
    /// Bytes that one read asks for.
    pub block_bytes: u64,
    /// Bytes in each file; each is read once, from its start to its end.
    pub file_bytes: u64,
    /// From the start of the first reader to that of the last.
    pub start_over_ns: u64,
}
