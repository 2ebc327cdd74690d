//! The options of `throttled`.
//!
//! Owns: names, ranges, defaults, help. Does not own: the use of values in the cases.
//! Invariants: an option of a single case says so.

use crate::contenders::engine_options::DIRECTORY;
use crate::options::{named, options};

/// Least limit in bytes: a writer dirties little in comparison between two decisions.
const LIMIT_BYTES_MIN: u64 = 16 << 20;
/// Largest limit or memory.
const BYTES_MAX: u64 = 1_000_000_000_000;

named! {
    /// The case to run.
    pub(super) enum Case {
        Jobs = "jobs",
        Kernel = "kernel",
        Recorded = "recorded",
    }
}

named! {
    /// The setup of the machine in the case `kernel`.
    pub(super) enum FormKind {
        Tuned = "tuned",
        Bytes = "bytes",
        Default = "default",
        Fuse = "fuse",
    }
}

options! {
    pub(super) ALL [DIRECTORY] {
        /// jobs: the engine's runs; kernel: a writer under linux-6.1; recorded: that law against a recorded 6.1
        pub(super) CASE: Case = choice("case", "NAME", "jobs");
        /// bytes a second of the disk, read and write each
        pub(super) RATES: u64 = rate("rates", "LIST", "25MB,5MiB,100MB", 100_000..=10_000_000_000);
        /// an fio job file, in place of the built-in jobs
        pub(super) JOB: String = text("job", "FILE", "");
        /// page memory; half of it may be dirty
        pub(super) MEMORY: u64 = size("memory", "SIZE", "256MiB", 16 << 20..=8 << 30);
        /// kernel: how long the writer writes
        pub(super) WRITER_SECONDS: u64 = number("seconds", "N", "45", 11..=600);
        /// kernel: max_bytes of the tuned device
        pub(super) MAX_BYTES: u64 = size("max-bytes", "SIZE", "50MB", 0..=BYTES_MAX);
        /// kernel: memory that may be dirty, of which a fifth is the limit (22GiB); also that of a control group
        pub(super) DIRTYABLE: u64 = size("dirtyable", "SIZE", "", 0..=BYTES_MAX);
        /// kernel: vm.dirty_bytes of the form in bytes; vm.dirty_background_bytes is half of it
        pub(super) LIMIT_BYTES: u64 = size("limit-bytes", "SIZE", "400MB", LIMIT_BYTES_MIN..=BYTES_MAX);
        /// kernel: tuned (max_bytes, strict), bytes (limits in bytes), default, fuse (a hundredth of the limit, strict)
        pub(super) FORMS: FormKind = choice("forms", "LIST", "tuned,bytes,default");
        /// kernel: ticks a second
        pub(super) TICKS: u64 = number("hz", "N", "1000", 1..=1_000_000);
    }
}
