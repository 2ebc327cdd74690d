//! What a machine runs before a change is taken, and what a newcomer runs first.
//!
//! Owns: the order of the steps, the Debian packages that the tests use.
//! Does not own: the tests.
//! Invariants: the tools' output is passed through as it is; the first step that fails ends the run.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repository;

/// A tool, and the Debian package that brings it.
struct Tool(&'static str, &'static str);

/// What trying the server takes.
const CLIENT_TOOLS: &[Tool] = &[Tool("nfs-cp", "libnfs-utils")];

/// What the tests run.
const TEST_TOOLS: &[Tool] =
    &[Tool("nfs-cp", "libnfs-utils"), Tool("valgrind", "valgrind"), Tool("fio", "fio"), Tool("chromium", "chromium")];

/// What looking at pages takes.
const PAGE_TOOLS: &[Tool] = &[Tool("chromium", "chromium")];

/// Bans of methods and types hold for the code, not for its tests (a test may start a thread).
const BANS_OFF: &[&str] = &["-D", "warnings", "-A", "clippy::disallowed_methods", "-A", "clippy::disallowed_types"];

/// Formatting, lints, then [`test`] (which runs tidy too).
pub(crate) fn all() -> Result<()> {
    step("cargo", &["fmt", "--all", "--check"])?;
    step("cargo", &["clippy", "--workspace", "--", "-D", "warnings"])?;
    let mut lints = vec!["clippy", "--workspace", "--all-targets", "--"];
    lints.extend(BANS_OFF);
    step("cargo", &lints)?;
    test()
}

/// Makes sure that the tools are there, then runs every test of the workspace.
pub(crate) fn test() -> Result<()> {
    install_missing(TEST_TOOLS, "The tests that need them are skipped")?;
    let first = fresh_seed();
    eprintln!("+ AFFLUX_FIRST_SEED={first}");
    step_with("cargo", &["test", "--workspace"], &[("AFFLUX_FIRST_SEED", &first.to_string())])
}

/// The first of the random scenarios that the tests run: another for each commit, the same for each run
/// of one commit.
fn fresh_seed() -> u64 {
    let output = Command::new("git").args(["rev-parse", "--short=8", "HEAD"]).current_dir(repository::root()).output();
    let hash = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    u64::from_str_radix(&hash, 16).unwrap_or(0)
}

/// Makes sure that there is a browser.
pub(crate) fn browser() -> Result<()> {
    install_missing(PAGE_TOOLS, "Pages are looked at in it")
}

/// Runs the tests that look at pages; their pictures go to `pictures`.
pub(crate) fn test_pages(pictures: &str) -> Result<()> {
    let line = "cargo test -p afflux-report -p afflux-cli a_reader_finds_no_fault";
    eprintln!("+ {line}");
    let status = Command::new("cargo")
        .args(line.split(' ').skip(1))
        .env("AFFLUX_PICTURES", pictures)
        .current_dir(repository::root())
        .status()
        .context(line)?;
    if !status.success() {
        bail!("failed: {line}");
    }
    Ok(())
}

/// Makes sure that there is a client and the directories, builds, and becomes `afflux serve`.
pub(crate) fn serve(arguments: &[&str]) -> Result<()> {
    install_missing(CLIENT_TOOLS, "A client is needed to see something")?;
    for directory in arguments.iter().take_while(|argument| !argument.starts_with('-')) {
        std::fs::create_dir_all(directory).with_context(|| (*directory).to_owned())?;
    }
    let mut command = Command::new("cargo");
    command.args(["run", "--release", "--package", "afflux-cli", "--manifest-path"]);
    command.arg(repository::root().join("Cargo.toml")).args(["--", "serve"]).args(arguments);
    // Becoming it, so that Ctrl-C reaches the server and nobody else.
    Err(command.exec()).context("cargo run")
}

/// Builds the soak for speed and becomes it.
pub(crate) fn soak(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--profile", "soak", "--package", "afflux-checker", "--bin", "soak"]);
    command.args(["--features", "rare-paths", "--"]);
    command.args(arguments).current_dir(repository::root());
    Err(command.exec()).context("cargo run")
}

/// Installs the packages of the tools that are missing; where it may not, names them and goes on.
fn install_missing(tools: &[Tool], otherwise: &str) -> Result<()> {
    let missing: Vec<&str> =
        tools.iter().filter(|Tool(tool, _)| !on_path(tool)).map(|&Tool(_, package)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !on_path("apt-get") || !is_root()? {
        eprintln!("Not installed: {list}. {otherwise}. To install:");
        eprintln!("  sudo apt-get update && sudo apt-get install -y --no-install-recommends {list}");
        return Ok(());
    }
    step("apt-get", &["update"])?;
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(&missing);
    step("apt-get", &install)
}

fn on_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(tool).is_file())
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").stderr(Stdio::inherit()).output().context("id -u")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

fn step(program: &str, arguments: &[&str]) -> Result<()> {
    step_with(program, arguments, &[])
}

fn step_with(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let line = format!("{program} {}", arguments.join(" "));
    eprintln!("+ {line}");
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(repository::root())
        .status()
        .with_context(|| line.clone())?;
    if !status.success() {
        bail!("failed: {line}");
    }
    Ok(())
}
