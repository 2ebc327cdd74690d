//! Writing the generated documents: docs/knobs.md, docs/counters.md and the header of the C interface.
//!
//! Owns: which test writes which document.
//! Does not own: the documents' texts. A test where the tables are linked compares each and writes it.

use std::process::Command;

use anyhow::Result;

use crate::c_library::succeeds;
use crate::repository;

/// Package and test of each group of documents.
const WRITERS: &[(&str, &str)] = &[("afflux-lab", "documents"), ("afflux-c", "header")];

/// Writes the documents that differ from what is generated.
pub(crate) fn write() -> Result<()> {
    for (package, test) in WRITERS {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--package", package, "--test", test, "--", "--nocapture"]);
        succeeds(cargo.env("AFFLUX_RENEW_DOCS", "1").current_dir(repository::root()))?;
    }
    Ok(())
}
