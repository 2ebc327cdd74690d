//! A run's need of memory on its host.
//!
//! Owns: the estimate, and the simulated memory that fits.
//! Does not own: the host's memory.
//! Invariants: the estimate is never below the size of the cache's tables; it leaves out other parts of a run, such as
//! the disks' maps of written data.

use afflux_frames::FRAME_BYTES;

use super::Simulation;
use crate::{Job, Workload};

/// Bytes for each frame of the simulated cache from the start: its record, its state, its stamp. Measured as 34
/// resident and 16 reserved (runs with 1, 16 and 64 GiB of cache).
pub const FRAME_OWN_BYTES: u64 = 52;
/// Additional bytes for a frame with a page in it: the index, the versions of the page. Measured as 41 with sequential
/// writes, 80 with random ones.
pub const CACHED_PAGE_OWN_BYTES: u64 = 80;

impl Simulation {
    /// Host memory that the tables of a cache of `memory_bytes` may take, with this run's workloads.
    pub fn own_bytes(&self, memory_bytes: u64) -> u64 {
        let frames = memory_bytes / FRAME_BYTES as u64;
        frames * FRAME_OWN_BYTES + frames.min(self.pages_used_max()) * CACHED_PAGE_OWN_BYTES
    }

    /// The largest cache whose tables take at most `own_bytes`.
    pub fn memory_bytes_max(&self, own_bytes: u64) -> u64 {
        let pages = self.pages_used_max();
        let each = FRAME_OWN_BYTES + CACHED_PAGE_OWN_BYTES;
        let frames = match own_bytes.checked_sub(pages.saturating_mul(each)) {
            Some(rest) => pages + rest / FRAME_OWN_BYTES,
            None => own_bytes / each,
        };
        frames.saturating_mul(FRAME_BYTES as u64)
    }

    /// An upper bound of the pages of files that are ever used.
    fn pages_used_max(&self) -> u64 {
        let bytes = self.workloads.iter().map(|workload| match workload {
            Workload::Job(job) => of_clone(job).saturating_mul(job.clones),
            Workload::Readers(readers) => readers.file_bytes.saturating_mul(readers.count),
            Workload::NfsClient(stream) => stream.client.file_bytes,
            // An unaligned call touches another page at each end.
            Workload::Replay(replay) => {
                let ends = (replay.trace.calls.len() * 2 * FRAME_BYTES) as u64;
                replay.trace.moved_bytes().saturating_add(ends)
            }
        });
        bytes.fold(0, u64::saturating_add) / FRAME_BYTES as u64
    }
}

/// Bytes of the files of one clone.
fn of_clone(job: &Job) -> u64 {
    let files = job.file_bytes.map_or(0, |(_, largest)| largest.saturating_mul(job.files));
    job.size.max(files)
}
