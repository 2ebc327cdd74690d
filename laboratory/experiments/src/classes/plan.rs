//! The plan: loads, media, methods of writing and classes of writers.
//!
//! Owns: the options and their ranges, the short form, the expected time.
//! Does not own: the runs.
//! Invariants: an unusable value is refused before anything is set up.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::contenders::engine_options::{EngineOptions, RunOptions};
use crate::contenders::{EngineSetup, KernelMethod};
use crate::experiment::{LabError, Request};
use crate::options::{List, list, named, size};

/// Files that are written at the same time in the third load.
const FILES: u64 = 32;

/// The load: how many writers there are, and in which classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Load {
    One,
    Four,
    Files,
    Competing,
}

/// Where the files are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum FileMedium {
    Disk,
    Memory,
}

impl Load {
    /// The runs of this load: for each, its classes of writers.
    pub(super) fn classes(self, methods: &[Method]) -> Vec<Vec<Class>> {
        let alone = |writers: u64| methods.iter().map(|method| vec![Class { method: *method, writers }]).collect();
        match self {
            Self::One => alone(1),
            Self::Four => alone(4),
            Self::Files => alone(FILES),
            Self::Competing => {
                let one = |method: Method| Class { method, writers: 1 };
                let ordinary = Method::Kernel(KernelMethod::Buffered);
                let beside = methods.iter().map(|method| vec![one(ordinary), one(*method)]);
                let ours = methods.iter().filter(|method| matches!(method, Method::Ours(_)));
                beside.chain(ours.map(|method| vec![one(*method), one(*method)])).collect()
            }
        }
    }
}

impl FileMedium {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Disk => "the real disk",
            Self::Memory => "a loop device in memory",
        }
    }
}

/// The method of writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Kernel(KernelMethod),
    /// The engine, with the policy at this index of the plan's list.
    Ours(usize),
}

/// Writers with the same method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Class {
    pub(super) method: Method,
    pub(super) writers: u64,
}

/// The plan of an experiment.
#[derive(Debug, clap::Args)]
pub(super) struct Plan {
    /// which loads
    #[arg(long, value_name = "LIST", default_value = "one,four,files,competing", value_parser = list(named::<Load>))]
    pub(super) loads: List<Load>,
    /// disk: --directory; memory: a loop device over a tmpfs (root)
    #[arg(long = "places", value_name = "LIST", default_value = "disk,memory", value_parser = list(named::<FileMedium>))]
    pub(super) media: List<FileMedium>,
    /// bytes that all writers of a run write together
    #[arg(id = "size", long, value_name = "SIZE", default_value = "2GB", value_parser = size(4 << 20..=100_000_000_000))]
    pub(super) bytes: u64,
    /// a write, in whole pages
    #[arg(id = "block", long, value_name = "SIZE", default_value = "64KiB", value_parser = size(4096..=4 << 20))]
    pub(super) block_bytes: u64,
    #[command(flatten)]
    pub(super) engine: EngineOptions,
    #[command(flatten)]
    pub(super) run: RunOptions,
    #[arg(skip)]
    pub(super) engines: Vec<EngineSetup>,
    #[arg(skip)]
    pub(super) directory: PathBuf,
    /// The kernel's release, as `6.18.44`.
    #[arg(skip = rustix::system::uname().release().to_string_lossy())]
    pub(super) release: String,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let mut plan: Self = request.read()?;
        request.shorten("size", &mut plan.bytes, 16 << 20);
        if !plan.block_bytes.is_multiple_of(4096) {
            return Err(request.refused("block", "not a multiple of 4 KiB, which O_DIRECT needs".to_owned()));
        }
        if plan.bytes < FILES * plan.block_bytes {
            let least = afflux_report::units::memory(FILES * plan.block_bytes);
            let why = format!("less than a write to each of {FILES} files, which is {least}");
            return Err(request.refused("size", why));
        }
        Ok(Self { engines: plan.engine.engines(request)?, directory: plan.run.directory(request)?, ..plan })
    }

    pub(super) fn method_name(&self, method: Method) -> String {
        match method {
            Method::Kernel(KernelMethod::Buffered) => "buffered".to_owned(),
            Method::Kernel(KernelMethod::DontCache) => "DONTCACHE".to_owned(),
            Method::Kernel(KernelMethod::Direct) => "O_DIRECT".to_owned(),
            Method::Ours(at) => self.engines[at].name(),
        }
    }

    /// The size of the disk in memory: space for two writers of `bytes` each, and for the file system.
    pub(super) fn memory_disk_bytes(&self) -> u64 {
        (2 * self.bytes / 10 * 11 + (64 << 20)).next_multiple_of(1 << 20)
    }

    /// Rough estimate of the time for everything, in seconds: at 500 MB/s, and a second to make and warm each
    /// contender.
    pub(super) fn expected_s(&self) -> u64 {
        let runs = self.loads.len() as u64 * self.media.len() as u64 * (3 + self.engines.len() as u64);
        self.run.repeats * runs * (1 + self.bytes / 500_000_000)
    }
}

#[cfg(test)]
mod tests;
