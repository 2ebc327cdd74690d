//! Waits of tests that end by the clock.
//!
//! Owns: the names of such waits.
//! Does not own: the files that may have them (`xtask/waits.txt`), waits for conditions (`afflux_scratch`), the reading
//! of Rust (`lexer`).
//! Invariants: a file of the table has exactly as many as the list says, so that the list can only grow by a visible
//! change, and shrinks with the code. Benchmarks measure real time and are left alone.

use super::lexer::{self, CodePath, Token};
use super::sources::is_test;
use super::violation::Violation;
use crate::list;
use crate::repository::TextFile;

const RULE: &str = "timed-wait";
/// The files that may have such waits, and why.
const LIST: &str = include_str!("../../waits.txt");

/// Functions and methods that wait for a time or compare with one, whatever they are called on.
const NAMES: &str = "clock_nanosleep elapsed epoll_wait nanosleep park_timeout park_timeout_ms ppoll pselect \
    recv_deadline recv_timeout set_read_timeout set_timeout set_write_timeout sleep_ms timerfd_create \
    usleep wait_timeout wait_timeout_ms wait_timeout_while";

/// The ends of paths of such functions.
const PATHS: &[&[&str]] = &[
    &["thread", "sleep"],
    &["time", "sleep"],
    &["time", "sleep_until"],
    &["time", "timeout"],
    &["time", "interval"],
    &["event", "poll"],
    &["event", "select"],
];

/// Words of a world with a real clock. In a test with one of them, `sleep_until` is a real wait.
const REAL_WORLDS: &[&str] = &["LinuxPlatform", "Reactors"];

/// Tests with such waits: the file, how many. Why is for the reader of the list.
fn listed() -> impl Iterator<Item = (&'static str, usize)> {
    list::rows(LIST).map(|[path, count, _why]| (path, count.parse().unwrap_or(0)))
}

/// Violations of one Rust file.
pub(crate) fn check(file: &TextFile) -> Vec<Violation> {
    let listed = listed().find(|(path, _)| *path == file.path);
    if !is_test(&file.path) || file.path.contains("/benches/") {
        return Vec::new();
    }
    let tokens = lexer::tokens(&file.text);
    let lines = waits(&tokens, &lexer::paths(&tokens));
    let allowed = listed.map_or(0, |(_, count)| count);
    let at = |line: usize, text: &str| Violation::new(format!("{}:{line}", file.path), RULE, text);
    if lines.len() < allowed {
        return vec![at(1, &format!("has {} timed waits, and xtask/waits.txt says {allowed}: lower it", lines.len()))];
    }
    let text =
        "a test waits for a condition (afflux_scratch::eventually), an event or virtual time, and not for the clock";
    lines.into_iter().skip(allowed).map(|line| at(line, text)).collect()
}

/// Files of the table that are not there.
pub(crate) fn absent(paths: &[String]) -> Vec<Violation> {
    let absent = listed().filter(|(path, _)| !paths.iter().any(|there| there == path));
    absent.map(|(path, _)| Violation::new(path, RULE, "is in xtask/waits.txt, and is no file")).collect()
}

/// The lines of timed waits.
fn waits(tokens: &[Token<'_>], paths: &[CodePath<'_>]) -> Vec<usize> {
    let is_real = tokens.iter().any(|token| REAL_WORLDS.contains(&token.text));
    let is_called = |two: &[Token<'_>]| two[1].text == "(";
    let named = tokens
        .windows(2)
        .filter(|two| is_called(two))
        .filter(|two| NAMES.split(' ').any(|name| name == two[0].text) || (is_real && two[0].text == "sleep_until"));
    let by_name = named.map(|two| two[0].line);
    let by_path = paths.iter().filter(|path| PATHS.iter().any(|end| path.parts.ends_with(end))).map(|path| path.line);
    let mut lines: Vec<usize> = by_name.chain(by_path).collect();
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests;
