//! Tests that were skipped in a run.
//!
//! Owns: the file to which the tests write their skips, the reasons that a gate accepts.
//! Does not own: the line of a test (`afflux_scratch::skipped!`), the probes of this machine (`ability`).
//! Invariants: each run begins with an empty file. A gate fails for a skipped test whose reason is not in the table,
//! and for one that this machine has the ability to run. Each excuse has a probe of the ability.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, bail};

use crate::repository;

mod ability;

pub(crate) use ability::{has_lists_of_packages, has_taps, is_root, may_mount};

/// Reasons that a gate accepts, on a machine that lacks an ability.
struct Excuse {
    /// Why a gate accepts them.
    because: &'static str,
    /// Parts of the skipped tests' reasons.
    reasons: &'static [&'static str],
    /// Whether this machine has the ability that the tests need. A machine that has it runs the tests.
    is_able: fn() -> bool,
}

const fn excuse(because: &'static str, reasons: &'static [&'static str], is_able: fn() -> bool) -> Excuse {
    Excuse { because, reasons, is_able }
}

const ROOT: &str = "this user is not root";
const MOUNTS: &str = "a container may not mount or freeze a file system";
const THROTTLE: &str = "only control groups of version 1 have this throttle";
const MEMORY_GROUPS: &str = "containers have no control groups of their own";
const QUOTAS: &str = "a kernel may be built without quotas";
const FOLDING: &str = "a kernel may be built without folded names";

/// Parts of the reasons of tests that need root.
const OF_ROOT: &[&str] =
    &["/dev/fuse", "only root", "takes root", "needs root", "need root", "must be superuser", "needs a small export"];

const EXCUSES: &[Excuse] = &[
    excuse("the other tests need root", &["root reads every directory"], || !ability::is_root()),
    excuse(
        "the package starts a service, so it is never installed",
        &["Debian package prometheus", "Debian's prometheus"],
        ability::has_prometheus,
    ),
    excuse(
        "the temporary directory may be in memory",
        &["the file system is in memory"],
        ability::has_temporary_files_on_disk,
    ),
    excuse(THROTTLE, &["blkio", "the kernel has no throttle of control groups"], ability::has_throttle),
    excuse(MEMORY_GROUPS, &["no control groups that bound memory"], ability::has_memory_groups),
    excuse(QUOTAS, &["no limit can be set on", "quota is no option of"], ability::has_quotas),
    excuse(FOLDING, &["wrong fs type"], ability::has_folded_names),
    excuse(
        "Linux has RWF_DONTCACHE since 6.14, on some file systems",
        &["no uncached writes", "DontCache"],
        ability::has_uncached_writes,
    ),
    excuse(
        "a kernel may be built without seccomp",
        &["kernel takes no filter", "kernel has no filters"],
        ability::has_filters,
    ),
    excuse(
        "the file system chooses the numbers of inodes",
        &["no number was used twice"],
        ability::has_numbers_used_twice,
    ),
    excuse("a network name space may have no other address", &["no address but loopback's"], ability::has_addresses),
    excuse(
        "some file systems, such as a container's, have no handles",
        &["opened by its handle"],
        ability::has_handles,
    ),
    excuse("Debian has this kernel for x86-64", &["User Mode Linux is of x86-64 alone"], || {
        cfg!(target_arch = "x86_64")
    }),
    excuse("a release of Debian may be without this kernel", &["linux.uml is not installed"], ability::has_uml),
    excuse(
        "a container may not make a network device of a program",
        &["no network device of a program can be made"],
        ability::has_taps,
    ),
    excuse("another system has other lists", &["only Debian says"], ability::has_lists_of_packages),
    excuse("some file systems have no access control lists", &["no access control lists"], ability::has_access_lists),
    excuse("a container may not trace processes", &["may not be traced"], ability::may_trace),
    excuse("a container or a user may not handle page faults", &["userfaultfd"], ability::may_handle_page_faults),
    excuse("nohup and some services ignore it", &["SIGHUP is ignored"], || !ability::ignores_hang_ups()),
    excuse(ROOT, OF_ROOT, ability::is_root),
    excuse(
        MOUNTS,
        &[
            "not root",
            "mounted here",
            "nothing may be mounted",
            "no disk:",
            "no slow disk",
            "loop device",
            "losetup",
            "mount ",
            "fsfreeze",
            "it cannot be frozen",
            "it cannot be pulled out",
            "the server does not start here",
        ],
        ability::may_mount,
    ),
];

/// Where the tests of a run write what they skip.
pub(crate) fn begin() -> Result<PathBuf> {
    let file = repository::target().join("skipped");
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).with_context(|| file.display().to_string()),
        _ => Ok(file),
    }
}

