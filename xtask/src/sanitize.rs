//! The tests under a sanitizer.
//!
//! Owns: what the compiler and the sanitizer are told, which tests are run unless others are named.
//! Does not own: what is left out and why (`tsan.supp`), how programs in C are built then (the tests of
//! `product/afflux-c`).
//! Invariants: what is built for it stands apart, so nothing else is built again for want of it.

use std::process::Command;

use anyhow::{Result, bail};

use crate::c_library::succeeds;
use crate::repository;

const USAGE: &str = "usage: cargo xtask sanitize <address|thread> [what `cargo test` is to be given]";

/// Crates that hold raw memory.
const ADDRESS: &str = "-p afflux-engine -p afflux-frames -p afflux-linux -p afflux -p afflux-c";
/// Tests that have threads use the same files.
const THREAD: &str = "-p afflux-linux -p afflux -p afflux-c --test races --test engine_threads --test library \
                      --test c --test fio";

/// Runs them.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let Some((name, others)) = arguments.split_first() else { bail!("{USAGE}") };
    let (place, more, tests) = match *name {
        "address" => ("asan", "", ADDRESS),
        // What the standard library does inside its locks would be reported otherwise; of what is read while it changes
        // only a copy made of atomics is known for that.
        "thread" => ("tsan", " --cfg afflux_portable_copy", THREAD),
        _ => bail!("{USAGE}"),
    };
    let mut cargo = Command::new("cargo");
    cargo.arg("test").args((*name == "thread").then_some("-Zbuild-std"));
    // Named, so that what runs while building is not built for it.
    cargo.arg("--target").arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
    cargo.arg("--target-dir").arg(repository::target().join(place));
    if others.is_empty() {
        cargo.arg("--no-fail-fast").args(tests.split_whitespace());
    }
    cargo.args(others).current_dir(repository::root()).env("RUSTC_BOOTSTRAP", "1");
    cargo.env("RUSTFLAGS", format!("-Zsanitizer={name}{more} --cfg afflux_sanitizer=\"{name}\""));
    cargo.env("TSAN_OPTIONS", format!("suppressions={}", repository::root().join("tsan.supp").display()));
    // An engine that is dropped with dirty files keeps them: its tests do that.
    succeeds(cargo.env("ASAN_OPTIONS", "detect_leaks=0"))
}
