//! The instructions of a hit, counted by callgrind: exact, so a change here is a change of the code.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Instructions from call to return of a 64-byte read hit, copy included.
const READ_HIT: f64 = 228.0;
/// The same of an overwrite.
const OVERWRITE_HIT: f64 = 231.0;
const SLACK: f64 = 0.03;

const FEW: u64 = 10_000;
const MANY: u64 = 60_000;

fn build() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = manifest.join("../../target/counted");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--example", "hit_instructions", "--target-dir"])
        .arg(&target)
        .current_dir(manifest)
        // The same instructions on every machine that can run them, and none that valgrind lacks.
        .env("RUSTFLAGS", if cfg!(target_arch = "x86_64") { "-C target-cpu=x86-64-v2" } else { "" })
        .status()
        .expect("cargo runs");
    assert!(built.success());
    target.join("release/examples/hit_instructions")
}

fn instructions(program: &Path, kind: &str, count: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([kind, &count.to_string()])
        .output()
        .expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let line = text.lines().find(|line| line.contains("Collected :")).unwrap_or_else(|| panic!("{text}"));
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

fn per_hit(program: &Path, kind: &str) -> f64 {
    let (few, many) = (instructions(program, kind, FEW), instructions(program, kind, MANY));
    (many - few) as f64 / (MANY - FEW) as f64
}

#[test]
fn a_hit_takes_the_instructions_it_took() {
    if Command::new("valgrind").arg("--version").output().is_err() || !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: valgrind is not installed, or this is not an x86-64 machine");
        return;
    }
    let program = build();
    let loop_alone = per_hit(&program, "none");
    for (kind, expected) in [("read", READ_HIT), ("overwrite", OVERWRITE_HIT)] {
        let counted = per_hit(&program, kind) - loop_alone;
        eprintln!("{kind} hit: {counted:.1} instructions (expected {expected})");
        assert!(
            (counted / expected - 1.0).abs() <= SLACK,
            "a {kind} hit takes {counted:.1} instructions, not {expected}: if that is meant, say why and change the figure",
        );
    }
}