/// Prints the skipped tests in that file. With `is_gate`, fails for those that are not excused.
pub(crate) fn end(file: &Path, is_gate: bool) -> Result<()> {
    let lines = fs::read_to_string(file).unwrap_or_default();
    let reasons = reasons(&lines, |excuse| (excuse.is_able)());
    eprint!("{}", listed(&lines, &reasons, is_gate));
    let faults = not_excused(&lines, &reasons);
    if is_gate && faults > 0 {
        bail!("{faults} tests were skipped whose reasons are not in xtask/src/skips.rs");
    }
    Ok(())
}

/// Each reason once, and why a gate accepts it, if it does.
type Reasons<'a> = BTreeMap<&'a str, Option<&'static str>>;

fn reasons(lines: &str, is_able: impl Fn(&Excuse) -> bool) -> Reasons<'_> {
    let reasons = lines.lines().filter_map(fields).map(|(.., reason)| reason);
    let mut found = Reasons::new();
    for reason in reasons {
        let is_here = |excuse: &&Excuse| excuse.reasons.iter().any(|part| reason.contains(part)) && !is_able(excuse);
        found.entry(reason).or_insert_with(|| EXCUSES.iter().find(is_here).map(|excuse| excuse.because));
    }
    found
}

/// How many tests were skipped, or skipped a part.
pub(crate) fn count(file: &Path) -> usize {
    let lines = fs::read_to_string(file).unwrap_or_default();
    lines.lines().filter_map(fields).map(|(package, test, _)| (package, test)).collect::<BTreeSet<_>>().len()
}

/// Packages and tests, by the reason why they are skipped.
type TestsByReason<'a> = BTreeMap<String, BTreeSet<(&'a str, &'a str)>>;

/// What is missing, each once: with its reasons, and the number of their tests or their names. A test may skip several
/// parts for one reason.
fn listed(lines: &str, reasons: &Reasons<'_>, with_names: bool) -> String {
    let mut groups: BTreeMap<String, TestsByReason<'_>> = BTreeMap::new();
    for (package, test, reason) in lines.lines().filter_map(fields) {
        let because = reasons[reason].map(|because| format!(" (excused: {because})")).unwrap_or_default();
        let group = groups.entry(missing(reason)).or_default();
        group.entry(format!("{}{because}", without_positions(reason))).or_default().insert((package, test));
    }
    let mut said = String::new();
    for (missing, reasons) in groups {
        let tests: BTreeSet<_> = reasons.values().flatten().collect();
        said += &format!("Skipped for want of {missing}: {} tests\n", tests.len());
        for (reason, tests) in reasons {
            said += &format!("  {reason}: {}\n", tests.len());
            if with_names {
                tests.iter().for_each(|(package, test)| said += &format!("    {package}: {test}\n"));
            }
        }
    }
    said
}

/// What a reason misses: root, a Debian package, or else an ability of this machine.
fn missing(reason: &str) -> String {
    let package = reason.split_once("Debian package ").map(|(_, rest)| rest.split([')', ' ', ',', ';']).next());
    match package.flatten() {
        Some(package) => format!("the Debian package {package}"),
        None if OF_ROOT.iter().any(|part| reason.contains(part)) && !is_root() => "root".to_owned(),
        None => "an ability of this machine".to_owned(),
    }
}

/// A reason without the paths of one run.
fn without_positions(reason: &str) -> String {
    let words = reason.split(' ').map(|word| if word.contains("/afflux-") { "…" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// How many lines have a reason that is not in the table, or no reason.
fn not_excused(lines: &str, reasons: &Reasons<'_>) -> usize {
    lines.lines().filter(|line| fields(line).and_then(|(.., reason)| reasons[reason]).is_none()).count()
}

fn fields(line: &str) -> Option<(&str, &str, &str)> {
    let (package, rest) = line.split_once('\t')?;
    let (test, reason) = rest.split_once('\t')?;
    Some((package, test, reason))
}

#[cfg(test)]
mod tests;
