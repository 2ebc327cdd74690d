//! As little memory for the kernel's page cache as Afflux has: a control group.
//!
//! Owns: the group, which goes with it.
//! Does not own: who runs in it.
//! Invariants: groups of others are left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the memory controller may be, and what its limit is called there: of version 1, and of version 2.
const PLACES: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A group whose processes, with their part of the page cache, have so much memory.
pub(super) struct Bound {
    group: PathBuf,
}

impl Bound {
    pub(super) fn to(bytes: u64) -> Result<Self, String> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("afflux-race-{}-{number}", std::process::id());
        for (place, limit) in PLACES {
            let group = Path::new(place).join(&name);
            if fs::create_dir(&group).is_err() {
                continue;
            }
            let bound = Self { group };
            if fs::write(bound.group.join(limit), bytes.to_string()).is_ok() {
                return Ok(bound);
            }
        }
        Err("the kernel's memory cannot be bounded here: no control group for memory".to_owned())
    }

    /// Where a process writes its number to come in.
    pub(super) fn door(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}
