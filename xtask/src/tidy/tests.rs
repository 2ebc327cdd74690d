use serde_json::{Value, json};

use super::{Violation, absences, apart, check, circles, claims, documents, imports, lexer, sources};
use crate::repository::TextFile;

const HEADER: &str = "//! Purpose.\n//!\n//! Owns: a.\n//! Does not own: b.\n//! Invariants: c.\n";

// rule: files of a crate import one way
// kept in: `xtask/src/tidy/circles.rs`
#[test]
fn the_repository_is_tidy() {
    let violations = check().unwrap();
    let lines: Vec<String> = violations.iter().map(|v| format!("{}: {}: {}", v.place, v.rule, v.text)).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

fn rules(path: &str, text: &str) -> Vec<(&'static str, String)> {
    let file = TextFile { path: path.to_owned(), text: format!("{HEADER}{text}") };
    sources::check(&file).into_iter().map(|violation| (violation.rule, violation.place)).collect()
}

/// The rules that `text` breaks as a file of the engine.
fn engine(text: &str) -> Vec<&'static str> {
    rules("product/engine/src/flush.rs", text).into_iter().map(|(rule, _)| rule).collect()
}

#[test]
fn a_pure_crate_may_not_name_the_world_however_it_is_spelled() {
    for text in [
        "use std::time::Instant;",
        "use std::{sync::Arc, time::{Instant}};",
        "fn f() { let _ = std::thread::current(); }",
        "use ::std::fs;",
        "use std::net::TcpStream;",
        "use std::*;",
        "use tokio::time::sleep;",
        "use tokio::sync::mpsc;",
        "fn f() -> u64 { rand::random() }",
        "use io_uring::IoUring;",
        "const HOME: Option<&str> = std::env::var_os(\"HOME\");",
    ] {
        assert_eq!(engine(text), ["bans"], "{text}");
        assert_eq!(rules("product/volume/src/a.rs", text).len(), 1, "{text}");
        assert_eq!(rules("product/frontend/src/a.rs", text).len(), 1, "{text}");
        assert_eq!(rules("product/nfs/src/a.rs", text).len(), 1, "{text}");
        assert!(rules("product/linux-device/src/a.rs", text).is_empty(), "{text}");
    }
    let two = engine("use std::{\n    fs,\n    io,\n    thread,\n};");
    assert_eq!(two, ["bans", "bans"]);
}

#[test]
fn a_pure_crate_may_name_plain_values_and_speak_of_the_world() {
    for text in [
        "use std::net::{IpAddr, SocketAddr};",
        "use tokio::sync::Mutex;",
        "use std::sync::Arc;",
        "// std::time::Instant is banned",
        "/// See `std::fs`.\nfn f() {}",
        "const TEXT: &str = \"std::fs \\\" std::env\"; const RAW: &str = r#\"std::net\"#;",
        "fn f<'a>(time: &'a str) -> char { '\"' }",
        "use my::std::Widget;",
    ] {
        assert!(engine(text).is_empty(), "{text}: {:?}", engine(text));
    }
}

#[test]
fn what_runs_in_virtual_time_names_no_clock_and_no_thread() {
    for place in ["world/simulator", "world/reference", "laboratory/workloads", "world/checker"] {
        for text in ["use std::time::Instant;", "fn f() { std::thread::spawn(g); }"] {
            assert_eq!(rules(&format!("{place}/src/a.rs"), text).len(), 1, "{place}: {text}");
        }
    }
    assert!(rules("world/checker/src/bin/soak.rs", "use std::time::Instant;").is_empty());
}

#[test]
fn a_comment_is_as_wide_as_code_unless_it_is_a_table() {
    let words = |first: &str, columns: usize| format!("{first}{}", "é".repeat(columns - first.len()));
    assert_eq!(engine(&words("    /// ", 121)), ["comment-width"]);
    assert_eq!(engine(&words("//! ", 121)), ["comment-width"]);
    for text in [words("    /// ", 120), words("/// | ", 160), words("const TEXT: &str = \"", 160) + "\";"] {
        assert!(engine(&text).is_empty(), "{text}");
    }
}

#[test]
fn tests_may_name_the_world() {
    assert!(rules("product/engine/src/flush/tests.rs", "use std::thread;").is_empty());
    assert!(rules("product/engine/tests/threads.rs", "use std::thread;").is_empty());
}

