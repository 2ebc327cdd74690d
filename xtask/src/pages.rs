//! Checks pages in a real browser.
//!
//! Owns: the choice of pages, the directory of their pictures.
//! Does not own: the rules of a good page (`page_check`), the pages of the tests.
//! Invariants: every page is checked before a fault ends the run.

use std::path::Path;

use afflux_page_check::Checker;
use anyhow::{Context, Result, bail};

use crate::{ci, repository};

/// Checks the named pages, or those that the tests create.
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
