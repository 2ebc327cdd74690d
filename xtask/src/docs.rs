//! Writing the generated documents: docs/reference/knobs.md, docs/reference/counters.md, the simulated tables of the
//! documents and the header of the C interface.
//!
//! Owns: which test writes which document.
//! Does not own: the documents' texts. A test where the tables are linked compares each and writes it.

use std::process::Command;

use anyhow::Result;

use crate::repository::{self, succeeds};

/// The arguments of `cargo test` for each group of documents.
const WRITERS: &[&[&str]] = &[
    &["--package", "afflux-command", "--features", "object", "--bin", "afflux", "reference::"],
    &["--package", "afflux-lab", "--test", "documents"],
    &["--package", "afflux-c", "--test", "header"],
];

/// Writes the documents that differ from the generated text. With `is_long` also the tables whose simulation takes
/// minutes.
pub(crate) fn write(is_long: bool) -> Result<()> {
    for words in WRITERS {
        let mut cargo = Command::new("cargo");
        cargo.arg("test").args(*words).args(["--", "--nocapture"]);
        if is_long {
            cargo.arg("--include-ignored");
        }
        succeeds(cargo.env("AFFLUX_RENEW_DOCS", "1").current_dir(repository::root()))?;
    }
    Ok(())
}
