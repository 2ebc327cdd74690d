//! Rules about one source file at a time.
//!
//! Owns: module headers, names, the places of `unsafe`, the parts of the world that a crate may use.
//! Does not own: crate edges (`imports`), the waits of tests (`waits`), the reading of Rust (`lexer`).
//! Invariants: tests, benchmarks, examples and binaries may use the world; nothing else is exempt by place.

use super::lexer::{self, CodePath, Token};
use super::violation::Violation;
use crate::repository::TextFile;

/// The beginning of a path that may not be named, and the replacement.
type Ban = (&'static [&'static str], &'static str);

/// Parts of the world that a pure crate may not name.
const PURE: &[Ban] = &[
    (&["std", "time"], "ask the Platform: now(), wall_clock(), sleep_until()"),
    (&["std", "fs"], "files are the Device's"),
    (&["std", "net"], "sockets are the world's (IpAddr and SocketAddr are allowed)"),
    (&["std", "thread"], "ask the Platform: spawn()"),
    (&["std", "env"], "settings come from the caller"),
    (&["std", "process"], "a broken invariant asserts; the command ends the process"),
    (&["std", "*"], "name what is used"),
    (&["rand"], "ask the Platform: random_u64()"),
    (&["tokio"], "ask the Platform: spawn(), sleep_until()"),
    (&["io_uring"], "submit a Request to a Device"),
    (&["rustix"], "system calls are the world's"),
    (&["libc"], "system calls are the world's"),
];

/// Plain values that exist only in a banned module, and a lock that needs no runtime.
const PURE_VALUES: &[&[&str]] = &[
    &["std", "net", "IpAddr"],
    &["std", "net", "Ipv4Addr"],
    &["std", "net", "Ipv6Addr"],
    &["std", "net", "SocketAddr"],
    &["std", "process", "abort"],
    &["tokio", "sync", "Mutex"],
];

/// Sources of differences between two runs of one seed.
const SIMULATED: &[Ban] = &[
    (&["std", "time"], "a simulated world has its own clock"),
    (&["std", "thread"], "a simulated world runs on one thread"),
    (&["rand"], "randomness comes from the seed"),
];

/// The sources of the pure crates, and of those that run in virtual time, with their bans.
const BANS: [(&str, &[Ban]); 2] = [
    (
        "product/engine/src/ product/device/src/ product/pages/src/ product/volume/src/ product/frontend/src/ \
         product/nfs/src/ product/fuse/src/ product/object/src/ world/reference/src/ product/govern/src/law/",
        PURE,
    ),
    ("world/simulator/src/ laboratory/workloads/src/ world/checker/src/", SIMULATED),
];

/// Places where `unsafe` is allowed.
const UNSAFE_PATHS: &[&str] = &[
    "product/frames/",
    "product/pages/src/cache/",
    "product/pages/src/eviction/ghost.rs",
    "product/pages/src/memory/",
    "product/pages/src/page/table.rs",
    "product/linux-device/",
    "product/linux-server/",
    "product/afflux-c/src/",
    "product/afflux/tests/forked.rs",
    "tests/race/src/in_process/mapped.rs",
    "product/nfs/tests/allocations.rs",
];

/// As rustfmt.toml has it for code.
const COMMENT_COLUMNS_MAX: usize = 120;

const BAG_NAMES: &[&str] = &["util", "utils", "common", "misc", "helper", "helpers", "manager", "handler", "handlers"];

/// Violations of one Rust file.
pub(crate) fn check(file: &TextFile) -> Vec<Violation> {
    let tokens = lexer::tokens(&file.text);
    let mut violations = bag_names(file, &tokens);
    violations.extend(disallowed_unsafe(file, &tokens));
    violations.extend(wide_comments(file));
    if !is_test(&file.path) {
        violations.extend(header(file));
        violations.extend(inline_tests(file, &tokens));
        violations.extend(forbids_unsafe(file));
        violations.extend(bans(file, &lexer::paths(&tokens)));
    }
    violations
}

/// Whether a file is a test, a benchmark or an example, by its place.
pub(super) fn is_test(path: &str) -> bool {
    // The top folder `tests/` has crates of their own, with code and tests.
    let mut parts = path.strip_prefix("tests/").unwrap_or(path).split('/').rev();
    let name = parts.next().unwrap_or_default();
    name == "tests.rs" || parts.any(|part| ["tests", "benches", "examples"].contains(&part))
}

