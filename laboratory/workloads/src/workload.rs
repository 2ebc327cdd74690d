//! The workloads of a run, described.
//!
//! Owns: the kinds of workloads: jobs, readers, NFS clients, traces.
//! Does not own: the definition of a job (`job`), the execution of workloads.
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
    /// Its name in the report, from which its files' names derive.
    pub name: String,
    /// The directory of the files.
    pub directory: String,
    /// The trace.
    pub trace: Arc<Trace>,
}

/// An NFS client that writes one file and commits it, from the start of the run.
#[derive(Clone, Debug)]
pub struct NfsStream {
    /// Its name in the report, and the name of its file.
    pub name: String,
    /// The directory of the file; the server serves this directory's device.
    pub directory: String,
    /// The client's options; the run sets the name of the file.
    pub client: NfsClientOptions,
    /// The link between client and server, which no other client uses.
    pub link: LinkOptions,
}

impl NfsStream {
    /// The path of its file.
    pub fn path(&self) -> String {
        format!("{}/{}", self.directory.trim_end_matches('/'), self.name)
    }
}

/// Sequential readers of sparse files, one file each, whose starts are spread evenly over a time.
#[derive(Clone, Debug)]
pub struct Readers {
    /// Their name in the report.
    pub name: String,
    /// The directory of the files.
    pub directory: String,
    /// The number of readers.
    pub count: u64,
    /// Bytes of one read.
    pub block_bytes: u64,
    /// Bytes in each file; each is read once, from its start to its end.
    pub file_bytes: u64,
    /// From the start of the first reader to that of the last.
    pub start_over_ns: u64,
}
