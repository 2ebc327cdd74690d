//! The options of a race.
//!
//! Owns: the command line, the meaning of quick.
//! Does not own: the cases.
//! Invariants: unknown words end the program with its usage.

use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str = "usage: afflux-race [--quick] [--rounds N] [--half memory|fio|redb] [--engine FILE] [--dir DIR] \
                     [--artifacts DIR] [--only PART]";

/// A part of the race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Half {
    /// In this process.
    Memory,
    Fio,
    /// In redb.
    Redb,
}

/// The extent of a race.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The directory of files, on the file system under test.
    pub(crate) directory: PathBuf,
    /// The directory of rows and page.
    pub(crate) artifacts: PathBuf,
    pub(crate) quick: bool,
    /// Only this part.
    pub(crate) half: Option<Half>,
    /// Afflux's engine for fio.
    pub(crate) engine: Option<PathBuf>,
    pub(crate) rounds: usize,
    /// Rounds in fio and redb, where runs are longer.
    pub(crate) fio_rounds: usize,
    /// The time of a run of one contender.
    pub(crate) run: Duration,
    /// Only cases whose names contain this.
    pub(crate) only: Option<String>,
}

impl Options {
    pub(crate) fn of(words: &[String]) -> Result<Self, String> {
        let (mut quick, mut rounds, mut only, mut half, mut engine) = (false, None, None, None, None);
        let (mut directory, mut artifacts) = (PathBuf::from("target/race-files"), PathBuf::from("target/race"));
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| USAGE.to_owned());
            match word.as_str() {
                "--quick" => quick = true,
                "--rounds" => rounds = Some(value()?.parse().map_err(|_| USAGE.to_owned())?),
                "--dir" => directory = value()?.into(),
                "--artifacts" => artifacts = value()?.into(),
                "--engine" => engine = Some(value()?.into()),
                "--half" => {
                    half = match value()?.as_str() {
                        "memory" => Some(Half::Memory),
                        "fio" => Some(Half::Fio),
                        "redb" => Some(Half::Redb),
                        _ => return Err(USAGE.to_owned()),
                    }
                }
                "--only" => only = Some(value()?),
                _ => return Err(USAGE.to_owned()),
            }
        }
        let (usual, of_fio, run) = if quick { (3, 1, 8) } else { (9, 3, 50) };
        let fio_rounds = rounds.unwrap_or(of_fio);
        let rounds = rounds.unwrap_or(usual);
        if rounds == 0 {
            return Err(format!("0 rounds say nothing; {USAGE}"));
        }
        let run = Duration::from_millis(run);
        Ok(Self { directory, artifacts, quick, half, engine, rounds, fio_rounds, run, only })
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
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }
}
