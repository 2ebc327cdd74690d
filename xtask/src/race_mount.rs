//! Builds the race of mounts and its peers, runs it in its own view of the mounts, and writes the tables.
//!
//! Owns: the arguments, the programs that are built, libfuse's examples among them, the view.
//! Does not own: the race (`tests/mount-race`).
//! Invariants: peers are built from a package's files into the target directory, and are in no repository. A quick run,
//! and one of some cases, writes no table. The files of the race are in a new directory inside the named one. Mounts
//! end with the race.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail};

use crate::{ci, measured, repository};

const USAGE: &str = "usage: cargo xtask race-mount [--quick] [--rounds N] [--only WORDS]... [--all-cpus] \
                     [--libfuse DIR] [--profile NAME] [--dir DIR]";
/// The server, the race and the bridge, as arguments of `cargo build`.
const PROGRAMS: [&str; 8] = [
    "-p",
    "afflux-command",
    "-p",
    "afflux-mount-race",
    "-p",
    "afflux-nfs-check",
    "--features",
    "afflux-nfs-check/fuse",
];
/// The examples of Debian's libfuse3-dev. passthrough_hp is in libfuse's source alone.
const EXAMPLES: &str = "/usr/share/doc/libfuse3-dev/examples";

struct RaceMountOptions {
    /// Whether the tables are kept.
    whole: bool,
    profile: String,
    directory: PathBuf,
    libfuse: PathBuf,
    passed_on: Vec<String>,
}

fn wanted(words: &[&str]) -> Result<RaceMountOptions> {
    let mut wanted = RaceMountOptions {
        whole: true,
        profile: "release".to_owned(),
        directory: repository::target().join("race-mount"),
        libfuse: EXAMPLES.into(),
        passed_on: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().context(USAGE);
        match *word {
            "--quick" | "--all-cpus" => {
                wanted.whole &= *word != "--quick";
                wanted.passed_on.push((*word).to_owned());
            }
            "--only" | "--rounds" => {
                wanted.whole &= *word != "--only";
                wanted.passed_on.extend([*word, *value()?].map(str::to_owned));
            }
            "--libfuse" => wanted.libfuse = PathBuf::from(value()?),
            "--profile" => (*value()?).clone_into(&mut wanted.profile),
            "--dir" => wanted.directory = PathBuf::from(value()?),
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wanted)
}

/// Builds and races. A whole race writes its tables to a file; a part prints them only.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let wanted = wanted(words)?;
    let built = repository::build(&wanted.profile, &PROGRAMS)?;
    let tables = tables(&built, &wanted)?;
    println!("{tables}");
    if wanted.whole {
        let path = measured::write("race-mount", &format!("On {}.\n\n{}", measured::machine(), tables.trim_end()))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn tables(built: &Path, wanted: &RaceMountOptions) -> Result<String> {
    fs::create_dir_all(&wanted.directory).with_context(|| wanted.directory.display().to_string())?;
    let scratch = Scratch::guarded(&wanted.directory, "race-mount")?;
    // A view of its own: no mount stays, and other programs see none.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]).arg(built.join("mount-race"));
    command.arg("--dir").arg(scratch.path()).arg("--afflux").arg(built.join("afflux"));
    command.arg("--bridge").arg(built.join("fuse-bridge")).args(&wanted.passed_on);
    for (option, source) in [("--passthrough-ll", "passthrough_ll.c"), ("--passthrough-hp", "passthrough_hp.cc")] {
        match example(&wanted.libfuse.join(source)) {
            Ok(program) => {
                command.arg(option).arg(program);
            }
            Err(error) => eprintln!("no {source}: {error:#}"),
        }
    }
    if !ci::on_path("mergerfs") {
        eprintln!("no mergerfs: apt-get install mergerfs");
    }
    let output = command.stderr(Stdio::inherit()).output().context("unshare")?;
    if !output.status.success() {
        bail!("the race ended early");
    }
    String::from_utf8(output.stdout).context("the tables")
}

/// One of libfuse's examples, built.
fn example(source: &Path) -> Result<PathBuf> {
    if !source.exists() {
        bail!("{} is not there (apt-get install libfuse3-dev, or --libfuse with libfuse's examples)", source.display());
    }
    let directory = repository::target().join("race-mount-peers");
    fs::create_dir_all(&directory)?;
    let program = directory.join(source.file_stem().context("a source has a name")?);
    let compiler = if source.extension().is_some_and(|it| it == "c") { "cc" } else { "c++ -std=c++17" };
    let script = format!("{compiler} -O2 -o \"$0\" \"$1\" $(pkg-config --cflags --libs fuse3)");
    let status = Command::new("sh").args(["-c", &script]).arg(&program).arg(source).status().context("sh")?;
    if !status.success() {
        bail!("{} cannot be built", source.display());
    }
    Ok(program)
}

#[cfg(test)]
mod tests;
