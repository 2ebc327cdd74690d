//! The races: built, run in namespaces of their own, their tables written.
//!
//! Owns: the programs of each race, its namespaces, the files of its tables.
//! Does not own: the words (`afflux_rig::words`), the races themselves (`tests/race`, `tests/nfs-check`,
//! `tests/mount-race`). The kernel's NFS server ends only with its kernel: case `resets` of `guest`.
//! Invariants: the files of a race are in a new directory inside the named one, and nothing else is removed. A part of
//! a race writes no table. Servers, mounts and port mappers end with the namespaces. A race that failed leaves its
//! files, with logs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afflux_rig::words::{Half, Races, RacesCmd};
use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail};

use crate::{ci, fio_engine, repository};

/// The server and the programs of `tests/nfs-check`, as arguments of `cargo build`.
pub(crate) const WITH_BRIDGE: &[&str] =
    &["-p", "afflux-command", "-p", "afflux-nfs-check", "--features", "afflux-nfs-check/fuse"];
const WITH_STORES: &[&str] =
    &["-p", "afflux-command", "-p", "afflux-nfs-check", "--features", "afflux-command/object,afflux-nfs-check/fuse"];
/// The loop beside which cold reads are measured.
const BARE_LOOP: &[&str] = &["-p", "afflux-linux-device", "--example", "bare_reads"];
/// The examples of Debian's libfuse3-dev. passthrough_hp is in libfuse's source alone.
const EXAMPLES: &str = "/usr/share/doc/libfuse3-dev/examples";

