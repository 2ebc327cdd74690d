//! The load of a recorded run, and the same load for the simulator.
//!
//! Owns: the loads by name, their jobs.
//! Does not own: the programs in the guest (`tests/guest/law/load.py`), the simulated machine (`simulated`).
//! Invariants: a job writes what the program in the guest writes, at the same times. The stream is the first job.

use afflux_workloads::{BlockSizes, Job, Logs};

use super::super::kernel::writer;

const SECOND_NS: u64 = 1_000_000_000;
/// The small file: the second of its first write, the bytes before each sync, the rest after it.
const FILL_S: u64 = 10;
const SMALL_BYTES: u64 = 4096;
const REST_NS: u64 = 100_000_000;
/// The bursts: their bytes and the seconds at which they begin.
const BURST_BYTES: u64 = 100 << 20;
const BURSTS_S: [u64; 3] = [15, 25, 35];
/// The directory on the faster disk.
pub(super) const FASTER: &str = "/faster";

/// A load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Load {
    /// A writer at full speed.
    #[default]
    Stream,
    /// A writer at a rate.
    AtRate { bytes_per_s: u64 },
    /// Syncs of a small file beside a writer at full speed.
    SmallSync,
    /// Bursts to a faster disk, each with a sync, beside a writer at full speed.
    Burst,
}

impl Load {
    pub(super) fn named(name: &str, bytes_per_s: u64) -> Option<Self> {
        match name {
            "stream" => Some(Self::Stream),
            "at-rate" => Some(Self::AtRate { bytes_per_s }),
            "small-sync" => Some(Self::SmallSync),
            "burst" => Some(Self::Burst),
            _ => None,
        }
    }

    /// Its jobs. Each starts after `before_ns`.
    pub(super) fn jobs(self, seconds: u64, before_ns: u64) -> Vec<Job> {
        let mut stream = writer("stream", seconds);
        (stream.end_fsync, stream.start_delay_ns) = (true, before_ns);
        match self {
            Self::Stream => vec![stream],
            Self::AtRate { bytes_per_s } => {
                stream.rate_bytes = [0, bytes_per_s];
                vec![stream]
            }
            Self::SmallSync => vec![stream, small(seconds, before_ns)],
            Self::Burst => std::iter::once(stream).chain(BURSTS_S.map(|at| burst(at, before_ns))).collect(),
        }
    }
}

/// Each call writes a block and syncs it.
fn small(seconds: u64, before_ns: u64) -> Job {
    let mut job = writer("small", seconds - FILL_S);
    job.block_bytes = [BlockSizes { min: SMALL_BYTES, max: SMALL_BYTES }; 2];
    (job.start_delay_ns, job.think_ns) = (before_ns + FILL_S * SECOND_NS, REST_NS);
    job.size = 1 << 30;
    job.more.sync_writes = true;
    job.more.logs = Logs { latency: Some("small".to_owned()), ..Logs::default() };
    job
}

fn burst(at_s: u64, before_ns: u64) -> Job {
    let mut job = writer(&format!("burst-{at_s}"), 0);
    (job.size, job.directories) = (BURST_BYTES, vec![FASTER.to_owned()]);
    (job.end_fsync, job.start_delay_ns) = (true, before_ns + at_s * SECOND_NS);
    job
}
