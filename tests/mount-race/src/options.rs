//! The options of a race.
//!
//! Owns: the command line, the meaning of quick.
//! Does not own: the cases.
//! Invariants: unknown words end the program with its usage.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: mount-race --dir DIR --afflux PROGRAM [--quick] [--rounds N] [--only WORDS]... [--all-cpus] \
                     [--bridge PROGRAM] [--passthrough-ll PROGRAM] [--passthrough-hp PROGRAM]";

/// The extent of a race, and its programs.
#[derive(Debug)]
pub(crate) struct Options {
    /// An empty directory on the file system under test.
    pub(crate) directory: PathBuf,
    pub(crate) afflux: PathBuf,
    /// The program that mounts our NFS server.
    pub(crate) bridge: Option<PathBuf>,
    pub(crate) passthrough_ll: Option<PathBuf>,
    pub(crate) passthrough_hp: Option<PathBuf>,
    pub(crate) quick: bool,
    /// The CPU of callers and servers; none: all CPUs.
    pub(crate) cpu: Option<usize>,
    pub(crate) rounds: Option<usize>,
    only: Vec<String>,
}

impl Options {
    pub(crate) fn of(words: &[String]) -> Result<Self> {
        let last = std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
        let mut options = Self {
            directory: PathBuf::new(),
            afflux: PathBuf::new(),
            bridge: None,
            passthrough_ll: None,
            passthrough_hp: None,
            quick: false,
            cpu: Some(last),
            rounds: None,
            only: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().context(USAGE);
            match word.as_str() {
                "--quick" => options.quick = true,
                "--all-cpus" => options.cpu = None,
                "--rounds" => options.rounds = Some(value()?.parse().context(USAGE)?),
                "--only" => options.only.push(value()?),
                "--dir" => options.directory = value()?.into(),
                "--afflux" => options.afflux = value()?.into(),
                "--bridge" => options.bridge = Some(value()?.into()),
                "--passthrough-ll" => options.passthrough_ll = Some(value()?.into()),
                "--passthrough-hp" => options.passthrough_hp = Some(value()?.into()),
                _ => bail!(USAGE),
            }
        }
        if options.afflux.as_os_str().is_empty() || options.directory.as_os_str().is_empty() {
            bail!(USAGE);
        }
        if options.rounds == Some(0) {
            bail!("0 rounds say nothing; {USAGE}");
        }
        Ok(options)
    }

    /// Whether a case of this name is requested.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|words| name.contains(words.as_str()))
    }
}

#[cfg(test)]
mod tests;
