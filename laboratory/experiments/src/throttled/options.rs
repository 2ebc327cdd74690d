//! The options of `throttled`.
//!
//! Owns: names, ranges, defaults, help. Does not own: the use of values in the cases.
//! Invariants: an option of a single case says so.

use crate::experiment::OptionInfo;
use crate::options::{self, TypedOption};

/// Least limit in bytes: a writer dirties little in comparison between two decisions.
const LIMIT_BYTES_MIN: u64 = 16 << 20;
/// Largest limit or memory.
const BYTES_MAX: u64 = 1_000_000_000_000;

/// The case to run.
#[derive(Clone, Copy)]
pub(super) enum Case {
    Jobs,
    Kernel,
    Recorded,
}

/// The setup of the machine in the case `kernel`.
#[derive(Clone, Copy)]
pub(super) enum FormKind {
    Tuned,
    Bytes,
    Default,
}

pub(super) const CASE: TypedOption<Case> = options::choice(
    OptionInfo {
        name: "case",
        value: "NAME",
        default: "jobs",
        doc: "jobs: the engine's runs; kernel: linux-6.1 against this machine's kernel; recorded: against a recorded 6.1",
    },
    &[("jobs", Case::Jobs), ("kernel", Case::Kernel), ("recorded", Case::Recorded)],
    "none of 'jobs', 'kernel' and 'recorded'",
);
pub(super) const RATES: TypedOption<u64> = options::rate(
    OptionInfo {
        name: "rates",
        value: "LIST",
        default: "25MB,5MiB,100MB",
        doc: "bytes a second of the disk, read and write each",
    },
    100_000..=10_000_000_000,
);
pub(super) const JOB: OptionInfo =
    OptionInfo { name: "job", value: "FILE", default: "", doc: "an fio job file, in place of the built-in jobs" };
pub(super) const MEMORY: TypedOption<u64> = options::size(
    OptionInfo { name: "memory", value: "SIZE", default: "256MiB", doc: "page memory; half of it may be dirty" },
    16 << 20..=8 << 30,
);
pub(super) const DIRECTORY: OptionInfo = OptionInfo {
    name: "directory",
    value: "DIR",
    default: "",
    doc: "where the slow disk's image is made, on a disk file system (default: the temporary directory, or /var/tmp if that is in memory)",
};
pub(super) const WRITER_SECONDS: TypedOption<u64> = options::number(
    OptionInfo { name: "seconds", value: "N", default: "45", doc: "kernel: how long the writer writes" },
    11..=600,
);
pub(super) const MAX_BYTES: TypedOption<u64> = options::size(
    OptionInfo { name: "max-bytes", value: "SIZE", default: "50MB", doc: "kernel: max_bytes of the tuned device" },
    0..=BYTES_MAX,
);
pub(super) const DIRTYABLE: TypedOption<u64> = options::size(
    OptionInfo {
        name: "dirtyable",
        value: "SIZE",
        default: "",
        doc: "kernel: dirtyable memory of the simulated machine (default: this machine's if measured, else 22GiB)",
    },
    0..=BYTES_MAX,
);
pub(super) const OTHERS_RATE: TypedOption<u64> = options::rate(
    OptionInfo {
        name: "others",
        value: "RATE",
        default: "0",
        doc: "kernel: bytes that others write to another disk of the simulated machine, before and meanwhile (measured: those that \
          they wrote)",
    },
    0..=10_000_000_000,
);
pub(super) const LIMIT_BYTES: TypedOption<u64> = options::size(
    OptionInfo {
        name: "limit-bytes",
        value: "SIZE",
        default: "400MB",
        doc: "kernel: vm.dirty_bytes of the form in bytes; vm.dirty_background_bytes is half of it",
    },
    LIMIT_BYTES_MIN..=BYTES_MAX,
);
pub(super) const FORMS: TypedOption<FormKind> = options::choice(
    OptionInfo {
        name: "forms",
        value: "LIST",
        default: "tuned,bytes,default",
        doc: "kernel: tuned: strict_limit and max_bytes; bytes: limits in bytes; default: as the kernel comes",
    },
    &[("tuned", FormKind::Tuned), ("bytes", FormKind::Bytes), ("default", FormKind::Default)],
    "none of 'tuned', 'bytes' and 'default'",
);
pub(super) const TICKS: TypedOption<u64> = options::number(
    OptionInfo { name: "hz", value: "N", default: "1000", doc: "kernel: ticks a second (measured: this kernel's)" },
    1..=1_000_000,
);
/// All of them.
pub(super) const ALL: &[OptionInfo] = &[
    CASE.info,
    RATES.info,
    JOB,
    MEMORY.info,
    DIRECTORY,
    WRITER_SECONDS.info,
    MAX_BYTES.info,
    DIRTYABLE.info,
    OTHERS_RATE.info,
    LIMIT_BYTES.info,
    FORMS.info,
    TICKS.info,
];
