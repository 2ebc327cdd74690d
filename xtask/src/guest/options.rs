//! The words of `cargo xtask guest`, and the lists of cases.
//!
//! Owns: their meaning; the parts of a case's name.
//! Does not own: the cases (`tests/guest/cases`).
//! Invariants: a case that is not there is refused before a guest starts.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::repository;

pub(super) const USAGE: &str = "usage: cargo xtask guest [--quick] [--list] [--suite NAME] [--deb FILE | --built DIR] \
                                [--xfstests DIR] [--profile NAME] [--cpus N] [--memory MIB] [--rebuild] [--debian] [--json] [CASE...]";

/// The time of a case that names none.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct GuestOptions<'a> {
    /// Debian's name of the release.
    pub(super) suite: &'a str,
    /// A package that is there already.
    pub(super) deb: Option<&'a str>,
    /// A folder of programs that are there already, for a package of them.
    pub(super) built: Option<&'a str>,
    /// A built xfstests; without it the cases that run it are left out.
    pub(super) xfstests: Option<&'a str>,
    pub(super) profile: &'a str,
    pub(super) cpus: u64,
    pub(super) memory_mib: u64,
    /// The Debian is made anew.
    pub(super) rebuild: bool,
    /// No case is wanted, only the Debian.
    pub(super) only_debian: bool,
    pub(super) json: bool,
    /// Only the names of cases are wanted.
    pub(super) list: bool,
    pub(super) cases: Vec<Case>,
}

/// A case: `SCRIPT`, `SCRIPT:ARGUMENT`, each also with `@SERVER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) limit: Duration,
}

/// The folder of the guest's files.
pub(super) fn folder() -> PathBuf {
    repository::root().join("tests/guest")
}

impl<'a> GuestOptions<'a> {
    pub(super) fn parse(words: &[&'a str]) -> Result<Self> {
        let (mut names, mut file) = (Vec::new(), "all");
        let mut options = Self {
            suite: "bookworm",
            deb: None,
            built: None,
            xfstests: None,
            profile: "demo",
            cpus: 1,
            memory_mib: 1024,
            rebuild: false,
            only_debian: false,
            json: false,
            list: false,
            cases: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().context(USAGE);
            match *word {
                "--quick" => file = "quick",
                "--list" => options.list = true,
                "--suite" => options.suite = value()?,
                "--deb" => options.deb = Some(value()?),
                "--built" => options.built = Some(value()?),
                "--xfstests" => options.xfstests = Some(value()?),
                "--profile" => options.profile = value()?,
                "--cpus" => options.cpus = value()?.parse().context(USAGE)?,
                "--memory" => options.memory_mib = value()?.parse().context(USAGE)?,
                "--rebuild" => options.rebuild = true,
                "--debian" => options.only_debian = true,
                "--json" => options.json = true,
                unknown if unknown.starts_with('-') => bail!("{USAGE}"),
                name => names.push(name.to_owned()),
            }
        }
        if names.is_empty() {
            let list = fs::read_to_string(folder().join(file)).context("the list of cases")?;
            names = list.lines().map(str::to_owned).collect();
        }
        options.cases = names.into_iter().map(Case::named).collect::<Result<_>>()?;
        Ok(options)
    }
}

impl Case {
    fn named(name: String) -> Result<Self> {
        let script = name.split([':', '@']).next().unwrap_or_default();
        let text = fs::read_to_string(folder().join("cases").join(format!("{script}.sh")))
            .with_context(|| format!("there is no case {name}; `--list` has all"))?;
        Ok(Self { limit: limit(&text)?, name })
    }
}

/// The limit that a script gives itself: `# limit: SECONDS`.
fn limit(script: &str) -> Result<Duration> {
    let given = script.lines().find_map(|line| line.strip_prefix("# limit: "));
    given.map_or(Ok(LIMIT), |seconds| Ok(Duration::from_secs(seconds.parse().context("the limit of a case")?)))
}

#[cfg(test)]
mod tests;
