//! The simulator against the real thing: the same jobs on a throttled disk, simulated and measured; and
//! `linux-6.1` in the simulator against the kernel of this machine.
//!
//! Owns: the options, which cases there are.
//! Does not own: the cases (`jobs`, `kernel`), the worlds they run in (`simulated`, `real`), the slow disk
//! (`hardware`).
//! Invariants: both sides run the same operations in the same order, from the same seed.

mod compare;
mod jobs;
mod kernel;
mod kernel_page;
mod plain_writer;
mod plan;
mod real;
mod simulated;
mod surroundings;

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};

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
const OPTIONS: &[OptionInfo] = &[
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

/// The experiment.
pub(crate) struct Throttled;

impl Experiment for Throttled {
    fn name(&self) -> &'static str {
        "throttled"
    }

    fn about(&self) -> &'static str {
        "The simulator against the real thing: a disk with a byte rate, simulated and measured"
    }

    fn options(&self) -> &'static [OptionInfo] {
        OPTIONS
    }

    fn can_measure(&self) -> bool {
        true
    }

    fn run(&self, request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
        let case = request.value(&CASE, |text| match text {
            "jobs" | "kernel" => Ok(text.to_owned()),
            _ => Err("neither 'jobs' nor 'kernel'".to_owned()),
        })?;
        match case.as_str() {
            "jobs" => jobs::run(request, watch),
            _ => kernel::run(request, watch),
        }
    }
}
