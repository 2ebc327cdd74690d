//! The permitted imports between crates.
//!
//! Owns: the import table, the third-party allow-lists of the crates that are kept pure.
//! Does not own: paths inside a crate (`sources`).
//! Invariants: a crate without a row is a violation, so the table is complete; so is a row without a crate, so it is
//! not stale.

use anyhow::{Context, Result};
use serde_json::Value;

use super::violation::Violation;

const RULE: &str = "imports";

/// The permitted imports of one of our crates. Names are separated by spaces; ours lack the `afflux-` prefix.
struct Row {
    name: &'static str,
    /// Our crates, for its code.
    ours: &'static str,
    /// Our crates, additionally for its tests and benchmarks.
    ours_in_tests: &'static str,
    /// Third-party crates, for its code; `*` is no restriction.
    others: &'static str,
}

const fn row(name: &'static str, ours: &'static str, ours_in_tests: &'static str, others: &'static str) -> Row {
    Row { name, ours, ours_in_tests, others }
}

/// `linux-device` and `simulator` never see each other, and `simulator` does not see the workloads that run in it. A
/// cache needs `linux-device` alone; `linux-server` is for programs that serve. Front ends see `volume` and `frontend`
/// only. No crate sees `command`, `lab` or `checker`. The tests of a front end may see a world to run in. The tests of
/// `engine` and `volume` run in the simulator, which imports both: cargo builds such a circle for the programs in
/// `tests/`. `engine` imports itself there for its feature `rare-paths`.
const TABLE: &[Row] = &[
    row("figures", "", "", ""),
    row("frames", "", "figures", "crc32c libc rustix thiserror"),
    row("pages", "frames", "", "smallvec"),
    row("device", "frames pages", "", "bytesize crc32c serde slab thiserror"),
    row("engine", "device frames pages", "budget engine linux-policies reference simulator", "serde smallvec"),
    row("volume", "engine", "frames simulator", "bytes futures-util siphasher thiserror tokio"),
    row("frontend", "volume", "", "bytes futures-channel thiserror"),
    row("linux-device", "engine", "budget figures frames scratch", "io-uring libc rustix smallvec thiserror"),
    row(
        "linux-server",
        "engine frames frontend linux-device volume",
        "budget figures scratch",
        "bytes libc rustix sd-notify siphasher thiserror",
    ),
    row(
        "simulator",
        "budget engine frames frontend linux-policies object volume",
        "",
        "bytes bytesize futures-util thiserror toml",
    ),
    row("reference", "engine frames", "simulator", ""),
    row(
        "workloads",
        "engine frames frontend nfs linux-policies reference simulator volume",
        "figures scratch",
        "bytes futures-util hdrhistogram thiserror",
    ),
    row("checker", "engine frames linux-policies reference simulator", "workloads", "xflags"),
    row(
        "nfs",
        "frontend volume",
        "engine frames linux-device linux-server nfs-client scratch simulator",
        "bytes futures-util siphasher thiserror",
    ),
    row("fuse", "frontend volume", "engine frames scratch simulator", "bytes futures-util thiserror"),
    row(
        "command",
        "budget engine frames frontend fuse govern linux-device linux-server manual metrics nfs object object-store report tls volume",
        "disk gateway nfs-check nfs-client page-check scratch tls-client",
        "*",
    ),
    row(
        "lab",
        "engine experiments figures frames frontend linux-device linux-policies manual nfs report simulator volume workloads",
        "budget linux-policies page-check scratch",
        "*",
    ),
    // Each `cargo xtask` builds this crate first, so the build must take seconds only.
    row("xtask", "rig scratch", "", "anyhow serde_json xflags"),
    row("afflux", "budget engine frames linux-device", "scratch", "rustix thiserror"),
    row("c", "afflux linux-device", "scratch", "libc rustix"),
    row("budget", "device", "engine reference simulator", ""),
    row("govern", "budget", "disk scratch", "rustix serde serde_json thiserror"),
    row("manual", "report", "", "clap clap_complete clap_mangen roff"),
    row("metrics", "", "", "prometheus-client rustix"),
    row("mount-race", "experiments figures rig scratch", "", "*"),
    row("nfs-client", "", "scratch", "*"),
    row("nfs-check", "figures gateway nfs-client reference rig scratch", "engine frontend nfs simulator volume", "*"),
    row(
        "object",
        "engine volume",
        "budget frames reference simulator",
        "bytes crc32c futures-channel futures-util thiserror",
    ),
    row("object-store", "object", "gateway scratch volume", "*"),
    row("tls", "frontend", "tls-client", "bytes rustls rustls-webpki thiserror"),
    row("tls-client", "", "", "rcgen rustls"),
    row("page-check", "scratch", "", "*"),
    // xtask takes this crate, too.
    row("rig", "figures scratch", "", "xflags"),
    row("scratch", "", "", "rustix"),
    row("disk", "scratch", "", "fuser xflags"),
    row("gateway", "scratch", "", "rustix"),
    row("linux-policies", "engine", "reference simulator", "thiserror"),
    row("kernels", "engine frames simulator", "", "thiserror"),
    row("report", "", "page-check scratch", "bytesize serde serde_json"),
    row(
        "experiments",
        "disk engine figures frames frontend kernels nfs govern linux-policies nfs-client linux-device reference report scratch simulator volume workloads",
        "page-check",
        "*",
    ),
];

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

/// The violations in the output of `cargo metadata --no-deps`.
pub(crate) fn check(metadata: &Value) -> Result<Vec<Violation>> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut violations = Vec::new();
    for row in TABLE {
        if !names.iter().any(|name| short(name) == row.name) {
            violations.push(Violation::new(row.name, RULE, "has a row in the table and no crate"));
        }
    }
    for package in packages {
        let name = package["name"].as_str().context("a package has no name")?;
        let row = TABLE.iter().find(|row| row.name == short(name));
        let Some(row) = row else {
            violations.push(Violation::new(name, RULE, "has no row in the import table of tidy"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().context("no dependencies")?;
        violations.extend(dependencies.iter().filter_map(|edge| edge_violation(row, &names, edge)));
    }
    Ok(violations)
}

fn edge_violation(row: &Row, workspace: &[&str], dependency: &Value) -> Option<Violation> {
    let name = dependency["name"].as_str().unwrap_or_default();
    // Imports only for a model checker's build are for tests, too.
    let test_only = dependency["kind"].as_str() == Some("dev") || dependency["target"].as_str() == Some("cfg(loom)");
    let target = short(name);
    let allowed = if workspace.contains(&name) {
        has(row.ours, target) || test_only && has(row.ours_in_tests, target)
    } else {
        test_only || row.others == "*" || has(row.others, name)
    };
    (!allowed).then(|| {
        let what = if test_only { "tests may not import" } else { "may not import" };
        let place = format!("{} -> {target}", row.name);
        Violation::new(place, RULE, format!("{} {what} {target}", row.name))
    })
}

/// The names of the rows.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.name)
}

/// The package of a row.
#[cfg(test)]
pub(super) fn package(name: &str) -> String {
    if name == "afflux" || name == "xtask" { name.to_owned() } else { format!("afflux-{name}") }
}

/// The name of one of our packages without its prefix.
fn short(package: &str) -> &str {
    package.strip_prefix("afflux-").unwrap_or(package)
}
