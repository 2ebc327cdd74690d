//! The slow disks of a run, and its contenders.
//!
//! Owns: a slow disk as a contender needs it, making the contender.
//! Does not own: the plan, the races, the making of disks (`contenders::stage`).
//! Invariants: memory that the kernel will fill was touched before.

use std::path::Path;

use super::plan::{Plan, Subject};
use crate::contenders::{self, Contender, KernelWay, Ours};
use crate::hardware::SlowDisk;
use crate::host_memory::warm_memory;

/// The surroundings of all runs.
pub(super) struct Stage<'a> {
    pub(super) disks: contenders::Stage,
    pub(super) plan: &'a Plan,
}

impl Stage<'_> {
    /// The slow disk for this contender, not throttled yet.
    pub(super) fn slow_disk(&self, subject: &Subject) -> Result<SlowDisk, String> {
        let disk = self.disks.disk("slow", self.plan.image_bytes())?;
        if *subject == Subject::Tuned {
            disk.limit_dirty(Some(self.plan.max_bytes)).map_err(|error| error.to_string())?;
        }
        if *subject == Subject::Kernel {
            warm_memory(self.plan.limit_bytes.min(self.plan.stream_bytes_max()));
        }
        Ok(disk)
    }

    /// The contender over these directories.
    pub(super) fn contender(&self, subject: &Subject, on: &[&Path]) -> Result<Box<dyn Contender>, String> {
        let way = match subject {
            Subject::Ours(at, _) => return Ok(Box::new(Ours::new(&self.plan.engines[*at], on)?)),
            Subject::Kernel | Subject::Tuned => KernelWay::Buffered,
            Subject::Raw => KernelWay::Direct,
        };
        Ok(Box::new(self.disks.kernel(way, on)))
    }
}
