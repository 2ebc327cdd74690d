//! Checks pages in a real browser.
//!
//! Owns: the choice of pages, the folder of their pictures.
//! Does not own: the criteria of a good page (`tests/page-check`), the pages of the tests.
//! Invariants: every page is looked at before the first fault ends the run.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::ci;
use crate::repository::{self, succeeds};

/// Checks the named pages, or those that the tests create.
pub(crate) fn check(files: &[PathBuf]) -> Result<()> {
    let pictures = repository::root().join("target/pictures");
    ci::browser()?;
    if files.is_empty() {
        ci::test_pages(&pictures)?;
    } else {
        // In the caller's folder: the files are named from there.
        let mut look = Command::new("cargo");
        look.args(["run", "--quiet", "--package", "afflux-page-check", "--example", "look", "--manifest-path"]);
        succeeds(look.arg(repository::root().join("Cargo.toml")).arg("--").arg(&pictures).args(files))?;
    }
    println!("pictures: {}", pictures.display());
    Ok(())
}
