//! A control group that limits the kernel's page cache to as much memory as Afflux has.
//!
//! Owns: the group, which is removed on drop.
//! Does not own: the processes in it.
//! Invariants: other groups are not touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Possible places of the memory controller, and the name of its limit there: in version 1, and in version 2.
const PLACES: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A group whose processes, including their part of the page cache, have this much memory.
pub(crate) struct Bound {
    group: PathBuf,
}

impl Bound {
    pub(crate) fn to(bytes: u64) -> Result<Self, String> {
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

    /// The file to which a process writes its number to enter the group.
    pub(crate) fn door(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}
