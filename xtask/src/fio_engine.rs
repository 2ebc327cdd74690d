//! Builds the engine by which fio uses the C interface.
//!
//! Owns: the source of the installed fio, the decision to build the engine.
//! Does not own: the engine and its compilation (`product/afflux-c/fio`), the library (`c_library`).
//! Invariants: the source is that of the installed fio, since fio accepts only engines of its own version. The host's
//! list of package sources stays unchanged.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::c_library::build;
use crate::repository::{self, succeeds};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const MIRROR: &str = "http://deb.debian.org/debian";

/// Libraries that fio's configure script need not look for: only fio's headers are needed.
const CONFIGURE: &[&str] =
    &["--disable-native", "--disable-http", "--disable-rdma", "--disable-rbd", "--disable-gfapi", "--disable-numa"];

/// Builds the engine, and prints its usage.
pub(crate) fn run(profile: Option<&str>) -> Result<()> {
    make(profile.unwrap_or("release"))?;
    let engine = place();
    let engine = engine.display();
    println!("{engine}\n\nfio --name=try --ioengine=external:{engine} --afflux_memory=256m --thread \\");
    println!("    --filename=/tmp/afflux-fio --size=128m --rw=randrw --verify=crc32c --unlink=1");
    Ok(())
}

/// Builds the engine.
pub(crate) fn make(profile: &str) -> Result<()> {
    let (source, libraries) = (source()?, build(profile)?);
    let script = repository::root().join("product/afflux-c/fio/build.sh");
    succeeds(Command::new(script).arg(libraries).arg(source).arg(place()))
}

/// The engine's file.
pub(crate) fn place() -> PathBuf {
    folder().join("afflux.so")
}

fn folder() -> PathBuf {
    repository::target().join("fio-engine")
}

/// The configured source of the installed fio; downloaded if it is missing.
pub(crate) fn source() -> Result<PathBuf> {
    let version = installed()?;
    let source = folder().join(format!("fio-{version}"));
    if !source.join("config-host.h").exists() {
        if !source.join("configure").exists() {
            download(&version)?;
        }
        let log = fs::File::create(folder().join("configure.log"))?;
        let mut configure = Command::new("./configure");
        configure.args(CONFIGURE).current_dir(&source).stdout(log);
        succeeds(&mut configure).context("the source of fio cannot be configured")?;
    }
    Ok(source)
}

/// The version of the installed fio, such as "3.33".
fn installed() -> Result<String> {
    let output = Command::new("fio").arg("--version").output().context("fio is not there: apt-get install fio")?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = version.strip_prefix("fio-").context(format!("fio --version says '{version}'"))?;
    Ok(version.to_owned())
}

/// Downloads Debian's source package of this version, with separate package lists.
fn download(version: &str) -> Result<()> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.context("/etc/os-release names no release of Debian")?;
    let lists = folder().join("apt");
    fs::create_dir_all(lists.join("lists/partial"))?;
    fs::create_dir_all(lists.join("cache/archives/partial"))?;
    let list = lists.join("sources.list");
    fs::write(&list, format!("deb-src [signed-by={KEYRING}] {MIRROR} {codename} main\n"))?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        for (name, value) in [
            ("Dir::Etc::sourcelist", &list),
            ("Dir::State::Lists", &lists.join("lists")),
            ("Dir::Cache", &lists.join("cache")),
        ] {
            command.arg("-o").arg(format!("{name}={}", value.display()));
        }
        // Files in the build's folder belong to the user who builds.
        command.args(["-q", "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Sandbox::User="]).args(arguments);
        succeeds(command.current_dir(folder()))
    };
    apt(&["update"])?;
    apt(&["source", "--download-only", "fio"])?;
    let archive = folder().join(format!("fio_{version}.orig.tar.gz"));
    ensure!(archive.exists(), "Debian's source of fio is not version {version}, which is installed");
    succeeds(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder()))?;
    ensure!(folder().join(format!("fio-{version}/configure")).exists(), "{} has no fio", archive.display());
    Ok(())
}
