//! Callgrind counts the instructions of these programs exactly, so a changed count is a change of the code.
#![allow(clippy::print_stderr, reason = "a test says what it counted")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The beginning of the compiler's version for the budgets. Another compiler makes other instructions of the same code.
const COMPILER: &str = include_str!("compiler");

/// Whether this machine can count, and its compiler is that of the budgets; prints the reason if not.
pub(crate) fn can_count() -> bool {
    if cfg!(any(afflux_sanitizer = "address", afflux_sanitizer = "thread")) {
        afflux_scratch::skipped!("a sanitizer adds instructions of its own");
        return false;
    }
    let can = Command::new("valgrind").arg("--version").output().is_ok() && cfg!(target_arch = "x86_64");
    if !can {
        afflux_scratch::skipped!("valgrind is not installed, or this is not an x86-64 machine");
        return false;
    }
    let compiler = Command::new(Path::new(env!("CARGO")).with_file_name("rustc")).arg("--version").output();
    let version = compiler.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    if !is_known(&version) {
        afflux_scratch::skipped!("the budgets of instructions are of {}x, and this is '{version}'", COMPILER.trim());
    }
    is_known(&version)
}

fn is_known(version: &str) -> bool {
    version.starts_with(COMPILER.trim())
}

/// An example of one of the counted crates, built as it is shipped. The first call of a run builds all of them, side by
/// side.
pub(crate) fn build(example: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = manifest.join("../../target/counted");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--offline", "--target-dir"]).arg(&target);
    cargo.args(["--package", "afflux-linux-device", "--package", "afflux-nfs", "--examples"]);
    cargo.current_dir(manifest);
    std::env::vars_os().map(|(name, _)| name).filter(|name| changes_code(&name.to_string_lossy())).for_each(|name| {
        cargo.env_remove(name);
    });
    // The same instructions on every machine that can run them, and none that valgrind lacks.
    cargo.env("RUSTFLAGS", if cfg!(target_arch = "x86_64") { "-C target-cpu=x86-64-v2" } else { "" });
    assert!(cargo.status().expect("cargo runs").success());
    target.join("release/examples").join(example)
}

/// Whether a variable of the environment has cargo make other code than is shipped. An incremental build inlines less.
pub(crate) fn changes_code(name: &str) -> bool {
    let whole = ["CARGO_INCREMENTAL", "CARGO_BUILD_INCREMENTAL", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS"];
    whole.contains(&name) || name.starts_with("CARGO_PROFILE_") || name.starts_with("CARGO_UNSTABLE_")
}

/// The number of instructions of a program, and its output. If a function is named, only the function and its callees
/// count.
pub(crate) fn instructions(program: &Path, of: Option<&str>, arguments: &[&str]) -> (u64, String) {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(of.map(|function| format!("--toggle-collect={function}")))
        .arg(program)
        .args(arguments)
        .output()
        .expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let line = text.lines().find(|line| line.contains("Collected :")).unwrap_or_else(|| panic!("{text}"));
    let count = line.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"));
    (count, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fails unless `counted` is `expected`, within the fraction `slack`.
pub(crate) fn check(what: &str, counted: f64, expected: f64, slack: f64) {
    eprintln!("{what}: {counted:.1} instructions (expected {expected})");
    assert!(
        (counted / expected - 1.0).abs() <= slack,
        "{what} takes {counted:.1} instructions, not {expected}: if that is meant, say why and change the figure",
    );
}
