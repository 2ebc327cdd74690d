//! Tests that were skipped in a run.
//!
//! Owns: the file to which the tests write their skips, the reasons that a gate accepts.
//! Does not own: the line of a test (`afflux_scratch::skipped!`), whether this machine has an ability (`ability`).
//! Invariants: each run begins with an empty file. A gate fails for a skipped test whose reason is not in the table, and for
//! one that this machine has the ability to run. Each excuse names an ability, and each ability has a probe.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, bail};

use crate::repository;

mod ability;

use ability::Ability;

/// A reason that a gate accepts, on a machine that lacks an ability.
struct Excused {
    /// A part of the skipped test's reason.
    reason: &'static str,
    /// Why a gate accepts the reason.
    because: &'static str,
    /// The ability that the test needs. A machine that has it runs the test.
    needs: Ability,
}

const fn excused(reason: &'static str, because: &'static str, needs: Ability) -> Excused {
    Excused { reason, because, needs }
}

const PROMETHEUS: &str = "the package starts a service, so it is never installed";
const THROTTLE: &str = "only control groups of version 1 have this throttle";
const ROOT: &str = "this user is not root";
const MOUNTS: &str = "a container may not mount or freeze a file system";
const SECCOMP: &str = "a kernel may be built without seccomp";
const QUOTAS: &str = "a kernel may be built without quotas";
const FOLDING: &str = "a kernel may be built without folded names";
const UNCACHED: &str = "Linux has RWF_DONTCACHE since 6.14, on some file systems";

const EXCUSED: &[Excused] = &[
    excused("root reads every directory", "the other tests need root", Ability::OrdinaryUser),
    excused("Debian package prometheus", PROMETHEUS, Ability::Prometheus),
    excused("Debian's prometheus", PROMETHEUS, Ability::Prometheus),
    excused("the file system is in memory", "the temporary directory may be in memory", Ability::DiskForScratch),
    excused("blkio", THROTTLE, Ability::Throttle),
    excused("the kernel has no throttle of control groups", THROTTLE, Ability::Throttle),
    excused(
        "no control groups that bound memory",
        "containers have no control groups of their own",
        Ability::MemoryGroups,
    ),
    excused("no limit can be set on", QUOTAS, Ability::Quotas),
    excused("quota is no option of", QUOTAS, Ability::Quotas),
    excused("wrong fs type", FOLDING, Ability::FoldedNames),
    excused("no uncached writes", UNCACHED, Ability::UncachedWrites),
    excused("DontCache", UNCACHED, Ability::UncachedWrites),
    excused("kernel takes no filter", SECCOMP, Ability::Filters),
    excused("kernel has no filters", SECCOMP, Ability::Filters),
    excused("no number was used twice", "the file system chooses the numbers of inodes", Ability::NumbersUsedTwice),
    excused("no address but loopback's", "a network name space may have no other address", Ability::Addresses),
    excused("opened by its handle", "some file systems, such as a container's, have no handles", Ability::Handles),
    excused("no access control lists", "some file systems have no access control lists", Ability::AccessLists),
    excused("may not be traced", "a container may not trace processes", Ability::Tracing),
    excused("userfaultfd", "a container or a user may not handle page faults", Ability::PageFaults),
    excused("SIGHUP is ignored", "nohup and some services ignore it", Ability::HangUps),
    excused("/dev/fuse", ROOT, Ability::Root),
    excused("only root", ROOT, Ability::Root),
    excused("takes root", ROOT, Ability::Root),
    excused("needs root", ROOT, Ability::Root),
    excused("not root", MOUNTS, Ability::Mounts),
    excused("mounted here", MOUNTS, Ability::Mounts),
    excused("nothing may be mounted", MOUNTS, Ability::Mounts),
    excused("no disk:", MOUNTS, Ability::Mounts),
    excused("no slow disk", MOUNTS, Ability::Mounts),
    excused("loop device", MOUNTS, Ability::Mounts),
    excused("losetup", MOUNTS, Ability::Mounts),
    excused("mount ", MOUNTS, Ability::Mounts),
    excused("fsfreeze", MOUNTS, Ability::Mounts),
    excused("it cannot be frozen", MOUNTS, Ability::Mounts),
    excused("it cannot be pulled out", MOUNTS, Ability::Mounts),
    excused("the server does not start here", MOUNTS, Ability::Mounts),
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
    let has = ability::of_this_machine();
    eprint!("{}", listed(&lines, &has));
    let faults = not_excused(&lines, &has);
    if is_gate && faults > 0 {
        bail!("{faults} tests were skipped whose reasons are not in xtask/src/skips.rs");
    }
    Ok(())
}

/// Each reason once, with its tests; a test may skip several parts for one reason.
fn listed(lines: &str, has: &dyn Fn(Ability) -> bool) -> String {
    let mut tests: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (package, test, reason) in lines.lines().filter_map(fields) {
        let (test, tests) = (format!("{package}: {test}"), tests.entry(reason).or_default());
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let line = |(reason, tests): (&&str, &Vec<String>)| {
        let because = excuse(reason, has).map(|because| format!(" (excused: {because})")).unwrap_or_default();
        format!("Skipped: {reason}{because}\n{}", tests.iter().map(|test| format!("  {test}\n")).collect::<String>())
    };
    tests.iter().map(line).collect()
}

/// How many lines have a reason that is not in the table, or no reason.
fn not_excused(lines: &str, has: &dyn Fn(Ability) -> bool) -> usize {
    lines.lines().filter(|line| fields(line).and_then(|(_, _, reason)| excuse(reason, has)).is_none()).count()
}

fn fields(line: &str) -> Option<(&str, &str, &str)> {
    let (package, rest) = line.split_once('\t')?;
    let (test, reason) = rest.split_once('\t')?;
    Some((package, test, reason))
}

fn excuse(reason: &str, has: &dyn Fn(Ability) -> bool) -> Option<&'static str> {
    EXCUSED.iter().find(|row| reason.contains(row.reason) && !has(row.needs)).map(|row| row.because)
}

#[cfg(test)]
mod tests;
