//! The programs that run on a mount.
//!
//! Owns: their list. Each script has its expected result (`xtask/mounted`).
//! Does not own: the mount, the memory gate (`memory`).
//! Invariants: a script compares its result exactly, and fails for any difference.

/// One program as a script: `$1` is its folder on the mount, `$2` its folder on the host, `$3` the way of the mount,
/// `$4` the number of fsx's operations by each seed, `$5` the place of its files, `$6` the number of fsx's seeds, `$7`
/// the seconds of a load whose length is free, `$8` fsx's first seed.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The package or program that it needs.
    pub(super) needs: &'static str,
    /// Empty for the memory gate (`memory`), which has a mount of its own.
    pub(super) script: &'static str,
}

/// A program whose script is in `xtask/mounted`.
macro_rules! program {
    ($name:literal, $needs:literal) => {
        Program { name: $name, needs: $needs, script: include_str!(concat!("../../mounted/", $name, ".sh")) }
    };
}

pub(super) const PROGRAMS: &[Program] = &[
    program!("fio", "fio"),
    program!("tar", "tar"),
    program!("rsync", "rsync"),
    program!("git", "git"),
    program!("sqlite", "sqlite3"),
    program!("fsx", "fsx"),
    program!("pjdfstest", "pjdfstest"),
];

/// Programs that need more than NFS has.
pub(super) const OF_FUSE: &[Program] = &[
    program!("sqlite-wal", "sqlite3"),
    program!("cargo", "cargo"),
    program!("stress", "stress-ng"),
    Program { name: "memory", needs: "python3", script: "" },
];
