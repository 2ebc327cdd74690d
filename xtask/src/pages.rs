//! Looking at pages in a real browser.
//!
//! Owns: which pages, where pictures of them go.
//! Does not own: what a good page is (`page_check`), the pages of the tests.
//! Invariants: every page is looked at before the first fault ends the run.

use std::path::Path;

use afflux_page_check::Checker;
use anyhow::{Context, Result, bail};

use crate::{ci, repository};

/// Looks at the pages named, or at those that the tests make.
pub(crate) fn check(files: &[&str]) -> Result<()> {
    let pictures = repository::root().join("target/pictures");
    ci::browser()?;
    if files.is_empty() {
        ci::test_pages(&pictures.display().to_string())?;
    } else {
        look_at(files, &pictures)?;
    }
    println!("pictures: {}", pictures.display());
    Ok(())
}

fn look_at(files: &[&str], pictures: &Path) -> Result<()> {
    let mut checker = Checker::start()?;
    let mut faults = 0;
    for file in files {
        let found = checker.check(Path::new(file), Some(pictures)).with_context(|| (*file).to_owned())?;
        for fault in &found {
            println!("{file}: {fault}");
        }
        faults += found.len();
    }
    if faults > 0 {
        bail!("{faults} faults");
    }
    Ok(())
}
