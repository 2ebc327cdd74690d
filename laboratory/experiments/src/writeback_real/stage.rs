//! The disks of a run, and its contenders.
//!
//! Owns: making a throttled disk for a contender, making the contender.
//! Does not own: the plan, the races.
//! Invariants: a new disk is empty and not throttled yet; memory that the kernel will fill was touched before.

use std::path::Path;

use afflux_scratch::Scratch;

use super::plan::{Plan, Subject};
use crate::contenders::{Contender, Kernel, KernelWay, Ours};
use crate::hardware::{DiskRates, KernelDebug, SlowDisk, free_bytes};
use crate::host_memory::warm_memory;

/// Bytes to leave free on the file system with the images.
const SPARE_BYTES: u64 = 2 << 30;

/// The surroundings of all runs.
pub(super) struct Stage<'a> {
    // Dropped in this order: debugfs is mounted inside the directory.
    debug: Option<KernelDebug>,
    pub(super) scratch: Scratch,
    pub(super) plan: &'a Plan,
}

impl<'a> Stage<'a> {
    pub(super) fn new(plan: &'a Plan) -> Result<Self, String> {
        let scratch = Scratch::guarded(&plan.directory, "races").map_err(|error| error.to_string())?;
        let debug = KernelDebug::new(scratch.path()).ok();
        Ok(Self { debug, scratch, plan })
    }

    /// The slow disk for this contender, not throttled yet.
    pub(super) fn slow_disk(&self, subject: &Subject) -> Result<SlowDisk, String> {
        let disk = self.disk("slow", self.plan.image_bytes())?;
        if *subject == Subject::Tuned {
            disk.limit_dirty(Some(self.plan.max_bytes)).map_err(|error| error.to_string())?;
        }
        if *subject == Subject::Kernel {
            warm_memory(self.plan.limit_bytes.min(self.plan.stream_bytes_max()));
        }
        Ok(disk)
    }

    /// A disk of `bytes` in a directory of this name.
    pub(super) fn disk(&self, name: &str, bytes: u64) -> Result<SlowDisk, String> {
        let directory = self.scratch.path().join(name);
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let free = free_bytes(&directory).map_err(|error| error.to_string())?;
        if bytes + SPARE_BYTES > free {
            let (bytes, free) = (afflux_report::units::data(bytes + SPARE_BYTES), afflux_report::units::data(free));
            return Err(format!("{}: {bytes} are needed and {free} are free", directory.display()));
        }
        let disk = SlowDisk::queued(&directory, bytes, DiskRates::default()).map_err(|error| error.to_string())?;
        Ok(disk)
    }

    /// The contender over these directories.
    pub(super) fn contender(&self, subject: &Subject, on: &[&Path]) -> Result<Box<dyn Contender>, String> {
        let way = match subject {
            Subject::Ours(at, _) => return Ok(Box::new(Ours::new(&self.plan.engines[*at], on)?)),
            Subject::Kernel | Subject::Tuned => KernelWay::Buffered,
            Subject::Raw => KernelWay::Direct,
        };
        Ok(Box::new(Kernel::new(way, on, self.debug.as_ref())))
    }

    /// Makes a disk write its file system's data, and throttles it.
    pub(super) fn slow_down(disk: &SlowDisk, bytes_per_s: u64) -> Result<(), String> {
        let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(bytes_per_s) };
        disk.settle().and_then(|()| disk.throttle(rates)).map_err(|error| error.to_string())
    }

    /// Lifts the throttle, so that a disk writes the rest at the host's speed.
    pub(super) fn let_go(disk: &SlowDisk) -> Result<(), String> {
        disk.throttle(DiskRates::default()).map_err(|error| error.to_string())
    }
}