fn header(file: &TextFile) -> Vec<Violation> {
    let first = file.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).next();
    if first.is_some_and(|line| !line.is_empty()) {
        return Vec::new();
    }
    vec![Violation::new(
        format!("{}:1", file.path),
        "module-header",
        "the file has no `//!` line that says its purpose",
    )]
}

/// Comments that are wider than code. A line of a table cannot be broken.
fn wide_comments(file: &TextFile) -> Vec<Violation> {
    let is_wide = |line: &str| {
        let text = line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!', ' ']));
        text.is_some_and(|text| !text.starts_with('|')) && line.chars().count() > COMMENT_COLUMNS_MAX
    };
    let lines = file.text.lines().enumerate().filter(|(_, line)| is_wide(line));
    lines.map(|(index, _)| at(file, index + 1, "comment-width", "break the comment at 120 columns")).collect()
}

fn inline_tests(file: &TextFile, tokens: &[Token<'_>]) -> Vec<Violation> {
    tokens
        .windows(3)
        .filter(|three| three[0].text == "mod" && three[1].text == "tests" && three[2].text == "{")
        .map(|three| at(file, three[0].line, "test-layout", "tests stand in a file of their own, tests.rs"))
        .collect()
}

fn disallowed_unsafe(file: &TextFile, tokens: &[Token<'_>]) -> Vec<Violation> {
    if UNSAFE_PATHS.iter().any(|prefix| file.path.starts_with(prefix)) {
        return Vec::new();
    }
    let text = format!("unsafe code is allowed in {} alone", UNSAFE_PATHS.join(", "));
    tokens.iter().filter(|token| token.text == "unsafe").map(|token| at(file, token.line, "unsafe", &text)).collect()
}

/// The root of a crate without `unsafe` forbids it to the compiler.
fn forbids_unsafe(file: &TextFile) -> Vec<Violation> {
    let is_root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
    let folder = file.path.split("src/").next().unwrap_or_default();
    let is_code = |prefix: &&str| prefix.strip_prefix(folder).is_some_and(|rest| !rest.starts_with("tests/"));
    let excused = UNSAFE_PATHS.iter().any(is_code);
    if !is_root || excused || file.text.contains("#![forbid(unsafe_code)]") {
        return Vec::new();
    }
    vec![at(file, 1, "unsafe", "the crate's root lacks `#![forbid(unsafe_code)]`")]
}

fn bag_names(file: &TextFile, tokens: &[Token<'_>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for part in file.path.trim_end_matches(".rs").split('/') {
        if part.split(['_', '-']).any(|word| BAG_NAMES.contains(&word)) {
            violations.push(at(file, 1, "no-bag-names", &format!("'{part}' names nothing: name the thing owned")));
        }
    }
    for two in tokens.windows(2) {
        let name = two[1].text;
        let declares = ["mod", "struct", "enum", "trait", "type", "union"].contains(&two[0].text);
        if declares && words(name).iter().any(|word| BAG_NAMES.contains(&word.as_str())) {
            let text = format!("'{name}' names nothing: name the thing owned, or the verb done");
            violations.push(at(file, two[1].line, "no-bag-names", &text));
        }
    }
    violations
}

/// The words of a snake_case or CamelCase name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            found.push(String::new());
        }
        if letter != '_' {
            found.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
    }
    found
}

fn bans(file: &TextFile, paths: &[CodePath<'_>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (prefixes, banned) in BANS {
        if !prefixes.split(' ').any(|prefix| file.path.starts_with(prefix)) || file.path.contains("/src/bin/") {
            continue;
        }
        for path in paths {
            let value = PURE_VALUES.iter().any(|value| path.parts.starts_with(value));
            let ban = banned.iter().find(|(ban, _)| path.parts.starts_with(ban));
            if let (false, Some((_, instead))) = (value, ban) {
                let text = format!("{} is not for this crate: {instead}", path.parts.join("::"));
                violations.push(at(file, path.line, "bans", &text));
            }
        }
    }
    violations
}

fn at(file: &TextFile, line: usize, rule: &'static str, text: &str) -> Violation {
    Violation::new(format!("{}:{line}", file.path), rule, text)
}
