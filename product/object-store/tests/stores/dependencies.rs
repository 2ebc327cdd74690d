//! The document has the dependencies of the build.

use std::collections::BTreeSet;
use std::process::Command;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/use/stores.md");

#[test]
fn the_document_has_the_number_of_dependencies() {
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    let expected = format!("{} crates of others", crates());
    assert!(text.contains(&expected), "docs/use/stores.md should say: {expected}");
}

/// The number of crates of others that a build on this machine compiles. Features that only other crates of the
/// workspace want do not count.
fn crates() -> usize {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--offline", "--features=stores", "--edges=normal,build", "--prefix=none"]);
    let output = command.args(["--format={p}|", "--manifest-path", manifest]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // A crate that appears again ends with a mark behind the bar. Ours are named with their paths.
    let packages = text.lines().filter_map(|line| line.split_once('|')).map(|(package, _)| package);
    packages.filter(|package| !package.contains("(/")).collect::<BTreeSet<_>>().len()
}
