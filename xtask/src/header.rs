//! The header of the C interface, made from the sources of its crate.
//!
//! Owns: the list of sources and their order in the header.
//! Does not own: the form of names and comments there (`product/afflux-c/cbindgen.toml`).
//! Invariants: the same sources give the same text.

use anyhow::{Context, Result, anyhow};

use crate::repository;

/// The path of the header.
pub(crate) const PATH: &str = "product/afflux-c/include/afflux.h";

const CRATE: &str = "product/afflux-c";
const SOURCES: &[&str] = &["code", "border", "cache", "file", "pages", "queue"];

/// The text of the header.
pub(crate) fn text() -> Result<String> {
    let root = repository::root().join(CRATE);
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml").to_str().context("a path in UTF-8")?);
    let mut builder = cbindgen::Builder::new().with_config(config.map_err(|error| anyhow!("cbindgen.toml: {error}"))?);
    for name in SOURCES {
        builder = builder.with_src(root.join(format!("src/{name}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().context("the header of the C interface")?.write(&mut text);
    String::from_utf8(text).context("the header is UTF-8")
}
