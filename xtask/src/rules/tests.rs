use super::{Fault, invariants, without_test};
use crate::repository::TextFile;

fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}

fn rows(files: &[TextFile]) -> Vec<String> {
    let (all, faults) = super::rows(files);
    assert_eq!(faults, []);
    let text = super::text(all);
    text.lines().skip_while(|line| *line != "|-|-|-|").skip(1).map(str::to_owned).collect()
}

#[test]
fn a_test_and_a_whole_file_name_their_rules_and_share_a_row() {
    let one = "//! Header.\n#![allow(x)]\n\n//! rule: a page\n//! is clean\n//! rule: 2: a frame is free\n\nuse a;\n";
    let two = "// rule: a page is clean\n// kept in: `a.rs`,\n// `b.rs`\n#[test]\n#[ignore]\nfn of_a_page() {\n\
               mod x {\n    // rule: 10: a call ends\n    /// A test.\n    #[test]\n    fn of_a_call() {\n";
    let expected = [
        "| 2: a frame is free |  | `tests/one.rs` |",
        "| 10: a call ends |  | `of_a_call` in `tests/two.rs` |",
        "| a page is clean | `a.rs`, `b.rs` | `tests/one.rs`; `of_a_page` in `tests/two.rs` |",
    ];
    let files = [file("tests/one.rs", one), file("tests/two.rs", two)];
    assert_eq!(rows(&files), expected);
}

#[test]
fn a_rule_above_something_else_than_a_test_is_a_fault() {
    for text in ["// rule: a\nfn f() {}", "// rule: a\n\n#[test]\nfn f() {}", "// rule: a\nuse b;\n"] {
        let place = "tests/one.rs:1".to_owned();
        assert_eq!(
            invariants(&[file("tests/one.rs", text)]).1,
            [Fault { place, text: "stands above no test" }],
            "{text}"
        );
    }
}

#[test]
fn an_invariant_without_a_test_is_found() {
    let architecture = "1. **A hit**: x\n2. **A page** is\n10. **A call**\n";
    assert_eq!(without_test(architecture, &[1, 10]), [2]);
}
