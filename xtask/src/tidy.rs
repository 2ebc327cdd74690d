//! The rules that no compiler checks. Run by `cargo xtask tidy` and as a test.
//!
//! Owns: the list of rules.
//! Does not own: each rule's content (one module a family of rules).
//! Invariants: rules are pure functions from text to violations, so that each is tested against an
//! example that breaks it; only this module reads the repository.

mod absences;
mod apart;
mod circles;
mod claims;
mod documents;
mod english;
mod imports;
mod lexer;
mod modules;
mod mounts;
mod names;
mod sources;
mod violation;
mod waits;

#[cfg(test)]
mod tests;

use anyhow::{Context, Result, bail};

use self::violation::Violation;
use crate::repository::TextFile;
use crate::{nightly, repository, rules};

/// Checks the repository; prints every violation and fails if there is one.
pub(crate) fn run() -> Result<()> {
    let violations = check()?;
    for Violation { place, rule, text } in &violations {
        eprintln!("{place}: {rule}: {text}");
    }
    match violations.len() {
        0 => Ok(()),
        count => bail!("tidy found {count} violations"),
    }
}

/// All violations in the repository.
pub(crate) fn check() -> Result<Vec<Violation>> {
    let paths = repository::paths()?;
    let mut violations = imports::check(&metadata()?)?;
    let files = repository::files(&paths, "rs")?;
    files.iter().for_each(|file| violations.extend(sources::check(file)));
    files.iter().for_each(|file| violations.extend(waits::check(file)));
    violations.extend(waits::absent(&paths));
    files.iter().for_each(|file| violations.extend(absences::check(file)));
    violations.extend(absences::missing(&files));
    files.iter().for_each(|file| violations.extend(apart::check(file)));
    violations.extend(circles::check(&files, &written(circles::LIST)?));
    violations.extend(names::check(&files, &written(names::LIST)?)?);
    violations.extend(tests_of_rules(&files)?);
    files.iter().for_each(|file| violations.extend(documents::missing_rule_paths(file, &paths)));
    // Pages of the notebook are never edited: they name files as these were called then.
    let mut documents = repository::files(&paths, "md")?;
    documents.retain(|file| !file.path.starts_with("notebook/"));
    documents.iter().for_each(|file| violations.extend(documents::missing_paths(file, &paths)));
    documents.iter().for_each(|file| violations.extend(documents::dead_links(file, &documents, &paths)));
    violations.extend(documents::too_long(&documents));
    violations.extend(claims::check(&documents, &nightly::steps().collect::<Vec<_>>()));
    [files.as_slice(), &documents, &repository::files(&paths, "sh")?]
        .concat()
        .iter()
        .for_each(|file| violations.extend(mounts::incomplete(file)));
    violations.extend(english::check(&[files, documents].concat()));
    Ok(violations)
}

/// Writes the lower figures of names, then checks the repository.
pub(crate) fn renew() -> Result<()> {
    let sources = repository::files(&repository::paths()?, "rs")?;
    let names = names::renewed(&sources, &written(names::LIST)?)?;
    std::fs::write(repository::root().join(names::LIST), names).context(names::LIST)?;
    run()
}

/// Each comment that names a rule stands at a test, and each invariant has one.
fn tests_of_rules(files: &[TextFile]) -> Result<Vec<Violation>> {
    let (tested, faults) = rules::invariants(files);
    let mut violations: Vec<Violation> =
        faults.into_iter().map(|fault| Violation::new(fault.place, "rules", fault.text)).collect();
    let without = rules::without_test(&written("docs/develop/architecture.md")?, &tested);
    violations.extend(without.into_iter().map(|number| {
        Violation::new(
            "docs/develop/architecture.md",
            "rules",
            format!("no test says `// rule: {number}: …` of invariant {number}"),
        )
    }));
    Ok(violations)
}

fn written(path: &str) -> Result<String> {
    std::fs::read_to_string(repository::root().join(path)).context(path.to_owned())
}

/// Cargo's metadata of the workspace's packages, without packages of other projects.
fn metadata() -> Result<serde_json::Value> {
    let mut metadata = repository::cargo(&["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    serde_json::from_str(&repository::output(&mut metadata)?).context("cargo metadata")
}
