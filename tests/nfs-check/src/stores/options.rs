//! The wishes of a comparison's user.
//!
//! Owns: its options and their usual values, the sizes and counts of its loads.
//! Does not own: the loads (`loads`, `raw`).
//! Invariants: a quick run has each load of a whole one.

use std::path::PathBuf;
use std::time::Duration;

use afflux_rig::words::{Races, RacesCmd};

use crate::failure::Failure;

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// A directory for all files, which is there.
    pub directory: PathBuf,
    /// The `afflux` program, with its feature `object`.
    pub afflux: PathBuf,
    /// The program that mounts a server, for tar.
    pub bridge: PathBuf,
    /// The delay of each answer.
    pub delay: Duration,
    /// The bandwidth of the network to the store, in each direction; 0 is no bound.
    pub bandwidth_bytes_per_s: u64,
    /// The time for all rounds.
    pub time: Duration,
    /// The number of rounds.
    pub rounds: usize,
    /// A short run as a smoke test, whose speeds mean nothing.
    pub quick: bool,
    /// Only participants with these names; all if empty.
    pub only: Vec<String>,
}

impl Options {
    /// Those that the words ask for.
    pub fn of([directory, afflux, bridge]: [PathBuf; 3], words: &Races) -> Result<Self, Failure> {
        let RacesCmd::RaceStores(own) = &words.subcommand else {
            return Err(Failure::Server("the words are for another race".to_owned()));
        };
        Ok(Self {
            directory,
            afflux,
            bridge,
            delay: Duration::from_millis(own.delay_ms.map_or(30, |ms| ms.0)),
            bandwidth_bytes_per_s: own.network_mbit_per_s.map_or(0, |mbit| mbit.0.saturating_mul(1_000_000 / 8)),
            time: Duration::from_secs(own.minutes.map_or(7, |minutes| minutes.0).saturating_mul(60)),
            rounds: words.rounds_or(3),
            quick: words.quick,
            only: words.only.clone(),
        })
    }
}

/// Sizes and counts.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) warm_bytes: u64,
    pub(super) stream_bytes: u64,
    pub(super) commits: usize,
    pub(super) clients: usize,
    pub(super) steady: Duration,
    pub(super) small_files: usize,
    /// The same of mounts, each of which takes them many round trips.
    pub(super) small_files_of_mounts: usize,
    /// The time in which a server's work for its opening ends.
    pub(super) settled: Duration,
    pub(super) idle: Duration,
    pub(super) tree_files: u64,
    /// Log objects before the kill.
    pub(super) logs: usize,
}

impl Scale {
    pub(super) fn new(quick: bool) -> Self {
        let full = Self {
            warm_bytes: 256 << 20,
            stream_bytes: 1 << 30,
            commits: 40,
            clients: 32,
            steady: Duration::from_secs(3),
            small_files: 1_000,
            small_files_of_mounts: 64,
            settled: Duration::from_secs(80),
            idle: Duration::from_secs(60),
            tree_files: 50,
            logs: 250,
        };
        let short = Self {
            // With less, the count of PUTs is that of the first seconds, in which a server tries the store.
            stream_bytes: 256 << 20,
            commits: 5,
            steady: Duration::from_millis(500),
            small_files_of_mounts: 32,
            settled: Duration::from_secs(20),
            idle: Duration::from_secs(12),
            tree_files: 20,
            logs: 20,
            ..full
        };
        if quick { short } else { full }
    }
}
