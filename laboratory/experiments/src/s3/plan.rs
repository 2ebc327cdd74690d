//! The options of s3, read and checked.
//!
//! Owns: the options with their ranges and defaults, the part of each file to read, the forms of a quick run.
//! Does not own: the runs.
//! Invariants: a plan that was read can be run.

use afflux_kernels::mm::{FORMS, Form, form};

use super::published::{CPUS, FILE_BYTES, READERS, START_S};
use super::run::{Load, Order, Start};
use crate::experiment::{LabError, Request};
use crate::options::{named, options};

/// The forms of a quick run, and the part of each file that it reads: long enough that memory is full for nine tenths
/// of it.
const QUICK: &str = "base,wmark-min,wmark-high,time-limit-100ms,afflux";
const QUICK_PART: u64 = 32;
/// The name of the engine's own reclaim.
pub(super) const OWN: &str = "afflux";

options! {
    pub(super) OPTIONS {
        /// tasks that read a file each, from end to end
        READERS_OPTION: u64 = number("readers", "N", "1000", 1..=10_000);
        /// bytes of each file, all of it a hole
        FILE_SIZE: u64 = size("file-size", "SIZE", "1GiB", 1 << 20..=1 << 40);
        /// memory of the machine
        MEMORY: u64 = size("memory", "SIZE", "3GiB", 64 << 20..=64 << 30);
        /// CPUs of the machine
        CPUS_OPTION: u64 = number("cpus", "N", "8", 1..=32);
        /// forms of reclaim by name, afflux, all of these
        VARIANTS: Variant = parsed("variants", "LIST", "all", Variant::read);
        /// read all of each file [an eighth, and counts are scaled]
        FULL: bool = switch("full", "", "no");
        /// how far the free count of each CPU may lag [by the kernel's formula]
        DRIFT: u64 = number("drift", "FRAMES", "", 0..=125);
        /// shell: the seed's script, in its turns; evenly: over the published share of the time; one-task: one reads
        /// all files in turn [shell with --full, else evenly]
        START: StartOption = choice("start", "HOW", "");
        /// the next task on a CPU: the task with the least CPU time, as in the kernel; the one that waits longest
        SCHEDULER: Scheduler = choice("scheduler", "fair|queue", "fair");
        /// controls: background tasks that get a CPU before all others: afflux, kswapd, none
        AHEAD: Ahead = choice("ahead", "LIST", "afflux");
        /// pages that stay dirty for the whole run, so that no scan can free them: in an even mix with clean ones, in
        /// memory that is full from the start
        DIRTY: u64 = number("dirty", "PERCENT", "0", 0..=HELD_PERCENT_MAX);
        /// the same of pages that a process has mapped and uses all the time
        MAPPED: u64 = number("mapped", "PERCENT", "0", 0..=HELD_PERCENT_MAX);
    }
}

/// Most pages that no scan can free, dirty and mapped together.
const HELD_PERCENT_MAX: u64 = 80;

named! {
    enum StartOption {
        Shell = "shell",
        Evenly = "evenly",
        OneTask = "one-task",
    }
}

named! {
    enum Scheduler {
        Fair = "fair",
        Queue = "queue",
    }
}

named! {
    /// A background task that goes ahead of all others.
    enum Ahead {
        Afflux = "afflux",
        Kswapd = "kswapd",
        Nobody = "none",
    }
}

/// The reclaim of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    All,
    Kernel(Form),
    Own,
}

impl Variant {
    fn read(name: &str) -> Result<Self, String> {
        match name {
            "all" => Ok(Self::All),
            OWN => Ok(Self::Own),
            _ => form(name).map(Self::Kernel).map_err(|error| format!("{error}, {OWN}, and all")),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Kernel(form) => form.name,
            Self::Own => OWN,
        }
    }
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The requested load, with whole files.
    pub(super) load: Load,
    /// A run reads one `part`-th of each file; the start is shortened by the same factor.
    pub(super) part: u64,
    pub(super) variants: Vec<Variant>,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let (readers, cpus) = (READERS_OPTION.value(request)?, CPUS_OPTION.value(request)?);
        let file_bytes = FILE_SIZE.value(request)? / 4096 * 4096;
        let full = FULL.value(request)?;
        let variants = VARIANTS.list_or_quick(request, QUICK)?.into_iter().flat_map(|variant| match variant {
            Variant::All => FORMS.map(Variant::Kernel).into_iter().chain([Variant::Own]).collect(),
            one => vec![one],
        });
        let ahead = AHEAD.list(request)?;
        let load = Load {
            seed: 1,
            readers: readers as usize,
            file_bytes,
            memory_bytes: MEMORY.value(request)?,
            cpus: cpus as usize,
            start: start(request, full, start_ns(readers, file_bytes, cpus))?,
            order: Order {
                is_fair: SCHEDULER.value(request)? == Scheduler::Fair,
                kswapd_ahead: ahead.contains(&Ahead::Kswapd),
                afflux_ahead: ahead.contains(&Ahead::Afflux),
            },
            drift_frames: DRIFT.value_if_given(request)?.map(|frames| frames as u32),
            dirty_percent: DIRTY.value(request)?,
            mapped_percent: MAPPED.value(request)?,
        };
        if load.dirty_percent + load.mapped_percent > HELD_PERCENT_MAX {
            let why = format!("with --dirty {} that is more than {HELD_PERCENT_MAX} percent", load.dirty_percent);
            return Err(MAPPED.refused(request, why));
        }
        let part = match (full, request.quick) {
            (true, _) => 1,
            (false, false) => 8,
            (false, true) => QUICK_PART,
        };
        Ok(Self { load, part, variants: variants.collect() })
    }

    /// The load of the runs: a part of each file.
    pub(super) fn scaled(&self) -> Load {
        let file_bytes = (self.load.file_bytes / self.part / 4096).max(1) * 4096;
        let start = match self.load.start {
            Start::Evenly(ns) => Start::Evenly(ns / self.part),
            other => other,
        };
        Load { file_bytes, start, ..self.load }
    }
}

/// A shell takes as long for a part of the files as for all, so only whole files can have one.
fn start(request: &Request, is_full: bool, evenly_ns: u64) -> Result<Start, LabError> {
    match START.value_if_given(request)? {
        Some(StartOption::OneTask) => Ok(Start::OneTask),
        Some(StartOption::Shell) if !is_full => {
            Err(START
                .refused(request, "a shell takes as long for a part of the files as for all: give --full".to_owned()))
        }
        Some(StartOption::Shell) => Ok(Start::Shell),
        None if is_full => Ok(Start::Shell),
        Some(StartOption::Evenly) | None => Ok(Start::Evenly(evenly_ns)),
    }
}

/// The start takes longer on a machine that reads longer: it has the published share of the whole time.
fn start_ns(readers: u64, file_bytes: u64, cpus: u64) -> u64 {
    let work = u128::from(readers) * u128::from(file_bytes) * CPUS as u128;
    let of = READERS as u128 * u128::from(FILE_BYTES) * u128::from(cpus);
    (u128::from(START_S) * 1_000_000_000 * work / of).min(u64::MAX.into()) as u64
}
