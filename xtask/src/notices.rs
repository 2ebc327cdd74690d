//! The notices of the crates that a program contains, for the places where the program goes without its sources.
//!
//! Owns: which crates these are, the texts of their licences.
//! Does not own: where the notices go (`deb`, `c_library`), whether a licence may be used (`deny.toml`).
//! Invariants: each crate of others in the program is listed, with a text. The same sources give the same notices.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::repository::{self, cargo, output};

/// How the names of files with licences and notices begin.
const FILES: [&str; 6] = ["copying", "copyright", "licence", "license", "notice", "unlicense"];
const APACHE: &str = "Apache-2.0";

/// The notices of the program or library of a crate with these features.
pub(crate) fn of(krate: &str, features: &str) -> Result<String> {
    // `cargo metadata` reads all crates of the workspace and their tests. A build fetches its own crates alone.
    output(&mut cargo(&["fetch", "--locked"]))?;
    let crates = crates_of_others(krate, features)?;
    let (mut list, mut texts) = (String::new(), BTreeMap::<String, Vec<String>>::new());
    for found in &crates {
        list.push_str(&format!("{}: {}\n", found.name, found.terms));
        for text in found.texts()? {
            texts.entry(text).or_default().push(found.name.clone());
        }
    }
    let mut notices = format!("This package contains these crates of others, under these terms.\n\n{list}");
    for (text, names) in texts {
        notices.push_str(&format!("\n{}\n{}\n\n{}\n", "-".repeat(72), names.join(", "), text.trim_end()));
    }
    Ok(notices)
}

/// A crate of others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    /// With its version.
    name: String,
    terms: String,
    authors: Vec<String>,
    directory: String,
}

impl Crate {
    /// Its licences and notices. A crate that has none of its own, and may be used under the Apache License, gets that.
    fn texts(&self) -> Result<Vec<String>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory).with_context(|| self.directory.clone())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_lowercase();
            if FILES.iter().any(|file| name.starts_with(file)) && entry.path().is_file() {
                files.push(entry.path());
            }
        }
        files.sort();
        if files.is_empty() && self.terms.contains(APACHE) {
            let text = fs::read_to_string(repository::root().join("LICENSE-APACHE"))?;
            let by = self.authors.join(", ");
            return Ok(vec![if by.is_empty() { text } else { format!("By {by}\n\n{text}") }]);
        }
        if files.is_empty() {
            bail!("{} ({}) has no licence file: add its text to xtask/src/notices.rs", self.name, self.terms);
        }
        let read = |file: &std::path::PathBuf| Ok(String::from_utf8_lossy(&fs::read(file)?).replace("\r\n", "\n"));
        files.iter().map(read).collect()
    }
}

/// The crates of others whose code is in the program, in order. Macros that run while it is built are not.
fn crates_of_others(krate: &str, features: &str) -> Result<BTreeSet<Crate>> {
    const NAME_AND_VERSION: &str = "{p}";
    let tree = output(&mut cargo(&[
        "tree",
        "--offline",
        "--package",
        krate,
        "--features",
        features,
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        NAME_AND_VERSION,
    ]))?;
    let contained: BTreeSet<String> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some(format!("{} {}", words.next()?, words.next()?.trim_start_matches('v')))
        })
        .collect();
    let host = output(&mut cargo(&["--version", "--verbose"]))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("cargo names no host")?;
    let mut arguments = vec!["metadata", "--offline", "--format-version", "1", "--filter-platform", host];
    let features = format!("{krate}/{features}");
    if !features.ends_with('/') {
        arguments.extend(["--features", features.as_str()]);
    }
    let metadata: Value = serde_json::from_str(&output(&mut cargo(&arguments))?).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let others = packages.iter().filter(|package| !package["source"].is_null()).map(found);
    let others: Vec<Crate> = others.collect::<Result<_>>()?;
    Ok(others.into_iter().filter(|found| contained.contains(&found.name)).collect())
}

fn found(package: &Value) -> Result<Crate> {
    let text = |field: &str| package[field].as_str().unwrap_or_default();
    let authors = package["authors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let directory = Path::new(text("manifest_path")).parent().context("a manifest outside of a directory")?;
    Ok(Crate {
        name: format!("{} {}", text("name"), text("version")),
        terms: text("license").to_owned(),
        authors: authors.iter().filter_map(|author| Some(author.as_str()?.to_owned())).collect(),
        directory: directory.to_string_lossy().into_owned(),
    })
}

#[cfg(test)]
mod tests;
