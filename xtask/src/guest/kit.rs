//! The disk with the package, programs and scripts of a guest.
//!
//! Owns: its files, their making.
//! Does not own: the cases, the package (`deb`).
//! Invariants: a program that cannot be had is named, and its cases are left out by themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::cases::{Case, folder};
use crate::words::Guest;
use crate::{ci, deb, repository};

/// Programs of other projects, static: the guest may have other libraries.
const OTHERS: [&str; 2] = ["fsx", "pjdfstest"];
const STATIC: &str = "-C target-feature=+crt-static";
const TARGET: &str = "x86_64-unknown-linux-gnu";

const PACK: &str = "dpkg-deb --root-owner-group -Znone -b";

pub(super) struct Kit {
    folder: PathBuf,
}

impl Kit {
    /// Puts everything but the order of cases below `scratch`.
    pub(super) fn made(words: &Guest, cases: &[Case], scratch: &Path) -> Result<Self> {
        let kit = Self { folder: scratch.join("kit") };
        let bin = kit.folder.join("bin");
        fs::create_dir_all(&bin).context("the kit")?;
        copy_all(&folder().join("cases"), &kit.folder.join("cases"))?;
        for name in ["run", "lib.sh", "xfstests", "xfstests-4"] {
            fs::copy(folder().join(name), kit.folder.join(name)).context(name)?;
        }
        kit.package(words)?;
        let wants = |name: &str| cases.iter().any(|case| case.script() == name);
        for name in OTHERS.into_iter().filter(|name| wants(name)) {
            other(name, &bin)?;
        }
        if wants("package") {
            kit.older_package()?;
        }
        if wants("protocol-check") {
            let built = repository::build("dev", &["-p", "afflux-nfs-client"])?;
            fs::copy(built.join("protocol-check"), bin.join("protocol-check")).context("protocol-check")?;
        }
        if wants("resets") {
            repository::build("dev", &["-p", "afflux-nfs-check"])?;
        }
        if wants("peers") {
            ci::install_ganesha()?;
        }
        if wants("library") {
            kit.example("append_lines")?;
        }
        if let Some(suite) = words.xfstests.as_deref().filter(|_| wants("xfstests")) {
            kit.xfstests(suite)?;
        }
        Ok(kit)
    }

    /// The package. It is packed without compression: an emulated processor unpacks slowly.
    fn package(&self, words: &Guest) -> Result<()> {
        let package = match (&words.deb, &words.built) {
            (Some(file), _) => file.clone(),
            (None, Some(folder)) => deb::packed("afflux", folder, &self.scratch().join("deb"))?,
            (None, None) => deb::package("afflux", words.profile.as_deref().unwrap_or("demo"))?,
        };
        fs::copy(&package, self.folder.join("afflux.deb")).with_context(|| package.display().to_string())?;
        shell(
            &format!("dpkg-deb -R \"$0/afflux.deb\" \"$1\"; {PACK} \"$1\" \"$0/afflux.deb\" > /dev/null"),
            &[&self.folder, &self.tree()],
        )
    }

    /// The same package with an older version, to upgrade from.
    fn older_package(&self) -> Result<()> {
        shell(
            &format!(
                "sed -i 's/^Version: .*/Version: 0.0.1/' \"$1/DEBIAN/control\"; {PACK} \"$1\" \"$0/afflux-older.deb\" > /dev/null"
            ),
            &[&self.folder, &self.tree()],
        )
    }

    /// The suite, without what its build leaves and without debugging symbols; and the libraries that the guest has
    /// not.
    fn xfstests(&self, suite: &Path) -> Result<()> {
        ensure!(suite.join("ltp/fsstress").exists(), "xfstests is not built: make -C {}", suite.display());
        shell(
            "mkdir \"$1\"
               tar -C \"$0\" --exclude='*.o' --exclude='*.lo' --exclude='*.c' --exclude=.libs --exclude=.git -cf - . | tar -C \"$1\" -xf -
               find \"$1/src\" \"$1/ltp\" -type f -perm -100 -exec strip {} + 2> /dev/null || true
               mkdir \"$1/libraries\"
               find \"$1/src\" \"$1/ltp\" -type f -perm -100 -exec ldd {} + 2> /dev/null |
                   sed -nE 's|.* => (/.*/lib(uring\\|aio\\|gdbm)[^ ]*) .*|\\1|p' | sort -u | xargs -r cp -L -t \"$1/libraries\"",
            &[suite, &self.folder.join("suite")],
        )
    }

    /// An example of the library, static as the programs of others.
    fn example(&self, name: &str) -> Result<()> {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "-p", "afflux", "--example", name, "--target", TARGET]);
        cargo.env("RUSTFLAGS", STATIC).current_dir(repository::root());
        ensure!(cargo.status().context("cargo build")?.success(), "the example {name} cannot be built");
        let built = repository::target().join(TARGET).join("debug/examples").join(name);
        fs::copy(built, self.folder.join("bin").join(name)).with_context(|| name.to_owned())?;
        Ok(())
    }

    fn scratch(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    fn tree(&self) -> PathBuf {
        self.scratch().join("package")
    }

    /// The command of the package, for a server on this host.
    pub(super) fn command(&self) -> PathBuf {
        self.tree().join("usr/bin/afflux")
    }

    /// An image of the kit, for these cases.
    pub(super) fn image(&self, scratch: &Path, cases: &[Case]) -> Result<PathBuf> {
        let order: String = cases.iter().map(|case| format!("{}\n", case.name)).collect();
        fs::write(self.folder.join("order"), order).context("the order of cases")?;
        let image = scratch.join("kit.img");
        shell(
            "rm -f \"$1\"; truncate -s $(($(du -sm \"$0\" | cut -f 1) * 5 / 4 + 16))M \"$1\"
               mke2fs -q -t ext4 -L kit -d \"$0\" \"$1\"",
            &[&self.folder, &image],
        )?;
        Ok(image)
    }
}

/// Installs a program of another project in the build's folder once, and copies it.
fn other(name: &str, bin: &Path) -> Result<()> {
    let place = repository::target().join("guest/programs");
    let built = place.join("bin").join(name);
    if !built.exists() {
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "--quiet", "--target", TARGET, "--root"]).arg(&place).arg(name);
        cargo.env("RUSTFLAGS", STATIC).env("CARGO_TARGET_DIR", place.join("target"));
        if !cargo.status().context("cargo install")?.success() {
            eprintln!("left out: {name} cannot be installed");
            return Ok(());
        }
    }
    fs::copy(&built, bin.join(name)).with_context(|| name.to_owned())?;
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).context("the kit")?;
    for entry in fs::read_dir(from).context("the cases")? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name())).with_context(|| entry.path().display().to_string())?;
    }
    Ok(())
}

/// Runs a script with these words as `$0` and `$1`.
fn shell(script: &str, words: &[&Path]) -> Result<()> {
    let status = Command::new("sh").args(["-ec", script]).args(words).status().context("sh")?;
    ensure!(status.success(), "failed: {script}");
    Ok(())
}