#[test]
fn a_file_says_its_purpose_first() {
    for text in ["", "use a::b;\n", "//!\n//! Purpose.\n", "// Purpose.\n"] {
        let file = TextFile { path: "product/command/src/a.rs".into(), text: text.into() };
        let found = sources::check(&file);
        assert_eq!(found.len(), 1, "{text:?}");
        assert_eq!(found[0].rule, "module-header");
    }
    assert!(rules("product/command/src/a.rs", "").is_empty());
    assert!(rules("tests/nfs-client/src/a.rs", "").is_empty());
}

#[test]
fn unsafe_stands_in_its_places_alone() {
    let text = "fn f() { unsafe { g() } }";
    assert_eq!(rules("product/volume/src/a.rs", text), [("unsafe", "product/volume/src/a.rs:6".to_owned())]);
    assert_eq!(engine(text), ["unsafe"]);
    assert_eq!(rules("product/command/tests/a.rs", text).len(), 1);
    assert!(rules("product/pages/src/memory/copy.rs", text).is_empty());
    assert!(rules("product/frames/src/arena.rs", text).is_empty());
    assert!(rules("product/volume/src/a.rs", "// unsafe\n#![forbid(unsafe_code)]").is_empty());
}

#[test]
fn a_root_without_unsafe_forbids_it() {
    assert_eq!(rules("product/volume/src/lib.rs", "")[0].0, "unsafe");
    assert!(rules("product/volume/src/lib.rs", "#![forbid(unsafe_code)]").is_empty());
    assert!(rules("product/pages/src/lib.rs", "").is_empty());
}

#[test]
fn bag_names_are_found_in_files_modules_and_types() {
    for text in ["mod utils;", "pub struct CacheManager;", "enum Handler {}", "trait io_helper {}", "type Misc = u8;"] {
        assert_eq!(engine(text), ["no-bag-names"], "{text}");
    }
    assert_eq!(rules("product/command/src/common.rs", "")[0].0, "no-bag-names");
    assert_eq!(rules("product/command/src/string_util/parse.rs", "")[0].0, "no-bag-names");
    assert!(engine("struct Commonwealth; mod handlebar; fn manager() {}").is_empty());
}

#[test]
fn tests_stand_in_their_own_file() {
    assert_eq!(engine("#[cfg(test)]\nmod tests {\n}"), ["test-layout"]);
    assert!(engine("#[cfg(test)]\nmod tests;").is_empty());
}

fn package(name: &str, edges: &[(&str, Option<&str>)]) -> Value {
    let edges: Vec<Value> = edges.iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect();
    json!({ "name": name, "dependencies": edges })
}

/// The violations of a workspace that is complete except for one crate's edges.
fn edges(name: &str, edges: &[(&str, Option<&str>)]) -> Vec<Violation> {
    let row = |other: &str| package(&imports::package(other), if other == name { edges } else { &[] });
    let packages: Vec<Value> = imports::names().map(row).collect();
    imports::check(&json!({ "packages": packages })).unwrap()
}

#[test]
fn every_forbidden_edge_is_named() {
    for (from, to, kind) in [
        ("frames", "afflux-engine", None),
        ("pages", "afflux-device", None),
        ("device", "afflux-engine", None),
        ("budget", "afflux-engine", None),
        ("engine", "afflux-volume", None),
        ("engine", "afflux-simulator", None),
        ("engine", "tokio", None),
        ("engine", "bytes", None),
        ("volume", "afflux-linux-device", None),
        ("linux-device", "afflux-simulator", None),
        ("linux-device", "afflux-simulator", Some("dev")),
        ("linux-device", "tokio", None),
        ("simulator", "afflux-linux-device", Some("dev")),
        ("simulator", "afflux-workloads", Some("dev")),
        ("reference", "afflux-simulator", None),
        ("workloads", "afflux-checker", None),
        ("checker", "afflux-workloads", None),
        ("command", "afflux-checker", None),
        ("command", "afflux-simulator", None),
        ("command", "afflux-linux-policies", None),
        ("command", "afflux-experiments", None),
        ("lab", "afflux-checker", None),
        ("nfs", "afflux-engine", None),
        ("fuse", "afflux-engine", None),
        ("linux-device", "afflux-fuse", None),
        ("frontend", "afflux-engine", None),
        ("frontend", "afflux-nfs", None),
        ("volume", "afflux-frontend", None),
        ("volume", "afflux-command", Some("dev")),
        ("engine", "io-uring", Some("build")),
    ] {
        let found = edges(from, &[(to, kind)]);
        let place = format!("{from} -> {}", to.trim_start_matches("afflux-"));
        assert_eq!(found.len(), 1, "{place}: {found:?}");
        assert_eq!((found[0].rule, &found[0].place), ("imports", &place));
    }
}

