//! The words of `cargo xtask mounted`.
//!
//! Owns: their meaning, and the combinations that make no sense.
//! Does not own: the names of programs.
//! Invariants: a word that a run would not obey is refused.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub(super) const USAGE: &str = "usage: cargo xtask mounted [--fuse] [--store file|radosgw [--kill-every SECONDS]] \
                                [--operations N] [--seeds N] [--first-seed N] [--minutes N] [--dir DIR] [--built DIR] \
                                [--profile NAME] [--keep] [NAME...]\n   \
                                or: cargo xtask mounted --xfstests DIR [--dir DIR] [--built DIR] [--profile NAME] \
                                [--keep] [NAME...]";
/// Seconds of a load whose length is free.
const SECONDS: u64 = 20;

/// The mount that programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Our NFS server behind a FUSE bridge.
    Bridge,
    /// `afflux mount`.
    Fuse,
}

impl Way {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Fuse => "fuse",
        }
    }
}

/// The place of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Directory,
    /// A volume in a store that is a directory.
    FileStore,
    /// A volume in a Ceph. Its gateway is killed and started again at this interval.
    Radosgw(Option<Duration>),
}

impl Place {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::FileStore | Self::Radosgw(_) => "store",
        }
    }
}

#[derive(Debug)]
pub(super) struct MountedOptions<'a> {
    pub(super) way: Way,
    pub(super) place: Place,
    /// Operations of fsx by each seed.
    pub(super) operations: u64,
    /// Seeds of fsx.
    pub(super) seeds: u64,
    pub(super) first_seed: u64,
    /// How long a load lasts whose length is free.
    pub(super) lasts: Duration,
    /// The parent of the directory with all files; none: cargo's own.
    pub(super) directory: Option<PathBuf>,
    /// The directory with the programs; none: they are built.
    pub(super) built: Option<PathBuf>,
    /// A built xfstests, which runs instead of all programs. The names are those of its tests.
    pub(super) xfstests: Option<PathBuf>,
    pub(super) profile: &'a str,
    /// The files stay after the run.
    pub(super) keep: bool,
    /// The wanted programs; none means all.
    pub(super) names: Vec<&'a str>,
}

impl<'a> MountedOptions<'a> {
    pub(super) fn parse(words: &[&'a str]) -> Result<Self> {
        let (way, place) = (Way::Bridge, Place::Directory);
        let mut options = Self {
            way,
            place,
            operations: 20_000,
            seeds: 1,
            first_seed: 1,
            lasts: Duration::from_secs(SECONDS),
            directory: None,
            built: None,
            xfstests: None,
            profile: "demo",
            keep: false,
            names: Vec::new(),
        };
        let mut kill_every = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().context(USAGE);
            match *word {
                "--profile" => options.profile = value()?,
                "--keep" => options.keep = true,
                "--fuse" => options.way = Way::Fuse,
                "--store" => options.place = store(value()?)?,
                "--operations" => options.operations = at_least_one(value()?)?,
                "--seeds" => options.seeds = at_least_one(value()?)?,
                "--first-seed" => options.first_seed = at_least_one(value()?)?,
                "--minutes" => options.lasts = Duration::from_secs(60 * at_least_one(value()?)?),
                "--dir" => options.directory = Some(value()?.into()),
                "--built" => options.built = Some(value()?.into()),
                "--xfstests" => {
                    options.way = Way::Fuse;
                    options.xfstests = Some(value()?.into());
                }
                "--kill-every" => kill_every = Some(Duration::from_secs(at_least_one(value()?)?)),
                unknown if unknown.starts_with('-') => bail!("{USAGE}"),
                name => options.names.push(name),
            }
        }
        match (&mut options.place, kill_every) {
            (Place::Radosgw(of_place), every) => *of_place = every,
            (_, Some(_)) => bail!("only a gateway can be killed: --kill-every goes with --store radosgw"),
            (_, None) => {}
        }
        Ok(options)
    }
}

fn store(word: &str) -> Result<Place> {
    match word {
        "file" => Ok(Place::FileStore),
        "radosgw" => Ok(Place::Radosgw(None)),
        _ => bail!("{USAGE}"),
    }
}

fn at_least_one(word: &str) -> Result<u64> {
    word.parse().ok().filter(|number| *number > 0).context(USAGE)
}

#[cfg(test)]
mod tests;
