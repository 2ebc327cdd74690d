//! Runs test programs once more as most people have them: as a user without root and groups, without packages, with the
//! limits of a login, in a process namespace.
//!
//! Owns: the choice of programs, the user's folders.
//! Does not own: the build and the run of a program (`programs`), the steps in the namespaces (`plain.sh`), the
//! programs of a bare system (`bare.sh`).
//! Invariants: a program that cannot be run so counts as a skipped test. Nothing that the user's tests leave behind
//! outlives the run, but for folders below the directory of temporary files.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use afflux_scratch::{SKIPPED, Scratch};
use anyhow::{Context, Result};

use crate::repository::{self, output};
use crate::skips::{self, is_root};

/// The first user of most systems. Tests use other numbers for strangers.
const USER: u32 = 1000;
const BARE: &str = include_str!("bare.sh");
const PLAIN: &str = include_str!("plain.sh");
const NAMESPACES: [&str; 7] =
    ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Folders whose tests take long, as simulations and soaks do, and are left to the nightly.
const LONG: [&str; 11] = [
    "laboratory/",
    "product/budget/tests/",
    "product/command/tests/",
    "product/engine/",
    "product/fuse/tests/",
    "product/linux-server/src/",
    "product/nfs/tests/allocations.rs",
    "product/object/",
    "product/object-store/",
    "product/volume/tests/",
    "world/",
];

/// What keeps this machine from the run.
pub(super) fn obstacle() -> Option<String> {
    if !is_root() {
        return Some("only root can act as others".to_owned());
    }
    if !skips::has_lists_of_packages() {
        return Some("only Debian says which programs a bare system has".to_owned());
    }
    (!skips::may_mount()).then(|| "nothing can be mounted here".to_owned())
}

/// Whether a gate runs the program of this source file so.
pub(super) fn is_for_gate(source: &Path) -> bool {
    let source = source.strip_prefix(repository::root()).unwrap_or(source);
    !LONG.iter().any(|folder| source.starts_with(folder))
}

/// The user's place.
pub(super) struct Plain {
    scratch: Scratch,
    /// The file of the tests that are skipped.
    skipped: PathBuf,
}

impl Plain {
    pub(super) fn prepare() -> Result<Self> {
        let scratch = Scratch::guarded(&std::env::temp_dir(), "plain")?;
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755))?;
        output(Command::new("sh").args(["-c", BARE, "bare"]).arg(scratch.path()).arg(USER.to_string()))?;
        let skipped = scratch.path().join("skipped");
        File::create(&skipped).context("the list of skipped tests")?;
        chown(&skipped, Some(USER), Some(USER)).context("the list of skipped tests")?;
        fs::create_dir_all(repository::target().join("tmp")).context("the folder of tests")?;
        Ok(Self { scratch, skipped })
    }

    /// The command that runs a program so.
    pub(super) fn command(&self, program: &Path, environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(NAMESPACES[0]);
        command.args(&NAMESPACES[1..]).args(["sh", "-c", PLAIN, "plain"]).arg(self.scratch.path()).arg(program);
        command.envs(environment.iter().copied()).env(SKIPPED, &self.skipped);
        let home = |variable: &str, folder: &str| {
            let below_home = || Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(folder).into_os_string();
            std::env::var_os(variable).unwrap_or_else(below_home)
        };
        let (cargo, rustup): (OsString, OsString) = (home("CARGO_HOME", ".cargo"), home("RUSTUP_HOME", ".rustup"));
        command.env("CARGO_HOME", cargo).env("RUSTUP_HOME", rustup);
        command.env("ROOT", repository::root()).env("TARGET", repository::target());
        command
    }

    /// How many tests the user skips.
    pub(super) fn skipped(&self) -> usize {
        skips::count(&self.skipped)
    }
}

#[cfg(test)]
mod tests;
