//! The documents that are generated from tables: each file has the present text of its tables.
//!
//! `AFFLUX_RENEW_DOCS=1` writes the files that differ; `cargo xtask docs` sets it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod counters;
mod knobs;
mod simulated;

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
    is_fresh("docs/reference/knobs.md", &knobs::text());
}

/// A knob without a person who turns it is a constant.
#[test]
fn for_each_knob_of_the_product_it_is_said_who_turns_it() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/develop/decisions/knobs.md");
    let page = fs::read_to_string(page).unwrap();
    let (kept, constants) = page.split_once("## Constants").unwrap();
    let rows = |text: &str| -> Vec<String> {
        let names = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        names.map(str::to_owned).collect()
    };
    let mut named = rows(kept);
    let mut knobs = knobs::of_product();
    named.sort();
    knobs.sort_unstable();
    assert_eq!(named, knobs);
    assert!(rows(constants).iter().all(|name| !knobs.contains(&name.as_str())));
}

#[test]
fn the_document_of_counters_is_what_their_tables_give() {
    is_fresh("docs/reference/counters.md", &counters::text());
}
