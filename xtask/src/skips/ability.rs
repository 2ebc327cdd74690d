//! The abilities of this machine that some tests need, beside programs that can be installed.
//!
//! Owns: the probe of each ability.
//! Does not own: the reasons of skipped tests.
//! Invariants: a probe leaves nothing behind. It runs only if a skipped test asks for it.

use std::path::Path;
use std::process::{Command, Stdio};

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
const ADDRESSES: &str = r#"test -n "$(ip -o address show scope global)""#;

/// File systems with handles, and with numbers that are used again.
const DISKS: [&str; 2] = ["ext2/ext3", "xfs"];

pub(crate) fn is_root() -> bool {
    said("id", &["-u"]) == "0"
}

/// To mount a file system over a loop device, and to freeze it.
pub(crate) fn may_mount() -> bool {
    in_own_namespace(MOUNTS)
}

/// The throttle of control groups of version 1.
pub(super) fn has_throttle() -> bool {
    Path::new(THROTTLE).exists() && may_mount()
}

/// Control groups of version 1 that bound memory.
pub(super) fn has_memory_groups() -> bool {
    Path::new(MEMORY_GROUPS).exists() && is_root()
}

/// Quotas of users on XFS and ext4.
pub(super) fn has_quotas() -> bool {
    in_own_namespace(QUOTAS)
}

/// Directories of ext4 and of XFS that fold names.
pub(super) fn has_folded_names() -> bool {
    in_own_namespace(FOLDED_NAMES)
}

pub(super) fn has_prometheus() -> bool {
    runs("promtool", &["--version"])
}

pub(super) fn has_temporary_files_on_disk() -> bool {
    !["tmpfs", "ramfs"].contains(&scratch_kind().as_str())
}

/// Writes around the page cache (RWF_DONTCACHE).
pub(super) fn has_uncached_writes() -> bool {
    kernel() >= Some((6, 14)) && DISKS.contains(&scratch_kind().as_str())
}

/// Filters of system calls.
pub(super) fn has_filters() -> bool {
    Path::new("/proc/sys/kernel/seccomp/actions_avail").exists()
}

/// The file system of temporary files gives a new file the number of a removed one.
pub(super) fn has_numbers_used_twice() -> bool {
    scratch_kind() == DISKS[0]
}

/// An address beside loopback's.
pub(super) fn has_addresses() -> bool {
    runs("sh", &["-ec", ADDRESSES])
}

/// To open temporary files by their handles.
pub(super) fn has_handles() -> bool {
    is_root() && DISKS.contains(&scratch_kind().as_str())
}

/// Linux as a program.
pub(crate) fn has_uml() -> bool {
    runs("linux.uml", &["--version"])
}

/// Network devices of programs, in a network namespace, and to trace programs: User Mode Linux needs both.
pub(crate) fn has_taps() -> bool {
    may_trace() && runs("unshare", &["--net", "ip", "tuntap", "add", "tap0", "mode", "tap"])
}

/// The list of installed packages.
pub(crate) fn has_lists_of_packages() -> bool {
    runs("dpkg-query", &["--version"])
}

/// Access control lists of temporary files.
pub(super) fn has_access_lists() -> bool {
    runs("sh", &["-ec", ACCESS_LISTS])
}

pub(super) fn may_trace() -> bool {
    runs("strace", &["-o", "/dev/null", "true"])
}

/// To handle page faults (userfaultfd).
pub(super) fn may_handle_page_faults() -> bool {
    is_root() && Path::new("/proc/sys/vm/unprivileged_userfaultfd").exists()
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
pub(super) fn ignores_hang_ups() -> bool {
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
