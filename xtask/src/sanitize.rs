//! Runs tests under a sanitizer.
//!
//! Owns: the options of the compiler and the sanitizer, the default tests.
//! Does not own: the suppressions and their reasons (`tsan.supp`), the build of C programs (the tests of
//! `product/afflux-c`).
//! Invariants: sanitizer builds have a separate directory, so that they do not invalidate other builds.

use std::process::Command;

use anyhow::{Result, bail};

use crate::c_library::succeeds;
use crate::repository;

const USAGE: &str = "usage: cargo xtask sanitize <address|thread> [what `cargo test` is to be given]";

/// Crates that use raw memory.
const ADDRESS: &str = "-p afflux-engine -p afflux-device -p afflux-pages -p afflux-frames -p afflux-volume -p afflux-fuse -p afflux-linux -p afflux -p afflux-c";
/// Tests whose threads use the same files.
const THREAD: &str = "-p afflux-linux -p afflux -p afflux-c --test real --test library --test c --test fio";

/// Tests of servers that are killed, and of their successors over the same memory. Under the thread sanitizer no server would
/// stop: it delays a signal until the thread makes a call that it knows.
const KILLS: &str = "-p afflux-command --test end_to_end -- arenas:: kept_by_systemd:: kept_mounts:: kills::";

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let Some((name, others)) = arguments.split_first() else { bail!("{USAGE}") };
    let sets: &[&str] = match *name {
        "address" => &[ADDRESS, KILLS],
        "thread" => &[THREAD],
        _ => bail!("{USAGE}"),
    };
    if !others.is_empty() {
        return succeeds(cargo(name).args(others));
    }
    for tests in sets {
        succeeds(cargo(name).arg("--no-fail-fast").args(tests.split_whitespace()))?;
    }
    Ok(())
}

/// `cargo test` under a sanitizer.
fn cargo(name: &str) -> Command {
    let (place, more) = match name {
        // Without a rebuilt standard library, accesses inside its locks would be reported. Data read during changes
        // needs a copy through atomics, which the sanitizer understands.
        "thread" => ("tsan", " --cfg afflux_portable_copy"),
        _ => ("asan", ""),
    };
    let mut cargo = Command::new("cargo");
    cargo.arg("test").args((name == "thread").then_some("-Zbuild-std"));
    // Naming the target keeps build scripts and macros free of the sanitizer.
    cargo.arg("--target").arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
    cargo.arg("--target-dir").arg(repository::target().join(place));
    cargo.current_dir(repository::root()).env("RUSTC_BOOTSTRAP", "1");
    let flags = format!("-Zsanitizer={name}{more} --cfg afflux_sanitizer=\"{name}\"");
    cargo.env("RUSTDOCFLAGS", &flags).env("RUSTFLAGS", flags);
    cargo.env("TSAN_OPTIONS", format!("suppressions={}", repository::root().join("tsan.supp").display()));
    // An engine dropped with dirty files keeps them, and its tests do that.
    cargo.env("ASAN_OPTIONS", "detect_leaks=0");
    cargo
}
