//! Waits of tests that end by the clock.
//!
//! Owns: the names of such waits, the files that may have them, and why.
//! Does not own: waits for conditions (`afflux_scratch`), the reading of Rust (`lexer`).
//! Invariants: a file of the table has exactly as many as the table says, so that the table can only grow by a visible
//! change, and shrinks with the code. Benchmarks measure real time and are left alone.

use super::lexer::{self, CodePath, Token};
use super::sources::is_test;
use super::violation::Violation;
use crate::repository::TextFile;

const RULE: &str = "timed-wait";

/// Functions and methods that wait for a time or compare with one, whatever they are called on.
const NAMES: &[&str] = &[
    "clock_nanosleep",
    "elapsed",
    "epoll_wait",
    "nanosleep",
    "park_timeout",
    "park_timeout_ms",
    "ppoll",
    "pselect",
    "recv_deadline",
    "recv_timeout",
    "set_read_timeout",
    "set_timeout",
    "set_write_timeout",
    "sleep_ms",
    "timerfd_create",
    "usleep",
    "wait_timeout",
    "wait_timeout_ms",
    "wait_timeout_while",
];

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

/// A guard against hangs: the test waits for an event, and fails if none comes.
const GUARD: &str = "it waits for an event; the end of the time is a failure";
const MEASURES: &str = "the time that something takes is under test, or only printed";
const PACE: &str = "the pace of a load; nothing follows from it";
const VIRTUAL: &str = "the runtime's clock stands still here, and the test moves it";

/// Tests with such waits: the file, how many, and why.
const LISTED: &[(&str, usize, &str)] = &[
    ("laboratory/workloads/tests/runs/simulation.rs", 3, "a time in virtual time has this name"),
    ("product/afflux/examples/copy.rs", 2, "an example prints its progress"),
    ("product/afflux/src/ending/tests.rs", 4, GUARD),
    ("product/afflux/tests/kills.rs", 1, "the instant of a kill is random"),
    (
        "product/afflux/tests/library/cancelled.rs",
        4,
        "a poll may come a little later, and each loop fails after its time",
    ),
    (
        "product/afflux/tests/library/endings.rs",
        6,
        "the end of a cache keeps its bound, and a frozen file system thaws",
    ),
    ("product/afflux/tests/library/foreign_wakers.rs", 8, GUARD),
    ("product/afflux/tests/library/hung_mount.rs", 2, GUARD),
    ("product/afflux/tests/out_of_threads.rs", 2, GUARD),
    ("product/afflux/tests/redb.rs", 1, "the instant of a kill is random"),
    ("product/command/tests/end_to_end/client.rs", 1, GUARD),
    ("product/command/tests/end_to_end/hanging.rs", 1, GUARD),
    ("product/command/tests/end_to_end/kept_by_systemd.rs", 2, PACE),
    ("product/command/tests/end_to_end/locks.rs", 1, MEASURES),
    ("product/command/tests/end_to_end/kept_mounts.rs", 1, MEASURES),
    ("product/command/tests/end_to_end/kills.rs", 5, MEASURES),
    ("product/command/tests/end_to_end/random_operations.rs", 2, "a server that stands still for a while is the fault"),
    ("product/command/tests/end_to_end/service.rs", 1, GUARD),
    ("product/govern/tests/throttled.rs", 5, "the governor samples the speed of a real disk"),
    ("product/linux-server/src/filter/tests.rs", 1, MEASURES),
    ("product/linux-server/src/host/tests/data.rs", 1, MEASURES),
    ("product/linux-server/src/host/tests/frozen.rs", 3, GUARD),
    ("product/linux-server/src/host/tests/names.rs", 1, "a directory rests before its listing is kept"),
    ("product/linux-server/src/net/tests.rs", 1, GUARD),
    ("product/linux-device/src/platform/tests.rs", 3, "the platform's own sleep is under test"),
    ("product/linux-device/src/pool/tests.rs", 1, GUARD),
    ("product/linux-server/src/device_pools/tests.rs", 1, GUARD),
    ("product/linux-device/tests/real/completions.rs", 1, GUARD),
    ("product/linux-device/tests/real/engine_threads.rs", 1, GUARD),
    ("product/linux-device/tests/real/races.rs", 1, GUARD),
    ("product/metrics/src/listener/tests.rs", 2, GUARD),
    ("product/nfs/tests/protocol/peer.rs", 1, GUARD),
    ("product/object-store/src/records/log/tests.rs", 3, VIRTUAL),
    ("product/object-store/src/tests/process.rs", 4, VIRTUAL),
    ("product/object-store/src/tests/store.rs", 1, VIRTUAL),
    ("product/object-store/src/tests/writer.rs", 1, VIRTUAL),
    ("product/object-store/tests/stores/child.rs", 1, GUARD),
    ("product/object-store/tests/stores/growth.rs", 1, MEASURES),
    ("tests/gateway/src/relay/tests.rs", 3, "a relay delays at least so long, also on a busy machine"),
    ("tests/scratch/src/waiting/tests.rs", 1, "the wait itself is under test"),
    ("xtask/src/limited/tests.rs", 1, "the time limit of a test program is under test"),
];

/// Violations of one Rust file.
pub(crate) fn check(file: &TextFile) -> Vec<Violation> {
    let listed = LISTED.iter().find(|(path, ..)| *path == file.path);
    if !is_test(&file.path) || file.path.contains("/benches/") {
        return Vec::new();
    }
    let tokens = lexer::tokens(&file.text);
    let lines = waits(&tokens, &lexer::paths(&tokens));
    let allowed = listed.map_or(0, |(_, count, _)| *count);
    let at = |line: usize, text: &str| Violation::new(format!("{}:{line}", file.path), RULE, text);
    if lines.len() < allowed {
        return vec![at(1, &format!("has {} timed waits, and the table says {allowed}: lower it", lines.len()))];
    }
    let text =
        "a test waits for a condition (afflux_scratch::eventually), an event or virtual time, and not for the clock";
    lines.into_iter().skip(allowed).map(|line| at(line, text)).collect()
}

/// Files of the table that are not there.
pub(crate) fn absent(paths: &[String]) -> Vec<Violation> {
    let absent = LISTED.iter().filter(|(path, ..)| !paths.iter().any(|there| there == path));
    absent.map(|(path, ..)| Violation::new(*path, RULE, "is in the table of timed waits, and is no file")).collect()
}

/// The lines of timed waits.
fn waits(tokens: &[Token<'_>], paths: &[CodePath<'_>]) -> Vec<usize> {
    let is_real = tokens.iter().any(|token| REAL_WORLDS.contains(&token.text));
    let is_called = |two: &[Token<'_>]| two[1].text == "(";
    let named = tokens
        .windows(2)
        .filter(|two| is_called(two))
        .filter(|two| NAMES.contains(&two[0].text) || (is_real && two[0].text == "sleep_until"));
    let by_name = named.map(|two| two[0].line);
    let by_path = paths.iter().filter(|path| PATHS.iter().any(|end| path.parts.ends_with(end))).map(|path| path.line);
    let mut lines: Vec<usize> = by_name.chain(by_path).collect();
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests;
