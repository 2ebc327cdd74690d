//! The extent of a race, and its programs.
//!
//! Owns: the choice of a CPU.
//! Does not own: the words (`afflux_rig::words`), the cases.
//! Invariants: none.

use std::path::PathBuf;

use afflux_rig::words::{Races, RacesCmd};

/// The extent of a race, and its programs. The program of a peer may be absent.
#[derive(Debug)]
pub(crate) struct Options {
    /// An empty directory on the file system under test.
    pub(crate) directory: PathBuf,
    pub(crate) afflux: PathBuf,
    /// The program that mounts our NFS server.
    pub(crate) bridge: PathBuf,
    pub(crate) passthrough_ll: PathBuf,
    pub(crate) passthrough_hp: PathBuf,
    pub(crate) words: Races,
}

impl Options {
    pub(crate) fn new(places: [PathBuf; 5], words: Races) -> Self {
        let [directory, afflux, bridge, passthrough_ll, passthrough_hp] = places;
        Self { directory, afflux, bridge, passthrough_ll, passthrough_hp, words }
    }

    /// The CPU of callers and servers; none: all CPUs.
    pub(crate) fn cpu(&self) -> Option<usize> {
        let has_all = matches!(&self.words.subcommand, RacesCmd::RaceMount(mount) if mount.all_cpus);
        let last = || std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
        (!has_all).then(last)
    }
}
