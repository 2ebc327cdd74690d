//! The options of s3, read and checked.
//!
//! Owns: the options with their ranges and defaults, the part of each file to read, the forms of a quick run.
//! Does not own: the runs.
//! Invariants: a plan that was read can be run.

use afflux_kernels::mm::{FORMS, Form, form};

use clap::ValueEnum;

use super::published::{CPUS, FILE_BYTES, READERS, START_S};
use super::run::{Load, Order, Start};
use crate::experiment::{LabError, Request};
use crate::options::{List, list, named, number, size};

/// The forms of a quick run, and the part of each file that it reads: long enough that memory is full for nine tenths
/// of it.
const QUICK: &str = "base,wmark-min,wmark-high,time-limit-100ms,afflux";
const QUICK_PART: u64 = 32;
/// The name of the engine's own reclaim.
pub(super) const OWN: &str = "afflux";

/// What a request says.
#[derive(clap::Args)]
pub(super) struct LoadOptions {
    /// tasks that read a file each, from end to end
    #[arg(long, value_name = "N", default_value = "1000", value_parser = number(1..=10_000))]
    readers: u64,
    /// bytes of each file, all of it a hole
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size(1 << 20..=1 << 40))]
    file_size: u64,
    /// memory of the machine
    #[arg(long, value_name = "SIZE", default_value = "3GiB", value_parser = size(64 << 20..=64 << 30))]
    memory: u64,
    /// CPUs of the machine
    #[arg(long, value_name = "N", default_value = "8", value_parser = number(1..=32))]
    cpus: u64,
    /// forms of reclaim by name, afflux, all of these
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = list(Variant::read))]
    variants: List<Variant>,
    /// read all of each file [an eighth, and counts are scaled]
    #[arg(long)]
    full: bool,
    /// how far the free count of each CPU may lag [by the kernel's formula]
    #[arg(long, value_name = "FRAMES", value_parser = number(0..=125))]
    drift: Option<u64>,
    /// shell: the seed's script, in its turns; evenly: over the published share of the time; one-task: one reads
    /// all files in turn [shell with --full, else evenly]
    #[arg(long, value_name = "HOW", value_parser = named::<StartOption>)]
    start: Option<StartOption>,
    /// the next task on a CPU: the task with the least CPU time, as in the kernel; the one that waits longest
    #[arg(long, value_name = "fair|queue", default_value = "fair", value_parser = named::<Scheduler>)]
    scheduler: Scheduler,
    /// controls: background tasks that get a CPU before all others: afflux, kswapd, none
    #[arg(long, value_name = "LIST", default_value = "afflux", value_parser = list(named::<Ahead>))]
    ahead: List<Ahead>,
    /// pages that stay dirty for the whole run, so that no scan can free them: in an even mix with clean ones, in
    /// memory that is full from the start
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = number(0..=HELD_PERCENT_MAX))]
    dirty: u64,
    /// the same of pages that a process has mapped and uses all the time
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = number(0..=HELD_PERCENT_MAX))]
    mapped: u64,
}

/// Most pages that no scan can free, dirty and mapped together.
const HELD_PERCENT_MAX: u64 = 80;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum StartOption {
    Shell,
    Evenly,
    OneTask,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Scheduler {
    Fair,
    Queue,
}

/// A background task that goes ahead of all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Ahead {
    Afflux,
    Kswapd,
    #[value(name = "none")]
    Nobody,
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
        let mut asked: LoadOptions = request.read()?;
        request.shorten("variants", &mut asked.variants, list(Variant::read)(QUICK).map_err(LabError::Failed)?);
        let variants = asked.variants.iter().flat_map(|variant| match variant {
            Variant::All => FORMS.map(Variant::Kernel).into_iter().chain([Variant::Own]).collect(),
            one => vec![*one],
        });
        if asked.dirty + asked.mapped > HELD_PERCENT_MAX {
            let why = format!("with --dirty {} that is more than {HELD_PERCENT_MAX} percent", asked.dirty);
            return Err(request.refused("mapped", why));
        }
        let file_bytes = asked.file_size / 4096 * 4096;
        let load = Load {
            seed: 1,
            readers: asked.readers as usize,
            file_bytes,
            memory_bytes: asked.memory,
            cpus: asked.cpus as usize,
            start: start(request, &asked, start_ns(asked.readers, file_bytes, asked.cpus))?,
            order: Order {
                is_fair: asked.scheduler == Scheduler::Fair,
                kswapd_ahead: asked.ahead.contains(&Ahead::Kswapd),
                afflux_ahead: asked.ahead.contains(&Ahead::Afflux),
            },
            drift_frames: asked.drift.map(|frames| frames as u32),
            dirty_percent: asked.dirty,
            mapped_percent: asked.mapped,
        };
        let part = match (asked.full, request.quick) {
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
fn start(request: &Request, asked: &LoadOptions, evenly_ns: u64) -> Result<Start, LabError> {
    match asked.start {
        Some(StartOption::OneTask) => Ok(Start::OneTask),
        Some(StartOption::Shell) if !asked.full => {
            let why = "a shell takes as long for a part of the files as for all: give --full";
            Err(request.refused("start", why.to_owned()))
        }
        Some(StartOption::Shell) => Ok(Start::Shell),
        None if asked.full => Ok(Start::Shell),
        Some(StartOption::Evenly) | None => Ok(Start::Evenly(evenly_ns)),
    }
}

/// The start takes longer on a machine that reads longer: it has the published share of the whole time.
fn start_ns(readers: u64, file_bytes: u64, cpus: u64) -> u64 {
    let work = u128::from(readers) * u128::from(file_bytes) * CPUS as u128;
    let of = READERS as u128 * u128::from(FILE_BYTES) * u128::from(cpus);
    (u128::from(START_S) * 1_000_000_000 * work / of).min(u64::MAX.into()) as u64
}
