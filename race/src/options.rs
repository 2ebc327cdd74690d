//! What is wanted.
//!
//! Owns: the words of the command line, what quick means.
//! Does not own: what is raced.
//! Invariants: words that are not understood end the program with its usage.

use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str = "usage: afflux-race [--quick] [--rounds N] [--dir DIR] [--artifacts DIR] [--only PART]";

/// How much is done.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Where files are made, on the file system that is raced on.
    pub(crate) directory: PathBuf,
    /// Where rows and page are left.
    pub(crate) artifacts: PathBuf,
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    /// How long a run of one contender takes.
    pub(crate) run: Duration,
    /// Cases whose name has this in it alone.
    pub(crate) only: Option<String>,
}

impl Options {
    pub(crate) fn of(words: &[String]) -> Result<Self, String> {
        let (mut quick, mut rounds, mut only) = (false, None, None);
        let (mut directory, mut artifacts) = (PathBuf::from("race-files"), PathBuf::from("."));
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| USAGE.to_owned());
            match word.as_str() {
                "--quick" => quick = true,
                "--rounds" => rounds = Some(value()?.parse().map_err(|_| USAGE.to_owned())?),
                "--dir" => directory = value()?.into(),
                "--artifacts" => artifacts = value()?.into(),
                "--only" => only = Some(value()?),
                _ => return Err(USAGE.to_owned()),
            }
        }
        let (usual, run) = if quick { (3, 8) } else { (9, 50) };
        let rounds = rounds.unwrap_or(usual);
        if rounds == 0 {
            return Err(format!("0 rounds say nothing; {USAGE}"));
        }
        Ok(Self { directory, artifacts, quick, rounds, run: Duration::from_millis(run), only })
    }

    /// Whether a case of this name is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }
}
