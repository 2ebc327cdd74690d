//! The rules and their tests: a test names its rule in a comment. `cargo xtask rules` prints all.
//!
//! Owns: how such a comment is read, the rows of the table and their order.
//! Does not own: the rules, which stand at their tests.
//! Invariants: the same files give the same text. A comment above something other than a test is a fault.
//!
//! `// rule: TEXT` stands directly above `#[test]`. `//! rule: TEXT`, in a file's header, is for the whole file. The
//! text may go on in further lines. `// kept in: PATHS` may follow it. Tests with the same text share a row. A text
//! that begins with a number is about that invariant of `docs/develop/architecture.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;

use crate::repository::{self, TextFile};

const TABLE: &str = "| rule | where it is kept | its test |\n|-|-|-|\n";

/// Stands for the number of a rule that is about no invariant.
const OTHERS: u64 = u64::MAX;

/// Lines after a comment within which its test begins.
const TEST_WITHIN: usize = 12;

/// A comment that names a rule, for a test or for a whole file.
struct Marker {
    rule: String,
    kept_in: String,
    /// The test's name; nothing for a whole file.
    test: Option<String>,
}

/// A comment that stands at no test.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: String,
    pub(crate) text: &'static str,
}

/// The places and tests of a rule; its number and text are the row's key.
#[derive(Default)]
struct Row {
    kept_in: Vec<String>,
    tests: Vec<String>,
}

/// The invariants that have a rule with a test, and the comments at fault.
pub(crate) fn invariants(files: &[TextFile]) -> (Vec<u64>, Vec<Fault>) {
    let (rows, faults) = rows(files);
    (rows.into_keys().map(|(number, _)| number).collect(), faults)
}

/// Prints all rules.
pub(crate) fn print() -> Result<()> {
    let files = repository::files(&repository::paths()?, "rs")?;
    println!("{}", text(rows(&files).0).trim_end());
    Ok(())
}

/// The rules by the number of their invariant, or by [`OTHERS`].
type Rows = BTreeMap<(u64, String), Row>;

fn rows(files: &[TextFile]) -> (Rows, Vec<Fault>) {
    let mut rows = Rows::new();
    let mut faults = Vec::new();
    for file in files {
        for marker in markers(file, &mut faults) {
            let row = rows.entry((number(&marker.rule).unwrap_or(OTHERS), marker.rule)).or_default();
            let test = marker.test.map(|test| format!("`{test}` in ")).unwrap_or_default();
            row.tests.push(format!("{test}`{}`", file.path));
            if !marker.kept_in.is_empty() {
                row.kept_in.push(marker.kept_in);
            }
        }
    }
    (rows, faults)
}

fn text(rows: Rows) -> String {
    let mut text = TABLE.to_owned();
    for ((_, rule), Row { kept_in, tests }) in rows {
        let _ = writeln!(text, "| {rule} | {} | {} |", kept_in.join(", "), tests.join("; "));
    }
    text
}

/// The invariants of the architecture that are not among the tested ones.
pub(crate) fn without_test(architecture: &str, tested: &[u64]) -> Vec<u64> {
    let invariants = architecture.lines().filter_map(|line| line.split_once(". **")?.0.parse().ok());
    invariants.filter(|number| !tested.contains(number)).collect()
}

fn number(rule: &str) -> Option<u64> {
    rule.split_once(':')?.0.parse().ok()
}

fn markers(file: &TextFile, faults: &mut Vec<Fault>) -> Vec<Marker> {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let begin = at;
        let is_header = lines[at].starts_with("//! rule: ");
        let comment = if is_header { "//! " } else { "// " };
        let Some(first) = lines[at].strip_prefix(comment).and_then(|line| line.strip_prefix("rule: ")) else {
            at += 1;
            continue;
        };
        let (mut rule, mut kept_in) = (first.to_owned(), String::new());
        at += 1;
        while let Some(line) = lines.get(at).and_then(|line| line.strip_prefix(comment)) {
            if line.starts_with("rule: ") {
                break;
            }
            match line.strip_prefix("kept in: ") {
                Some(places) => kept_in.push_str(places),
                None if kept_in.is_empty() => rule = format!("{rule} {line}"),
                None => kept_in = format!("{kept_in} {line}"),
            }
            at += 1;
        }
        let test = if is_header { Some(None) } else { test_below(&lines[at..]).map(Some) };
        match test {
            Some(test) => found.push(Marker { rule, kept_in, test }),
            None => faults.push(Fault { place: format!("{}:{}", file.path, begin + 1), text: "stands above no test" }),
        }
    }
    found
}

/// The name of the test that begins in these lines.
fn test_below(lines: &[&str]) -> Option<String> {
    let lines = &lines[..lines.len().min(TEST_WITHIN)];
    let declared = lines.iter().position(|line| line.starts_with("fn "))?;
    let is_test = lines[..declared].contains(&"#[test]") && !lines[..declared].contains(&"");
    let name = lines[declared].strip_prefix("fn ")?.split('(').next()?;
    is_test.then(|| name.to_owned())
}

#[cfg(test)]
mod tests;
