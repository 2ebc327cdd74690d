use std::ffi::OsString;
use std::process::Command;

use super::{CASES, demo_cache, linted, other_compiler, said_at_the_end, tools};
use crate::repository;

#[test]
fn what_was_left_out_is_said_with_the_reason_and_nothing_if_nothing_was() {
    assert_eq!(said_at_the_end(&[]), "");
    let said = said_at_the_end(&[tools("tests").nth(1).unwrap(), tools("browser").next().unwrap()]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "Left out: the tests over a slow network (ip is not installed, Debian package iproute2).");
    assert!(lines[1].contains("in a browser") && lines[1].contains("cargo xtask test --with-browser"), "{said}");
}

/// A renamed case would fail the gate after all its tests.
#[test]
fn the_cases_of_a_gate_are_there() {
    for name in CASES {
        let script = name.split(':').next().unwrap();
        let file = repository::root().join("tests/guest/cases").join(format!("{script}.sh"));
        assert!(file.is_file(), "{}", file.display());
    }
}

#[test]
fn the_cache_of_a_demo_is_small_unless_it_is_given() {
    let added = |words: &[&str]| demo_cache(&words.iter().map(OsString::from).collect::<Vec<_>>());
    assert_eq!(added(&["/tmp/x", "--listen", "127.0.0.1:0"]), ["--cache", "128MiB"]);
    assert!(added(&["/tmp/x", "--cache", "1GiB"]).is_empty());
    assert!(added(&["/tmp/x", "--cache=1GiB"]).is_empty());
}

#[test]
fn budgets_of_another_compiler_are_said_to_be_left_out() {
    assert_eq!(other_compiler("rustc 1.95.0 (59807616e 2026-04-14)"), "");
    let said = other_compiler("rustc 1.97.0 (0123456 2026-08-01)");
    assert!(said.contains("rustc 1.95.x") && said.contains("rustc 1.97.0") && said.ends_with(".\n"), "{said}");
}

/// Any warning of a newer compiler is treated like this one about an unused function.
#[test]
fn a_build_shows_no_warnings_and_the_lints_show_all() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "lints").unwrap();
    let manifest = std::fs::read_to_string(repository::root().join("Cargo.toml")).unwrap();
    let from = manifest.find("[workspace.lints.rust]").unwrap();
    let until = from + manifest[from..].find("\n[profile").unwrap();
    let package = "[package]\nname = \"probe\"\nedition = \"2024\"\n[lints]\nworkspace = true\n[workspace]\n";
    std::fs::write(scratch.path().join("Cargo.toml"), format!("{package}{}", &manifest[from..until])).unwrap();
    std::fs::create_dir(scratch.path().join("src")).unwrap();
    std::fs::write(scratch.path().join("src/lib.rs"), "//! A probe.\nfn unused() {}\n").unwrap();
    let command = |arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(arguments).current_dir(scratch.path()).env("CARGO_TARGET_DIR", scratch.path().join("target"));
        cargo
    };
    let said = |mut cargo: Command| {
        let output = cargo.env_remove("RUSTFLAGS").output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (built, text) = said(command(&["check", "--offline"]));
    assert!(built && !text.contains("warning"), "{text}");
    let (passed, text) = said(command(&["clippy", "--offline", "--", "-D", "warnings"]));
    if text.contains("cargo-clippy") || text.contains("no such command") {
        return afflux_scratch::skipped!("clippy is not installed");
    }
    assert!(!passed && text.contains("`unused` is never used"), "{text}");
    let (passed, text) = said(command(&["clippy", "--offline", "--", "-W", "warnings"]));
    assert!(passed && text.contains("`unused` is never used"), "{text}");
    let linted_build = || {
        let mut build = command(&["test", "--offline", "--no-run"]);
        linted(&mut build);
        said(build)
    };
    let (passed, text) = linted_build();
    assert!(!passed && text.contains("`unused` is never used"), "{text}");
    // A lint of clippy's own.
    std::fs::write(
        scratch.path().join("src/lib.rs"),
        "//! A probe.\n/// Text.\npub fn f(a: &String) -> usize { a.len() }\n",
    )
    .unwrap();
    let (passed, text) = linted_build();
    assert!(!passed && text.contains("clippy::ptr-arg"), "{text}");
}