/// A view of mounts and processes of its own: nothing stays, and other programs see none.
const OWN_VIEW: &[&str] = &["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// With a network of its own, too.
const OWN_NETWORK: &[&str] = &[
    "unshare",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-c",
    "set -e; ip link set lo up; exec \"$@\"",
    "sh",
];
/// With an address besides 127.0.0.1: without one nfs-ganesha's resolver finds nothing.
const FOR_GANESHA: &[&str] = &[
    "sh",
    "-c",
    "set -e; ip addr add 192.0.2.1/32 dev lo; mkdir -p /var/lib/nfs/ganesha /run/ganesha /run/rpcbind; exec \"$@\"",
    "sh",
];

/// A race that can begin.
struct Built {
    /// The command before the program.
    view: Vec<&'static str>,
    program: PathBuf,
    /// Arguments of the program between the directory of its files and the words.
    places: Vec<PathBuf>,
}

impl Built {
    /// Programs of one directory, the race's own first.
    fn of(view: &[&'static str], folder: &Path, program: &str, others: &[&str]) -> Self {
        let places = others.iter().map(|name| folder.join(name)).collect();
        Self { view: view.to_vec(), program: folder.join(program), places }
    }
}

/// Builds and races. A whole race writes its tables to a file; a part prints them only.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let asked = Races::from_vec(words.iter().map(OsString::from).collect())?;
    let built = built(&asked)?;
    let parent = asked.dir.clone().unwrap_or_else(repository::target);
    let tables = tables(&built, &parent, words)?;
    println!("{tables}");
    if asked.is_whole() {
        let path = write(words[0], &format!("On {}.\n\n{}", machine(), tables.trim_end()))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

/// The programs of a race, built, and those of others, installed.
fn built(asked: &Races) -> Result<Built> {
    let profile = asked.profile.as_deref().unwrap_or("release");
    match &asked.subcommand {
        RacesCmd::Race(race) => library(profile, race.half),
        RacesCmd::RaceNfs(_) => {
            ci::install_ganesha()?;
            let folder = repository::build(profile, WITH_BRIDGE)?;
            repository::build(profile, BARE_LOOP)?;
            let view = [OWN_NETWORK, FOR_GANESHA].concat();
            Ok(Built::of(&view, &folder, "nfs-race", &["afflux", "fuse-bridge", "examples/bare_reads"]))
        }
        RacesCmd::RaceKills(kills) => {
            ci::install_ganesha()?;
            let build = || repository::build(profile, &["-p", "afflux-command", "-p", "afflux-nfs-check"]);
            let folder = kills.built.clone().map_or_else(build, Ok)?;
            Ok(Built::of(&[OWN_NETWORK, FOR_GANESHA].concat(), &folder, "kill-race", &["afflux"]))
        }
        RacesCmd::RaceMount(mount) => {
            let folder = repository::build(profile, &[WITH_BRIDGE, &["-p", "afflux-mount-race"]].concat())?;
            let mut built = Built::of(OWN_VIEW, &folder, "mount-race", &["afflux", "fuse-bridge"]);
            let examples = mount.libfuse.clone().unwrap_or_else(|| EXAMPLES.into());
            built.places.extend(["passthrough_ll.c", "passthrough_hp.cc"].map(|source| {
                example(&examples.join(source)).unwrap_or_else(|error| {
                    eprintln!("no {source}: {error:#}");
                    examples.join(source).with_extension("")
                })
            }));
            if !ci::on_path("mergerfs") {
                eprintln!("no mergerfs: apt-get install mergerfs");
            }
            Ok(built)
        }
        RacesCmd::RaceStores(_) => {
            ci::install_store()?;
            let folder = repository::build(profile, WITH_STORES)?;
            Ok(Built::of(OWN_NETWORK, &folder, "store-race", &["afflux", "fuse-bridge"]))
        }
    }
}

/// The race of the library, which has its own workspace because of its dependencies; and the engine for fio.
fn library(profile: &str, half: Option<Half>) -> Result<Built> {
    let target = repository::target().join("race");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--profile", profile, "--target-dir"]).arg(&target);
    repository::succeeds(cargo.current_dir(repository::root().join("tests/race")))?;
    if half.is_none_or(|half| half == Half::Fio) {
        // This workspace has no profile `quick`.
        let profile = if profile == "quick" { "demo" } else { profile };
        // Without the engine the table has a remark, and the kernel's figures.
        if let Err(error) = fio_engine::make(profile) {
            eprintln!("no engine for fio: {error:#}");
        }
    }
    println!("rows and plots: {}", target.display());
    let program = target.join(if profile == "dev" { "debug" } else { profile }).join("afflux-race");
    Ok(Built { view: Vec::new(), program, places: vec![target, fio_engine::place()] })
}

/// Races in a new directory inside this one. The program reads the same words.
fn tables(built: &Built, parent: &Path, words: &[&str]) -> Result<String> {
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    let scratch = Scratch::guarded(parent, words[0])?;
    let mut line = built.view.iter().map(OsString::from).chain([built.program.clone().into()]);
    let mut command = Command::new(line.next().context("a program")?);
    command.args(line).arg(scratch.path()).args(&built.places).args(words);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| built.program.display().to_string())?;
    if !output.status.success() {
        bail!("the race ended early; its files and logs are in {}", scratch.keep().display());
    }
    String::from_utf8(output.stdout).context("the tables")
}

/// One of libfuse's examples, built into the target directory: it is in no repository.
fn example(source: &Path) -> Result<PathBuf> {
    if !source.exists() {
        bail!("{} is not there (apt-get install libfuse3-dev, or --libfuse with libfuse's examples)", source.display());
    }
    let directory = repository::target().join("race-mount-peers");
    fs::create_dir_all(&directory)?;
    let program = directory.join(source.file_stem().context("a source has a name")?);
    let compiler = if source.extension().is_some_and(|it| it == "c") { "cc" } else { "c++ -std=c++17" };
    let script = format!("{compiler} -O2 -o \"$0\" \"$1\" $(pkg-config --cflags --libs fuse3)");
    repository::succeeds(Command::new("sh").args(["-c", &script]).arg(&program).arg(source))?;
    Ok(program)
}

/// Writes a race's tables to `target/NAME.md`; gives the path.
fn write(name: &str, tables: &str) -> Result<PathBuf> {
    let path = repository::target().join(name).with_extension("md");
    fs::write(&path, tables).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// The machine of the measurement.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |it| it.1);
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{count} × {model}, Linux {}", kernel.trim())
}

#[cfg(test)]
mod tests;
