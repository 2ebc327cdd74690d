//! The abilities of this machine that some tests need.
//!
//! Owns: the probe of each ability.
//! Does not own: the reasons of skipped tests.
//! Invariants: a probe leaves nothing behind. It runs once, and only if a skipped test asks for it.

use std::cell::OnceCell;
use std::path::Path;
use std::process::{Command, Stdio};

/// A thing that some tests need, beside programs that can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ability {
    /// A kernel's option, a file system's property, or a package that is never installed: no probe tells.
    Varying,
    Root,
    /// To mount a file system over a loop device, and to freeze it.
    Mounts,
    /// The throttle of control groups of version 1.
    Throttle,
    /// Control groups of version 1 that bound memory.
    MemoryGroups,
}

const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";
const MEMORY_GROUPS: &str = "/sys/fs/cgroup/memory/memory.limit_in_bytes";

/// In a mount namespace of its own.
const MOUNTS: &str = r#"d=$(mktemp -d); trap 'umount "$d/m" 2> /dev/null || :; rm -rf "$d"' EXIT
truncate -s 16M "$d/image"; mkdir "$d/m"; mkfs.ext4 -q -F "$d/image"
mount -o loop "$d/image" "$d/m"; fsfreeze -f "$d/m"; fsfreeze -u "$d/m""#;

/// Tells whether this machine has an ability.
pub(super) fn of_this_machine() -> impl Fn(Ability) -> bool {
    let mounts = OnceCell::new();
    move |ability| {
        let can_mount = || *mounts.get_or_init(mounts_here);
        match ability {
            Ability::Varying => false,
            Ability::Root => is_root(),
            Ability::Mounts => can_mount(),
            Ability::Throttle => Path::new(THROTTLE).exists() && can_mount(),
            Ability::MemoryGroups => Path::new(MEMORY_GROUPS).exists() && is_root(),
        }
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn mounts_here() -> bool {
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "--propagation", "private", "sh", "-ec", MOUNTS]);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
