//! A program that links the library compiles no server.

use std::collections::BTreeSet;
use std::process::Command;

// rule: the library needs six of our crates: no names, no protocols, no server
#[test]
fn the_library_needs_six_of_our_crates() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--offline", "--edges=normal,build", "--prefix=none", "--format={p}"]);
    let output = command.args(["--manifest-path", manifest]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').next());
    let ours: BTreeSet<&str> = names.filter(|name| name.starts_with("afflux")).collect();
    let below = ["afflux-device", "afflux-engine", "afflux-frames", "afflux-linux-device", "afflux-pages"];
    let expected = ["afflux", "afflux-budget"].into_iter().chain(below);
    assert_eq!(ours, expected.collect());
}
