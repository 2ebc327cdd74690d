//! The workloads of a run, described.
//!
//! Owns: what can be asked for: jobs, readers, NFS clients, traces.
//! Does not own: what a job is (`job`), how any of it runs.
//! Invariants: plain data.

use std::sync::Arc;

use afflux_simulator::LinkOptions;

use crate::job::Job;
use crate::nfs_client::NfsClientOptions;
use afflux_frontend::trace::Trace;

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
    /// Calls of a trace, at their times.
    Replay(Replay),
}

/// A trace to be replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    /// How the report names it; its files are named after it.
    pub name: String,
    /// Where the files are.
    pub directory: String,
    /// What is replayed.
    pub trace: Arc<Trace>,
}

/// An NFS client that writes one file and commits it, from the start of the run.
#[derive(Clone, Debug)]
pub struct NfsStream {
    /// How the report names it, and the name of its file.
    pub name: String,
    /// Where the file is; the server serves the device that this directory is on.
    pub directory: String,
    /// What it does; its file's name is set by the run.
    pub client: NfsClientOptions,
    /// The link between client and server, its own.
    pub link: LinkOptions,
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