#[test]
fn allowed_edges_pass() {
    assert!(edges("engine", &[("afflux-frames", None), ("afflux-device", None), ("smallvec", None)]).is_empty());
    assert!(edges("engine", &[("afflux-simulator", Some("dev")), ("proptest", Some("dev"))]).is_empty());
    assert!(edges("nfs", &[("afflux-volume", None), ("afflux-engine", Some("dev"))]).is_empty());
    assert!(edges("command", &[("afflux-linux-device", None), ("clap", None)]).is_empty());
}

#[test]
fn what_only_the_model_checker_imports_is_for_tests() {
    let edge = |target: &str| json!({ "name": "loom", "kind": null, "target": target });
    let check = |target: &str| {
        let others = imports::names().filter(|name| *name != "pages");
        let mut packages: Vec<Value> = others.map(|name| package(&imports::package(name), &[])).collect();
        packages.push(json!({ "name": "afflux-pages", "dependencies": [edge(target)] }));
        imports::check(&json!({ "packages": packages })).unwrap().len()
    };
    assert_eq!(check("cfg(loom)"), 0);
    assert_eq!(check("cfg(unix)"), 1);
}

#[test]
fn a_crate_without_a_row_and_a_row_without_a_crate_are_violations() {
    let found = imports::check(&json!({ "packages": [package("afflux-stray", &[])] })).unwrap();
    assert!(found.iter().any(|violation| violation.place == "afflux-stray"));
    for name in imports::names() {
        assert!(found.iter().any(|violation| violation.place == name), "{name}");
    }
}

#[test]
fn a_document_names_paths_that_exist() {
    let paths: Vec<String> =
        ["README.md", "product/engine/src/lib.rs", "docs/reference/knobs.md"].map(String::from).to_vec();
    let missing = |text: &str| {
        let document = TextFile { path: "docs/map.md".into(), text: text.into() };
        documents::missing_paths(&document, &paths).len()
    };
    assert_eq!(missing("see `product/engine/src/gone.rs`"), 1);
    assert_eq!(missing("see `product/none/` and `docs/none.md`, `none.rs`"), 3);
    assert_eq!(missing("`product/engine/src/lib.rs` `engine/src/lib.rs` `product/engine/` `knobs.md` `lib.rs`"), 0);
    assert_eq!(missing("`std::fs` `a/b` `/mnt/x` `nfs://h/f` `--set KNOB=VALUE` `~/.config/afflux/config.toml`"), 0);
    assert_eq!(missing("```\n`product/gone.rs`\n```"), 0);
    let source = |text: &str| TextFile { path: "product/engine/src/lib.rs".into(), text: text.into() };
    let missing = |text: &str| documents::missing_rule_paths(&source(text), &paths).len();
    assert_eq!(
        missing("//! rule: a\n//! kept in: `product/engine/src/gone.rs`, `lib.rs`,\n//! `gone.rs`\nuse `gone.rs`"),
        2
    );
    assert_eq!(missing("// See `product/engine/src/gone.rs`.\n// kept in: `product/engine/src/lib.rs`"), 0);
}

#[test]
fn a_link_leads_to_a_file_and_a_heading_that_exist() {
    let paths = ["README.md", "docs/use/a.md", "docs/b.md"].map(String::from);
    let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
    let other = file("docs/b.md", "# Title\n## A copy, over `x`\n```\n# no heading\n```\n");
    let dead = |text: &str| {
        let own = file("docs/use/a.md", text);
        documents::dead_links(&own, &[own.clone(), other.clone()], &paths).len()
    };
    assert_eq!(
        dead("[b](../b.md) [top](../../README.md) [docs](../) [part](../b.md#a-copy-over-x) [web](https://x.org/a)"),
        0
    );
    assert_eq!(dead("# Own part\n[own](#own-part)"), 0);
    assert_eq!(dead("[a](b.md) [b](../b.md#gone) [c](../b.md#no-heading) [d](#gone) [e](../../docs/c.md)"), 5);
}

