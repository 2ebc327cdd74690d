//! The options of `throttled`.
//!
//! Owns: names, defaults, help. Does not own: what the cases make of them.
//! Invariants: those of one case alone say so.

use crate::experiment::OptionInfo;

pub(super) const CASE: OptionInfo = OptionInfo {
    name: "case",
    value: "NAME",
    default: "jobs",
    doc: "jobs: the engine's runs; kernel: linux-6.1 against this machine's kernel",
};
pub(super) const RATES: OptionInfo = OptionInfo {
    name: "rates",
    value: "LIST",
    default: "25MB,5MiB,100MB",
    doc: "bytes a second of the disk, read and write each",
};
pub(super) const JOB: OptionInfo =
    OptionInfo { name: "job", value: "FILE", default: "", doc: "an fio job file, in place of the built-in jobs" };
pub(super) const MEMORY: OptionInfo =
    OptionInfo { name: "memory", value: "SIZE", default: "256MiB", doc: "page memory; half of it may be dirty" };
pub(super) const DIRECTORY: OptionInfo = OptionInfo {
    name: "directory",
    value: "DIR",
    default: "",
    doc: "where the slow disk's image is made, on a disk file system (default: the temporary directory)",
};
pub(super) const WRITER_SECONDS: OptionInfo =
    OptionInfo { name: "seconds", value: "N", default: "45", doc: "kernel: how long the writer writes" };
pub(super) const MAX_BYTES: OptionInfo =
    OptionInfo { name: "max-bytes", value: "SIZE", default: "50MB", doc: "kernel: max_bytes of the tuned device" };
pub(super) const DIRTYABLE: OptionInfo = OptionInfo {
    name: "dirtyable",
    value: "SIZE",
    default: "",
    doc: "kernel: dirtyable memory of the simulated machine (default: this machine's if measured, else 22GiB)",
};
pub(super) const OTHERS_RATE: OptionInfo = OptionInfo {
    name: "others",
    value: "RATE",
    default: "0",
    doc: "kernel: what others write to another disk of the simulated machine, before and meanwhile (measured: what \
          they wrote)",
};
pub(super) const LIMIT_BYTES: OptionInfo = OptionInfo {
    name: "limit-bytes",
    value: "SIZE",
    default: "400MB",
    doc: "kernel: vm.dirty_bytes of the form in bytes; vm.dirty_background_bytes is half of it",
};
pub(super) const FORMS: OptionInfo = OptionInfo {
    name: "forms",
    value: "LIST",
    default: "tuned,bytes,default",
    doc: "kernel: tuned: strict_limit and max_bytes; bytes: limits in bytes; default: as the kernel comes",
};
pub(super) const TICKS: OptionInfo =
    OptionInfo { name: "hz", value: "N", default: "1000", doc: "kernel: ticks a second (measured: this kernel's)" };
/// All of them.
pub(super) const ALL: &[OptionInfo] = &[
    CASE,
    RATES,
    JOB,
    MEMORY,
    DIRECTORY,
    WRITER_SECONDS,
    MAX_BYTES,
    DIRTYABLE,
    OTHERS_RATE,
    LIMIT_BYTES,
    FORMS,
    TICKS,
];
