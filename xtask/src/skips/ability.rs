//! The abilities of this machine that some tests need.
//!
//! Owns: the probe of each ability.
//! Does not own: the reasons of skipped tests.
//! Invariants: a probe leaves nothing behind. It runs once, and only if a skipped test asks for it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// A thing that some tests need, beside programs that can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ability {
    Root,
    OrdinaryUser,
    /// To mount a file system over a loop device, and to freeze it.
    Mounts,
    /// The throttle of control groups of version 1.
    Throttle,
    /// Control groups of version 1 that bound memory.
    MemoryGroups,
    /// Quotas of users on XFS and ext4.
    Quotas,
    /// Directories of ext4 and of XFS that fold names.
    FoldedNames,
    /// The programs of Prometheus, which are never installed for a test.
    Prometheus,
    /// Temporary files are on a disk.
    DiskForScratch,
    /// Writes around the page cache (RWF_DONTCACHE).
    UncachedWrites,
    /// Filters of system calls.
    Filters,
    /// The file system of temporary files gives a new file the number of a removed one.
    NumbersUsedTwice,
    /// An address beside loopback's.
    Addresses,
    /// To open temporary files by their handles.
    Handles,
    /// Access control lists of temporary files.
    AccessLists,
    /// To trace a process.
    Tracing,
    /// To handle page faults (userfaultfd).
    PageFaults,
    /// SIGHUP is not ignored.
    HangUps,
}

const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";
const MEMORY_GROUPS: &str = "/sys/fs/cgroup/memory/memory.limit_in_bytes";

const QUOTAS: &str = r#"d=$(mktemp -d); trap 'umount "$d/m" 2> /dev/null || :; rm -rf "$d"' EXIT
mkdir "$d/m"; truncate -s 400M "$d/xfs"; mkfs.xfs -q "$d/xfs"; mount -o loop,uquota "$d/xfs" "$d/m"; umount "$d/m"
truncate -s 64M "$d/ext4"; mkfs.ext4 -q -F -O quota "$d/ext4"; mount -o loop,usrquota "$d/ext4" "$d/m""#;
const FOLDED_NAMES: &str = r#"d=$(mktemp -d); trap 'umount "$d/m" 2> /dev/null || :; rm -rf "$d"' EXIT
mkdir "$d/m"; truncate -s 400M "$d/xfs"; mkfs.xfs -q -n version=ci "$d/xfs"; mount -o loop "$d/xfs" "$d/m"; umount "$d/m"
truncate -s 16M "$d/ext4"; mkfs.ext4 -q -F -O casefold "$d/ext4"; mount -o loop "$d/ext4" "$d/m""#;
/// In a mount namespace of its own.
const MOUNTS: &str = r#"d=$(mktemp -d); trap 'umount "$d/m" 2> /dev/null || :; rm -rf "$d"' EXIT
truncate -s 16M "$d/image"; mkdir "$d/m"; mkfs.ext4 -q -F "$d/image"
mount -o loop "$d/image" "$d/m"; fsfreeze -f "$d/m"; fsfreeze -u "$d/m""#;
const ACCESS_LISTS: &str = r#"f=$(mktemp); trap 'rm -f "$f"' EXIT; setfacl -m u:1:r "$f""#;
const TRACING: &str = "strace -o /dev/null true";
const ADDRESSES: &str = r#"test -n "$(ip -o address show scope global)""#;

/// File systems with handles, and with numbers that are used again.
const DISKS: [&str; 2] = ["ext2/ext3", "xfs"];

/// Tells whether this machine has an ability.
pub(super) fn of_this_machine() -> impl Fn(Ability) -> bool {
    let known: RefCell<BTreeMap<Ability, bool>> = RefCell::default();
    move |ability| *known.borrow_mut().entry(ability).or_insert_with(|| is_here(ability))
}

fn is_here(ability: Ability) -> bool {
    match ability {
        Ability::Root => is_root(),
        Ability::OrdinaryUser => !is_root(),
        Ability::Mounts => mounts_here(),
        Ability::Throttle => Path::new(THROTTLE).exists() && mounts_here(),
        Ability::MemoryGroups => Path::new(MEMORY_GROUPS).exists() && is_root(),
        Ability::Quotas => in_own_namespace(QUOTAS),
        Ability::FoldedNames => in_own_namespace(FOLDED_NAMES),
        Ability::Prometheus => runs("promtool", &["--version"]),
        Ability::DiskForScratch => !["tmpfs", "ramfs"].contains(&scratch_kind().as_str()),
        Ability::UncachedWrites => kernel() >= Some((6, 14)) && DISKS.contains(&scratch_kind().as_str()),
        Ability::Filters => Path::new("/proc/sys/kernel/seccomp/actions_avail").exists(),
        Ability::NumbersUsedTwice => scratch_kind() == DISKS[0],
        Ability::Addresses => runs("sh", &["-ec", ADDRESSES]),
        Ability::Handles => is_root() && DISKS.contains(&scratch_kind().as_str()),
        Ability::AccessLists => runs("sh", &["-ec", ACCESS_LISTS]),
        Ability::Tracing => runs("sh", &["-ec", TRACING]),
        Ability::PageFaults => is_root() && Path::new("/proc/sys/vm/unprivileged_userfaultfd").exists(),
        Ability::HangUps => !ignores_hang_ups(),
    }
}

fn is_root() -> bool {
    said("id", &["-u"]) == "0"
}

fn mounts_here() -> bool {
    in_own_namespace(MOUNTS)
}

/// Runs a script in a mount namespace of its own.
fn in_own_namespace(script: &str) -> bool {
    runs("unshare", &["--mount", "--propagation", "private", "sh", "-ec", script])
}

/// The kind of the file system of temporary files, in the words of `stat`.
fn scratch_kind() -> String {
    said("stat", &["--file-system", "--format=%T", &std::env::temp_dir().to_string_lossy()])
}

/// The kernel's version: its first two numbers.
fn kernel() -> Option<(u32, u32)> {
    let release = said("uname", &["-r"]);
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Whether processes that this one starts ignore SIGHUP: the first bit of a mask.
fn ignores_hang_ups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut probe = Command::new(program);
    probe.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
