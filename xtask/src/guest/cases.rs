//! The cases of a run in a guest.
//!
//! Owns: the lists of cases, the parts of a case's name, the defaults of the words.
//! Does not own: the words (`words`), the cases (`tests/guest/cases`).
//! Invariants: a case that is not there is refused before a guest starts.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::repository;
use crate::words::Guest;

/// The time of a case that names none.
const LIMIT: Duration = Duration::from_secs(300);

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

impl Guest {
    /// Debian's name of the release.
    pub(super) fn release(&self) -> &str {
        self.suite.as_deref().unwrap_or("bookworm")
    }

    /// The wanted cases.
    pub(super) fn wanted(&self) -> Result<Vec<Case>> {
        if !self.cases.is_empty() {
            return self.cases.iter().map(|name| Case::named(name)).collect();
        }
        let list = folder().join(if self.quick { "quick" } else { "all" });
        let list = fs::read_to_string(list).context("the list of cases")?;
        list.lines().map(Case::named).collect()
    }
}

impl Case {
    /// The script that it runs.
    pub(super) fn script(&self) -> &str {
        script(&self.name)
    }

    fn named(name: &str) -> Result<Self> {
        let text = fs::read_to_string(folder().join("cases").join(format!("{}.sh", script(name))))
            .with_context(|| format!("there is no case {name}; `--list` has all"))?;
        Ok(Self { limit: limit(&text)?, name: name.to_owned() })
    }
}

fn script(name: &str) -> &str {
    name.split([':', '@']).next().unwrap_or_default()
}

/// The limit that a script gives itself: `# limit: SECONDS`.
fn limit(script: &str) -> Result<Duration> {
    let given = script.lines().find_map(|line| line.strip_prefix("# limit: "));
    given.map_or(Ok(LIMIT), |seconds| Ok(Duration::from_secs(seconds.parse().context("the limit of a case")?)))
}

#[cfg(test)]
mod tests;