#[test]
fn documents_have_an_end() {
    let file = |path: &str, words: usize| TextFile { path: path.into(), text: "a | ".repeat(words) };
    let found = |files: &[TextFile]| documents::too_long(files).len();
    assert_eq!(found(&[file("docs/results.md", 3_500), file("README.md", 29_000), file("notebook/a.md", 90_000)]), 0);
    assert_eq!(found(&[file("docs/results.md", 3_501), file("README.md", 33_300)]), 2);
}

#[test]
fn a_table_of_figures_names_a_command_whose_small_form_runs_every_night() {
    let check = |path: &str, text: &str, steps: &[&str]| {
        let document = TextFile { path: path.into(), text: text.into() };
        claims::check(&[document], steps).len()
    };
    let steps: Vec<&str> = crate::nightly::steps().collect();
    let (named, unnamed) = ("# T\n## A\n`cargo xtask race-nfs`\n|-|-|\n", "# T\n## A\n`cargo xtask magic`\n|-|-|\n");
    assert_eq!(check("docs/results.md", named, &steps), 0);
    assert_eq!(check("docs/results.md", "# T\n## A\n`A=1 B=2 cargo test -p afflux-command x`\n|-|-|\n", &steps), 0);
    assert_eq!(check("docs/results.md", unnamed, &steps), 1);
    assert_eq!(check("docs/use/live.md", unnamed, &steps), 0);
    assert!(check("docs/results.md", named, &steps[1..4]) > 10, "rows without a step");
}

#[test]
fn tokens_keep_their_lines_and_leave_out_text() {
    let found: Vec<(&str, usize)> = lexer::tokens("a /* b\n */ c\n\"d\ne\" f::g 'h' 'i")
        .into_iter()
        .map(|token| (token.text, token.line))
        .collect();
    assert_eq!(found, [("a", 1), ("c", 2), ("f", 4), ("::", 4), ("g", 4), ("'", 4), ("i", 4)]);
}

/// The circles of a crate `x` whose modules are these texts, but for those that are kept.
fn circles_of(modules: &[(&str, &str)], kept: &str) -> Vec<String> {
    let file =
        |(path, text): &(&str, &str)| TextFile { path: format!("product/x/src/{path}"), text: (*text).to_owned() };
    let files: Vec<TextFile> = modules.iter().map(file).collect();
    circles::check(&files, kept).into_iter().map(|violation| violation.text).collect()
}

#[test]
fn a_circle_between_files_is_found_however_it_is_spelled() {
    let found = ["a, b import each other: let imports run one way"];
    for (a, b) in [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use super::b::B;", "fn f() { crate::a::f() }"),
        ("use crate::{b::{B, C}, c};", "use crate::a;"),
    ] {
        assert_eq!(circles_of(&[("a.rs", a), ("b/mod.rs", b), ("c.rs", "")], ""), found, "{a} {b}");
    }
    let inside =
        [("a/mod.rs", "fn f() { x::g() }"), ("a/x.rs", "use super::super::b::B;"), ("b.rs", "use crate::a::A;")];
    assert_eq!(circles_of(&inside, ""), ["a, a/x, b import each other: let imports run one way"]);
    let turning = [("a/mod.rs", "mod x; mod y;"), ("a/x.rs", "use super::y::Y;"), ("a/y.rs", "use super::x::X;")];
    assert_eq!(circles_of(&turning, ""), ["a/x, a/y import each other: let imports run one way"]);
    let root = [("main.rs", "fn f() { a::g() } struct R;"), ("a.rs", "use crate::R;")];
    assert_eq!(circles_of(&root, ""), ["., a import each other: let imports run one way"]);
    let three = [("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a;")];
    assert_eq!(circles_of(&three, ""), ["a, b, c import each other: let imports run one way"]);
}

#[test]
fn what_runs_one_way_is_no_circle() {
    let one_way = [("lib.rs", "mod a; mod b; pub use a::A;"), ("a.rs", "use crate::b::B; use crate::A;"), ("b.rs", "")];
    assert!(circles_of(&one_way, "").is_empty());
    let inside = [("a/mod.rs", "use self::x::X;"), ("a/x.rs", "use super::y::Y;"), ("a/y.rs", "")];
    assert!(circles_of(&inside, "").is_empty());
    let tested = [("a.rs", "use crate::b::B;"), ("b.rs", "// crate::a::A"), ("b/tests.rs", "use crate::a::A;")];
    assert!(circles_of(&tested, "").is_empty());
    let scoped = [("a/mod.rs", "use x::X; mod x;"), ("a/x.rs", "pub(in crate::a) struct X;")];
    assert!(circles_of(&scoped, "").is_empty());
}

