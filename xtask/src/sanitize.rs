//! Runs tests under a sanitizer.
//!
//! Owns: the options of the compiler and the sanitizer, the default tests.
//! Does not own: the suppressions and their reasons (`tsan.supp`), the build of C programs (the tests of
//! `product/afflux-c`).
//! Invariants: sanitizer builds have a separate directory, so that they do not invalidate other builds.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::repository::{self, succeeds};
use crate::words::Sanitizer;

/// Crates that use raw memory.
const ADDRESS: &str = "-p afflux-engine -p afflux-device -p afflux-pages -p afflux-frames -p afflux-volume -p afflux-fuse -p afflux-linux-device -p afflux-linux-server -p afflux -p afflux-c";
/// Tests whose threads use the same files.
const THREAD: &str = "-p afflux-linux-device -p afflux -p afflux-c --test real --test library --test c --test fio";

/// Tests of servers that are killed, and of their successors over the same memory. Under the thread sanitizer no server
/// would stop: it delays a signal until the thread makes a call that it knows.
const KILLS: &str = "-p afflux-command --test end_to_end -- arenas:: kept_by_systemd:: kept_mounts:: kills::";

/// Runs the tests that `others` name, or its own.
pub(crate) fn run(which: Sanitizer, others: &[OsString]) -> Result<()> {
    if !others.is_empty() {
        return succeeds(cargo(which).args(others));
    }
    let sets: &[&str] = if which == Sanitizer::Address { &[ADDRESS, KILLS] } else { &[THREAD] };
    for tests in sets {
        succeeds(cargo(which).arg("--no-fail-fast").args(tests.split_whitespace()))?;
    }
    Ok(())
}

/// `cargo test` under a sanitizer.
fn cargo(which: Sanitizer) -> Command {
    let name = which.word();
    let (place, more) = match which {
        // Without a rebuilt standard library, accesses inside its locks would be reported. Data read during changes
        // needs a copy through atomics, which the sanitizer understands.
        Sanitizer::Thread => ("tsan", " --cfg afflux_portable_copy"),
        Sanitizer::Address => ("asan", ""),
    };
    let mut cargo = Command::new("cargo");
    cargo.arg("test").args((which == Sanitizer::Thread).then_some("-Zbuild-std"));
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
