//! The header of the C interface is what the sources of this crate give.
//!
//! `AFFLUX_RENEW_DOCS=1` writes it if it differs; `cargo xtask docs` sets that.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::{env, fs};

/// The sources, in the order in which they stand in the header.
const SOURCES: &[&str] = &["code", "border", "cache", "file", "order", "pages", "queue"];

fn generated(root: &Path) -> String {
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml").to_str().unwrap()).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in SOURCES {
        builder = builder.with_src(root.join(format!("src/{name}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn the_header_is_what_the_sources_give() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (place, text) = (root.join("include/afflux.h"), generated(root));
    if fs::read_to_string(&place).ok().as_deref() == Some(&text) {
        return;
    }
    assert!(env::var_os("AFFLUX_RENEW_DOCS").is_some(), "afflux.h differs from its sources: run `cargo xtask docs`");
    fs::write(&place, text).unwrap();
    eprintln!("wrote {}", place.display());
}
