//! The plan: loads, media, methods of writing and classes of writers.
//!
//! Owns: the options and their ranges, the short form, the expected time.
//! Does not own: the runs.
//! Invariants: an unusable value is refused before anything is set up.

use std::path::PathBuf;

use crate::contenders::engine_options::{DIRECTORY, KNOBS, MEMORY, POLICY, directory, engines};
use crate::contenders::{EngineSetup, KernelMethod};
use crate::experiment::{LabError, Request};
use crate::options::{named, options, values};

/// Files that are written at the same time in the third load.
const FILES: u64 = 32;

named! {
    /// The load: how many writers there are, and in which classes.
    pub(super) enum Load {
        One = "one",
        Four = "four",
        Files = "files",
        Competing = "competing",
    }
}

named! {
    /// Where the files are.
    pub(super) enum FileMedium {
        Disk = "disk",
        Memory = "memory",
    }
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

options! {
    pub(super) OPTIONS [POLICY, KNOBS, MEMORY, DIRECTORY] {
        /// which loads
        LOADS: Load = choice("loads", "LIST", "one,four,files,competing");
        /// disk: --directory; memory: a loop device over a tmpfs (root)
        PLACES: FileMedium = choice("places", "LIST", "disk,memory");
        /// bytes that all writers of a run write together
        SIZE: u64 = size("size", "SIZE", "2GB", 4 << 20..=100_000_000_000);
        /// a write, in whole pages
        BLOCK: u64 = size("block", "SIZE", "64KiB", 4096..=4 << 20);
        /// how often each is run
        REPEATS: u64 = number("repeats", "N", "3", 1..=20);
    }
}

values! {
    /// The plan of an experiment.
    #[derive(Debug)]
    pub(super) struct Plan = unchecked(request) {
        pub(super) loads: Vec<Load> = LOADS.list(request)?,
        pub(super) media: Vec<FileMedium> = PLACES.list(request)?,
        pub(super) memory_bytes: u64 = MEMORY.value_or_quick(request, 64 << 20)?,
        pub(super) engines: Vec<EngineSetup> = engines(request, memory_bytes)?,
        pub(super) bytes: u64 = SIZE.value_or_quick(request, 16 << 20)?,
        pub(super) block_bytes: u64 = BLOCK.value(request)?,
        pub(super) repeats: u64 = REPEATS.value_or_quick(request, 1)?,
        pub(super) directory: PathBuf = directory(request)?,
        /// The kernel's release, as `6.18.44`.
        pub(super) release: String = rustix::system::uname().release().to_string_lossy().into_owned(),
    }
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let plan = Self::unchecked(request)?;
        if !plan.block_bytes.is_multiple_of(4096) {
            return Err(BLOCK.refused(request, "not a multiple of 4 KiB, which O_DIRECT needs".to_owned()));
        }
        if plan.bytes < FILES * plan.block_bytes {
            let least = afflux_report::units::memory(FILES * plan.block_bytes);
            return Err(SIZE.refused(request, format!("less than a write to each of {FILES} files, which is {least}")));
        }
        Ok(plan)
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
        self.repeats * runs * (1 + self.bytes / 500_000_000)
    }
}

#[cfg(test)]
mod tests;
