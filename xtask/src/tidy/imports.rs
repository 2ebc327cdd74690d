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

/// The permitted imports of one of our crates. Ours are named without the `afflux-` prefix.
struct Row {
    name: &'static str,
    /// Our crates, for its code.
    ours: &'static [&'static str],
    /// Our crates, additionally for its tests and benchmarks.
    ours_in_tests: &'static [&'static str],
    /// Third-party crates, for its code; `None` is no restriction.
    others: Option<&'static [&'static str]>,
}

/// `linux-device` and `simulator` never see each other, and `simulator` does not see the workloads that run in it. A cache
/// needs `linux-device` alone; `linux-server` is for programs that serve. Front ends
/// see `volume` and `frontend` only. No crate sees `command`, `lab` or `checker`. The tests of a front end may see a
/// world to run in. The tests of `engine` and `volume` run in the simulator, which imports both: cargo builds such a
/// circle for the programs in `tests/`. `engine` imports itself there for its feature `rare-paths`.
const TABLE: &[Row] = &[
    Row { name: "frames", ours: &[], ours_in_tests: &[], others: Some(&["crc32c", "libc", "rustix", "thiserror"]) },
    Row { name: "pages", ours: &["frames"], ours_in_tests: &[], others: Some(&["smallvec"]) },
    Row {
        name: "device",
        ours: &["frames", "pages"],
        ours_in_tests: &[],
        others: Some(&["bytesize", "crc32c", "serde", "slab", "thiserror"]),
    },
    Row {
        name: "engine",
        ours: &["device", "frames", "pages"],
        ours_in_tests: &["budget", "engine", "linux-policies", "reference", "simulator"],
        others: Some(&["serde", "smallvec"]),
    },
    Row {
        name: "volume",
        ours: &["engine"],
        ours_in_tests: &["frames", "simulator"],
        others: Some(&["bytes", "futures-util", "siphasher", "thiserror", "tokio"]),
    },
    Row {
        name: "frontend",
        ours: &["volume"],
        ours_in_tests: &[],
        others: Some(&["bytes", "futures-channel", "thiserror"]),
    },
    Row {
        name: "linux-device",
        ours: &["engine"],
        ours_in_tests: &["budget", "frames", "scratch"],
        others: Some(&["io-uring", "libc", "rustix", "smallvec", "thiserror"]),
    },
    Row {
        name: "linux-server",
        ours: &["engine", "frames", "frontend", "linux-device", "volume"],
        ours_in_tests: &["budget", "scratch"],
        others: Some(&["bytes", "libc", "rustix", "sd-notify", "siphasher", "thiserror"]),
    },
    Row {
        name: "simulator",
        ours: &["budget", "engine", "frames", "frontend", "linux-policies", "object", "volume"],
        ours_in_tests: &[],
        others: Some(&["bytes", "bytesize", "futures-util", "thiserror", "toml"]),
    },
    Row { name: "reference", ours: &["engine", "frames"], ours_in_tests: &["simulator"], others: Some(&[]) },
    Row {
        name: "workloads",
        ours: &["engine", "frames", "frontend", "nfs", "linux-policies", "reference", "simulator", "volume"],
        ours_in_tests: &["scratch"],
        others: Some(&["bytes", "futures-util", "hdrhistogram", "thiserror"]),
    },
    Row {
        name: "checker",
        ours: &["engine", "frames", "linux-policies", "reference", "simulator"],
        ours_in_tests: &["workloads"],
        others: Some(&["xflags"]),
    },
    Row {
        name: "nfs",
        ours: &["frontend", "volume"],
        ours_in_tests: &["engine", "frames", "linux-device", "linux-server", "nfs-client", "scratch", "simulator"],
        others: Some(&["bytes", "futures-util", "siphasher", "thiserror"]),
    },
    Row {
        name: "fuse",
        ours: &["frontend", "volume"],
        ours_in_tests: &["engine", "frames", "scratch", "simulator"],
        others: Some(&["bytes", "futures-util", "thiserror"]),
    },
    Row {
        name: "command",
        ours: &[
            "budget",
            "engine",
            "frames",
            "frontend",
            "fuse",
            "govern",
            "linux-device",
            "linux-server",
            "manual",
            "metrics",
            "nfs",
            "object",
            "object-store",
            "report",
            "tls",
            "volume",
        ],
        ours_in_tests: &["disk", "gateway", "nfs-check", "nfs-client", "page-check", "scratch", "tls-client"],
        others: None,
    },
    Row {
        name: "lab",
        ours: &[
            "engine",
            "experiments",
            "frames",
            "frontend",
            "linux-device",
            "linux-policies",
            "manual",
            "nfs",
            "report",
            "simulator",
            "volume",
            "workloads",
        ],
        ours_in_tests: &["budget", "linux-policies", "page-check", "scratch"],
        others: None,
    },
    // Each `cargo xtask` builds this crate first, so the build must take seconds only.
    Row {
        name: "xtask",
        ours: &["rig", "scratch"],
        ours_in_tests: &[],
        others: Some(&["anyhow", "serde_json", "xflags"]),
    },
    Row {
        name: "afflux",
        ours: &["budget", "engine", "frames", "linux-device"],
        ours_in_tests: &["scratch"],
        others: Some(&["rustix", "thiserror"]),
    },
    Row {
        name: "c",
        ours: &["afflux", "linux-device"],
        ours_in_tests: &["scratch"],
        others: Some(&["libc", "rustix"]),
    },
    Row { name: "budget", ours: &["device"], ours_in_tests: &["engine", "reference", "simulator"], others: Some(&[]) },
    Row {
        name: "govern",
        ours: &["budget"],
        ours_in_tests: &["disk", "scratch"],
        others: Some(&["rustix", "serde", "serde_json", "thiserror"]),
    },
    Row {
        name: "manual",
        ours: &["report"],
        ours_in_tests: &[],
        others: Some(&["clap", "clap_complete", "clap_mangen", "roff"]),
    },
    Row { name: "metrics", ours: &[], ours_in_tests: &[], others: Some(&["prometheus-client", "rustix"]) },
    Row { name: "mount-race", ours: &["experiments", "rig", "scratch"], ours_in_tests: &[], others: None },
    Row { name: "nfs-client", ours: &[], ours_in_tests: &["scratch"], others: None },
    Row {
        name: "nfs-check",
        ours: &["gateway", "nfs-client", "reference", "rig", "scratch"],
        ours_in_tests: &["engine", "frontend", "nfs", "simulator", "volume"],
        others: None,
    },
    Row {
        name: "object",
        ours: &["engine", "volume"],
        ours_in_tests: &["budget", "frames", "reference", "simulator"],
        others: Some(&["bytes", "crc32c", "futures-channel", "futures-util", "thiserror"]),
    },
    Row { name: "object-store", ours: &["object"], ours_in_tests: &["gateway", "scratch", "volume"], others: None },
    Row {
        name: "tls",
        ours: &["frontend"],
        ours_in_tests: &["tls-client"],
        others: Some(&["bytes", "rustls", "rustls-webpki", "thiserror"]),
    },
    Row { name: "tls-client", ours: &[], ours_in_tests: &[], others: Some(&["rcgen", "rustls"]) },
    Row { name: "page-check", ours: &["scratch"], ours_in_tests: &[], others: None },
    // xtask takes this crate, too.
    Row { name: "rig", ours: &["scratch"], ours_in_tests: &[], others: Some(&["xflags"]) },
    Row { name: "scratch", ours: &[], ours_in_tests: &[], others: Some(&["rustix"]) },
    Row { name: "disk", ours: &["scratch"], ours_in_tests: &[], others: Some(&["fuser", "xflags"]) },
    Row { name: "gateway", ours: &["scratch"], ours_in_tests: &[], others: Some(&["rustix"]) },
    Row {
        name: "linux-policies",
        ours: &["engine"],
        ours_in_tests: &["reference", "simulator"],
        others: Some(&["thiserror"]),
    },
    Row { name: "kernels", ours: &["engine", "frames", "simulator"], ours_in_tests: &[], others: Some(&["thiserror"]) },
    Row {
        name: "report",
        ours: &[],
        ours_in_tests: &["page-check", "scratch"],
        others: Some(&["bytesize", "serde", "serde_json"]),
    },
    Row {
        name: "experiments",
        ours: &[
            "disk",
            "engine",
            "frames",
            "frontend",
            "kernels",
            "nfs",
            "govern",
            "linux-policies",
            "nfs-client",
            "linux-device",
            "reference",
            "report",
            "scratch",
            "simulator",
            "volume",
            "workloads",
        ],
        ours_in_tests: &["page-check"],
        others: None,
    },
];

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
        row.ours.contains(&target) || test_only && row.ours_in_tests.contains(&target)
    } else {
        test_only || row.others.is_none_or(|others| others.contains(&name))
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
