//! The documents that are generated from tables: each file has the present text of its tables.
//!
//! `AFFLUX_RENEW_DOCS=1` writes the files that differ; `cargo xtask docs` sets it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod counters;
mod knobs;

use std::path::Path;
use std::{env, fs};

/// Fails if the file differs from the text, or writes it if that is asked for.
fn is_fresh(path: &str, text: &str) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if fs::read_to_string(&place).ok().as_deref() == Some(text) {
        return;
    }
    assert!(env::var_os("AFFLUX_RENEW_DOCS").is_some(), "{path} differs from its tables: run `cargo xtask docs`");
    fs::write(&place, text).unwrap();
    eprintln!("wrote {path}");
}

#[test]
fn the_document_of_knobs_is_what_their_tables_give() {
    is_fresh("docs/knobs.md", &knobs::text());
}

#[test]
fn the_document_of_counters_is_what_their_tables_give() {
    is_fresh("docs/counters.md", &counters::text());
}
