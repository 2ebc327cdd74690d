//! The nightly command runs the long checks one after the other: hours of them, some in builds of their own.
//!
//! Owns: the list of them.
//! Does not own: the checks of each change (`ci`).
//! Invariants: a step that fails ends no other step. The failed steps are named at the end.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repository::{self, succeeds};

/// A command and its environment.
struct Step {
    /// The arguments of cargo; after the word `xtask` those of this program.
    words: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

const fn step(words: &'static str) -> Step {
    Step { words, environment: &[] }
}

const LOOM: &[(&str, &str)] = &[("RUSTFLAGS", "--cfg loom")];

const STEPS: &[Step] = &[
    step("xtask advisories"),
    step("xtask soak --seeds 20000 --keep-going"),
    step("xtask soak --seeds 20000 --keep-going --policy afflux"),
    step("xtask soak --scopes 4"),
    // Tests that each take minutes: a million operations, a thousand kills, gigabytes.
    step("test -p afflux-command --test end_to_end -- --ignored"),
    step("test -p afflux-command --features object --test end_to_end -- --ignored stores volume_rights"),
    step("test -p afflux --test kills -- --ignored"),
    step("test -p afflux-budget -p afflux-engine --test simulated -- --ignored"),
    step("test -p afflux-experiments --lib -- --ignored"),
    // The simulated tables of the documents that take minutes.
    step("test -p afflux-lab --test documents -- --ignored"),
    step("test -p afflux-lab --test end_to_end -- --ignored"),
    step("test -p afflux-nfs-check --test simulated --test fair --test sessions -- --ignored"),
    step("test -p afflux-object --test simulated -- --ignored"),
    step("test -p afflux-object-store --features stores -- --ignored"),
    step("xtask mounted --fuse --minutes 30 --seeds 500 --operations 20000"),
    Step {
        words: "test -p afflux-linux-device --test real engine_threads",
        environment: &[("AFFLUX_STRESS_STEPS", "100000")],
    },
    Step { words: "test -p afflux-volume --test simulated", environment: &[("AFFLUX_SEEDS", "5000")] },
    Step { words: "test --target-dir target/loom -p afflux-device --lib loom_", environment: LOOM },
    Step { words: "test --target-dir target/loom -p afflux-pages --lib loom_", environment: LOOM },
    Step { words: "test --target-dir target/loom -p afflux-frames --lib loom_", environment: LOOM },
    Step { words: "test --target-dir target/loom -p afflux-c --lib loom_", environment: LOOM },
    step("test --manifest-path tests/race/Cargo.toml --target-dir target/race"),
    step(
        "publish --dry-run -p afflux-frames -p afflux-pages -p afflux-device -p afflux-engine -p afflux-budget \
         -p afflux-linux-device -p afflux",
    ),
    // The small forms of the commands behind measured figures.
    step("run -p afflux-lab -- run s4 --quick --measured"),
    step("run -p afflux-lab -- run govern --quick --measured"),
    step("run -p afflux-lab -- run throttled --quick --measured"),
    step("run -p afflux-lab -- run writeback-real --quick"),
    step("run -p afflux-lab -- run classes --quick"),
    step("bench -p afflux-linux-server --bench hits -- --quick"),
    step("bench -p afflux-linux-device --bench cold -- --mib 64 random"),
    step("bench -p afflux-linux-device --bench stream -- --mib 64"),
    step("bench -p afflux-workloads --bench speed -- --quick goals"),
    step("xtask race --quick"),
    step("xtask race-nfs --quick"),
    step("xtask race-mount --quick"),
    step("xtask race-stores --quick"),
    step("xtask race-kills --rounds 1"),
    step("xtask mounted --store radosgw --kill-every 15"),
    step("xtask sanitize address"),
    step("xtask sanitize thread"),
    step("xtask guest"),
    // The Linux of the other release is too old for these cases.
    step("xtask guest --suite trixie arena-mount govern"),
];

/// Each step, as words.
pub(crate) fn steps() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.words)
}

/// Runs all steps.
pub(crate) fn run() -> Result<()> {
    let own = std::env::current_exe().context("this program's path")?;
    let mut failed = Vec::new();
    for step in STEPS {
        if let Err(error) = succeeds(&mut command(step, &own)) {
            eprintln!("error: {error:#}");
            failed.push(step.words);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} of {} steps failed:\n  {}", failed.len(), STEPS.len(), failed.join("\n  "))
}

fn command(step: &Step, own: &Path) -> Command {
    let (program, words) = match step.words.strip_prefix("xtask ") {
        Some(words) => (own, words),
        None => (Path::new("cargo"), step.words),
    };
    let mut command = Command::new(program);
    command.args(words.split(' ')).envs(step.environment.iter().copied()).current_dir(repository::root());
    command
}

#[cfg(test)]
mod tests;
