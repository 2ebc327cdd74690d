//! The behaviour of each policy, stored as hashes in a file. A change that should not alter behaviour leaves this file
//! unchanged. Another change shows here which policies it altered.
//!
//! `AFFLUX_RENEW_HASHES=1 cargo test -p afflux-checker --test behaviour` writes the file anew.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test crate, also outside its test functions")]

//! rule: 11: the same seed gives the same trace

mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use afflux_checker::policies_and_models;
use afflux_simulator::OWN_POLICY;

/// A disk with seeks, a disk without, and a disk whose times depend on bytes alone.
const MODELS: [&str; 3] = ["disk", "sata-ssd", "throttled"];
/// If this variable is set to any value, the test writes the file anew.
const RENEW: &str = "AFFLUX_RENEW_HASHES";

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviour/hashes.txt")
}

/// All runs of the file, one a line.
fn now() -> String {
    let mut lines = String::new();
    for (policy, model) in policies_and_models().into_iter().filter(|(_, model)| MODELS.contains(model)) {
        let mut add = |name, told| writeln!(lines, "{name}: {told}").unwrap();
        runs::runs_of(policy, model, &mut add).unwrap();
    }
    lines
}

fn by_name(lines: &str) -> BTreeMap<&str, &str> {
    lines.lines().filter_map(|line| line.split_once(": ")).collect()
}

/// The runs that differ, and their policies.
fn moved<'a>(before: &'a str, now: &'a str) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let (before, now) = (by_name(before), by_name(now));
    let names: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
    let moved: Vec<&str> = names.into_iter().filter(|name| before.get(name) != now.get(name)).collect();
    let policies = moved.iter().filter_map(|name| name.split(' ').next()).collect();
    (moved, policies)
}

#[test]
fn every_policy_does_what_it_did() {
    let now = now();
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(file(), &now).unwrap();
        println!("{}: {} runs", file().display(), now.lines().count());
        return;
    }
    let before = std::fs::read_to_string(file()).unwrap();
    let (moved, policies) = moved(&before, &now);
    let only_own = policies.iter().all(|policy| *policy == OWN_POLICY);
    let note = if only_own {
        ""
    } else {
        "\nThe kernels' policies and equal-parts are yardsticks: they move for a reason only."
    };
    assert!(
        moved.is_empty(),
        "{} of {} runs are not what they were, under {}:\n  {}\nIf the change was to leave them alone it has not. If it \
         was to change them, say so with the change, and write the file anew:\n  {RENEW}=1 cargo test -p afflux-checker \
         --test behaviour{note}",
        moved.len(),
        now.lines().count(),
        policies.into_iter().collect::<Vec<_>>().join(", "),
        moved.join("\n  "),
    );
}

#[test]
fn a_run_that_moved_comes_or_goes_is_named_with_its_policy() {
    let before = "a hdd x: 1 1\nb hdd x: 2 2\nc hdd x: 3 3\n";
    let now = "a hdd x: 1 1\nb hdd x: 2 9\nd hdd x: 4 4\n";
    let (moved, policies) = moved(before, now);
    assert_eq!(moved, ["b hdd x", "c hdd x", "d hdd x"]);
    assert_eq!(policies.into_iter().collect::<Vec<_>>(), ["b", "c", "d"]);
}
