//! rule: test programs run side by side, each in its package, and every failure is reported
//! kept in: `xtask/src/ci/programs.rs`

use std::path::PathBuf;
use std::process::Command;

use super::{LINES_MAX, Program, execute, failure, listed};

#[test]
fn only_test_programs_are_listed_with_their_packages() {
    let library = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"src_path":"/w/a/src/lib.rs"},
        "profile":{"test":false},"executable":null}"#;
    let server = r#"{"manifest_path":"/w/a/Cargo.toml","target":{"src_path":"/w/a/src/main.rs"},"profile":{"test":false},"executable":"/t/a"}"#;
    let test = r#"{"manifest_path":"/w/a/Cargo.toml","target":{"kind":["test"],"src_path":"/w/a/tests/t.rs"},"profile":{"test":true},"executable":"/t/t-1"}"#;
    let bench = test.replace(r#"["test"]"#, r#"["bench"]"#);
    let messages =
        [library.replace('\n', "").as_str(), server, &bench, test, r#"{"reason":"build-finished"}"#].join("\n");
    let [source, executable, package] = ["/w/a/tests/t.rs", "/t/t-1", "/w/a"].map(PathBuf::from);
    assert_eq!(listed(&messages), [Program { executable, source, package }]);
}

#[test]
fn a_program_runs_in_its_package_with_the_environment_and_its_failure_is_seen() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "programs").unwrap();
    let executable = scratch.path().join("program");
    let text = "#!/bin/sh\ntest \"$PWD:$CARGO_MANIFEST_DIR\" = \"/usr:/usr\" && exit $CODE\n";
    // Another process writes the program. A child of another test's thread would hold a file that this process writes.
    // The kernel runs no file that is open for writing.
    let write = "printf %s \"$TEXT\" > \"$AT\" && chmod +x \"$AT\"";
    let written = Command::new("sh").args(["-c", write]).env("TEXT", text).env("AT", &executable).status().unwrap();
    assert!(written.success());
    let program = Program { executable, source: PathBuf::from("x.rs"), package: PathBuf::from("/usr") };
    let has_failed = |program: &Program, code: &str| {
        let mut command = Command::new(&program.executable);
        command.env("CODE", code);
        execute(program, command).0.is_some()
    };
    assert!(!has_failed(&program, "0") && has_failed(&program, "1"));
    let elsewhere = Program { package: PathBuf::from("/"), ..program };
    assert!(has_failed(&elsewhere, "0"));
}

#[test]
fn a_failure_is_told_with_the_output_of_its_tests_and_a_silent_one_with_its_last_lines() {
    let output =
        "test one ... ok\ntest two ... FAILED\n\nfailures:\n\n---- two stdout ----\nfound 3\n\nfailures:\n    two\n";
    let told = failure("x.rs", output);
    assert_eq!(told, "error: x.rs failed:\nfailures:\n\n---- two stdout ----\nfound 3\n\nfailures:\n    two\n");
    let lines: Vec<String> = (0..LINES_MAX + 5).map(|line| line.to_string()).collect();
    let told = failure("x.rs", &lines.join("\n"));
    assert!(told.starts_with("error: x.rs failed:\n5\n6\n") && told.ends_with("\n124\n"), "{told}");
    assert_eq!(told.lines().count(), 1 + LINES_MAX);
}