/// A name that a file only passes on is an import of the file that declares it.
#[test]
fn a_name_is_followed_to_the_file_that_declares_it() {
    let passed = ("a/mod.rs", "pub(crate) use x::{X, Y as Z}; pub use y::*; mod x; mod y;");
    for (x, y) in [("use super::W;", "pub struct W;"), ("use crate::a::W;", "struct W;"), ("", "use super::{X, Z};")] {
        assert!(circles_of(&[passed, ("a/x.rs", x), ("a/y.rs", y)], "").is_empty(), "{x} {y}");
    }
    for (x, y) in [("use super::W;", "pub enum W {} use super::X;"), ("use super::y;", "use crate::a::Z as Q;")] {
        assert_eq!(circles_of(&[passed, ("a/x.rs", x), ("a/y.rs", y)], "").len(), 1, "{x} {y}");
    }
    let unused = ("a/mod.rs", "pub use x::X; struct S;");
    assert!(circles_of(&[unused, ("a/x.rs", "use super::S;")], "").is_empty());
    let used = ("a/mod.rs", "pub use x::X; fn f(x: X) {} struct S;");
    assert_eq!(circles_of(&[used, ("a/x.rs", "use super::S;")], "").len(), 1);
    for mixed in ["pub(crate) use y::Y; use x::X; struct S;", "fn f() -> impl T + use<R> { x::g() } struct S;"] {
        assert_eq!(circles_of(&[("a/mod.rs", mixed), ("a/x.rs", "use super::S;")], "").len(), 1, "{mixed}");
    }
    let endless = [("a.rs", "pub use crate::b::T;"), ("b.rs", "pub use crate::a::T;"), ("c.rs", "use crate::a::T;")];
    assert!(circles_of(&endless, "").is_empty());
}

#[test]
fn a_circle_that_is_kept_has_a_row_and_a_row_its_circle() {
    let circle = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
    let list = "# list\nproduct/x | a b | they are one";
    assert!(circles_of(&circle, list).is_empty());
    assert_eq!(circles_of(&circle[..1], list).len(), 1);
    assert_eq!(circles_of(&circle, "product/x | a b | ").len(), 2, "a reason is missing");
}

#[test]
fn an_error_may_not_pass_for_an_absence_where_everything_is_looked_for() {
    let found =
        |path: &str, text: &str| absences::check(&TextFile { path: path.to_owned(), text: text.to_owned() }).len();
    for text in [
        "fn f() { look().await.unwrap_or_default() }",
        "fn f() { look().ok()? }",
        "fn f() { if let Ok(found) = look() {} }",
        "fn f() { let Ok(found) = look() else { return }; }",
        "fn f() { looks().filter_map(Result::ok) }",
        "fn f() { look().is_ok_and(|it| it) }",
        "fn f() { look().unwrap_or(false) }",
        "fn f() { looks().into_iter().flatten() }",
    ] {
        assert_eq!(found("product/volume/src/search/walk.rs", text), 1, "{text}");
    }
    let awaited = "fn f() { look().await.unwrap_or_default() }";
    assert_eq!(found("product/nfs/src/rpc.rs", awaited), 1);
    assert_eq!(found("product/nfs/src/rpc.rs", "fn f() { look().ok()? }"), 0);
    assert_eq!(found("product/volume/src/search/walk.rs", "fn f() { match look() { Err(NotFound) => {} } }"), 0);
    assert_eq!(absences::missing(&[]).len(), 2);
}

#[test]
fn finds_a_version_that_names_the_other() {
    let count = |path: &str, text: &str| apart::check(&TextFile { path: path.to_owned(), text: text.to_owned() }).len();
    assert_eq!(count("product/nfs/src/v3/mount.rs", "use crate::v4::state;"), 1);
    assert_eq!(count("product/nfs/src/v4/codec.rs", "use super::super::v3::arguments;"), 1);
    assert_eq!(count("product/nfs/src/v4/codec.rs", "use super::state; // as v3 does"), 0);
    assert_eq!(count("product/nfs/src/connection.rs", "use crate::{v3, v4};"), 0);
}
