//! The extent of a race.
//!
//! Owns: the meaning of quick, the usual rounds.
//! Does not own: the words (`afflux_rig::words`), the cases.
//! Invariants: none.

use std::path::PathBuf;
use std::time::Duration;

use afflux_rig::words::{Half, Races, RacesCmd};

/// The extent of a race.
#[derive(Debug)]
pub(crate) struct Options {
    /// The directory of files, on the file system under test.
    pub(crate) directory: PathBuf,
    /// The directory of rows and page.
    pub(crate) artifacts: PathBuf,
    /// Afflux's engine for fio, which may be absent.
    pub(crate) engine: PathBuf,
    pub(crate) quick: bool,
    /// Only this part.
    pub(crate) half: Option<Half>,
    pub(crate) rounds: usize,
    /// Rounds in fio and redb, where runs are longer.
    pub(crate) fio_rounds: usize,
    /// The time of a run of one contender.
    pub(crate) run: Duration,
    words: Races,
}

impl Options {
    pub(crate) fn new([directory, artifacts, engine]: [PathBuf; 3], words: Races) -> Self {
        let half = match &words.subcommand {
            RacesCmd::Race(race) => race.half,
            _ => None,
        };
        let run = Duration::from_millis(if words.quick { 8 } else { 50 });
        let (rounds, fio_rounds) = (words.rounds_or(9), words.rounds_or(3));
        Self { directory, artifacts, engine, quick: words.quick, half, rounds, fio_rounds, run, words }
    }

    /// Its approximate time, on a machine that does nothing else.
    pub(crate) fn time(&self) -> String {
        let (memory, fio) = if self.quick { (20, 60) } else { (150 + 20 * self.rounds, 60 + 180 * self.fio_rounds) };
        let redb = if self.quick { 20 } else { 60 + 120 * self.fio_rounds };
        let seconds = match self.half {
            None => memory + fio + redb,
            Some(Half::Redb) => redb,
            Some(Half::Memory) => memory,
            Some(Half::Fio) => fio,
        };
        format!("all of it takes about {} minutes", seconds.div_ceil(60))
    }

    /// Whether a case of this name is requested.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.words.is_wanted(name)
    }
}
