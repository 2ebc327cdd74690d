//! Programs whose instructions callgrind counts: exact, so a change here is a change of the code.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A count may be off by so much before somebody has to say why.
const SLACK: f64 = 0.03;

/// Whether this machine can count; says so if not.
pub(crate) fn can_count() -> bool {
    let can = Command::new("valgrind").arg("--version").output().is_ok() && cfg!(target_arch = "x86_64");
    if !can {
        eprintln!("skipped: valgrind is not installed, or this is not an x86-64 machine");
    }
    can
}

/// An example of this crate, built as it is shipped.
pub(crate) fn build(example: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = manifest.join("../../target/counted");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--example", example, "--target-dir"])
        .arg(&target)
        .current_dir(manifest)
        // The same instructions on every machine that can run them, and none that valgrind lacks.
        .env("RUSTFLAGS", if cfg!(target_arch = "x86_64") { "-C target-cpu=x86-64-v2" } else { "" })
        .status()
        .expect("cargo runs");
    assert!(built.success());
    target.join("release/examples").join(example)
}

/// How many instructions it took, and what it printed; only those of a function and what that calls, if one is named.
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

/// Fails unless what was counted is what is expected.
pub(crate) fn check(what: &str, counted: f64, expected: f64) {
    eprintln!("{what}: {counted:.1} instructions (expected {expected})");
    assert!(
        (counted / expected - 1.0).abs() <= SLACK,
        "{what} takes {counted:.1} instructions, not {expected}: if that is meant, say why and change the figure",
    );
}
