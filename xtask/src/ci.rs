//! Commands that a machine runs before a change is accepted, and that newcomers run first.
//!
//! Owns: the order of the steps, the installation of the programs that the tests use (`xtask/tools.txt`).
//! Does not own: the tests.
//! Invariants: the tools' output is passed through unchanged, and that of each test program in one piece. The first
//! failing step ends the run, but a package that cannot be installed ends no step that works without it. Packages are
//! installed beside the lints, before the tests. The Debian of a guest is made beside everything else. Skipped steps
//! are listed at the end, and failures after them; the last line of a test run says whether it passed, with its sums.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use afflux_scratch::SKIPPED;
use anyhow::{Context, Result, anyhow, bail};

use crate::fio_engine;
use crate::list;
use crate::repository::{self, output, succeeds};
use crate::skips::{self, is_root};
use plain::Plain;
use programs::{Outcome, Program};
use totals::Totals;

mod own;
mod plain;
mod programs;
mod registries;
mod rest;
#[cfg(test)]
mod tests;
mod totals;

/// A program that some step uses if it is installed.
#[derive(Clone, Copy)]
struct Tool {
    /// Its name on the path.
    program: &'static str,
    /// Its Debian package.
    package: &'static str,
    /// The steps that are skipped without it.
    without: &'static str,
}

/// The tools of a group of `xtask/tools.txt`.
fn tools(group: &str) -> impl Iterator<Item = Tool> {
    let rows = list::rows::<4>(include_str!("../tools.txt")).filter(move |[of, ..]| *of == group);
    rows.map(|[_, program, package, without]| Tool { program, package, without })
}

/// The package of a browser, and other names of its program, as `tests/page-check` knows them.
const BROWSER: &str = "chromium";
const BROWSERS: [&str; 2] = ["chromium-browser", "google-chrome"];

/// Programs on a mount for each change. pjdfstest is left out: it waits for seconds in each of many tests.
const MOUNTED: &[&str] = &["fio", "git", "sqlite", "sqlite-wal", "fsx"];
/// The exerciser of file systems, from crates.io.
const FSX: &str = "fsx@0.3.2";
/// Cases in a guest for each change: the bytes of Linux's own NFS client arrive, and none is lost with a killed server.
const CASES: &[&str] = &["mounts", "verifier"];
/// How the version of the compiler begins whose instructions the tests have budgets for.
const COUNTED_WITH: &str = include_str!("../../product/linux-device/tests/counted/compiler");

/// The default cache of a server that is only tried out.
const DEMO_CACHE: &str = "128MiB";

/// All crates with volumes in stores: two hundred crates of others. The lints and the tests of a gate see this form.
const WITH_STORES: &[&str] = &["--features", "afflux-object-store/stores,afflux-command/object"];
/// The crates with another form, without such volumes.
const WITH_TWO_FORMS: [&str; 2] = ["afflux-object-store", "afflux-command"];

/// Bans of methods and types apply to the code, not to its tests (a test may start a thread).
const LINTS: [&str; 5] = ["-Dwarnings", "-A", "clippy::disallowed_methods", "-A", "clippy::disallowed_types"];
/// Clippy splits its arguments here.
const BETWEEN_LINTS: &str = "__CLIPPY_HACKERY__";

/// Formatting, lints, then all tests (tidy is one of them). With `--forbid-skips`, no test may be skipped without an
/// excuse.
pub(crate) fn all(with_browser: bool, forbid_skips: bool) -> Result<()> {
    let scope = Scope { with_browser, is_for_change: true, is_gate: forbid_skips, as_user: false };
    // The packages come over the network while the first lints keep the cores busy, and a Debian of its own while cargo
    // compiles.
    thread::scope(|threads| {
        let prepared = threads.spawn(move || {
            install(scope)?;
            let debian = scope.is_gate.then(|| threads.spawn(debian));
            prepare(scope)?;
            Ok(debian)
        });
        lint()?;
        let debian: Result<_> = prepared.join().unwrap_or_else(|panic| resume_unwind(panic));
        tested(scope, debian?)
    })
}

/// The lints of the code as others build it. The build of the tests reads those of everything else ([`linted`]).
fn lint() -> Result<()> {
    step("cargo", &["fmt", "--all", "--check"])?;
    let banning = crates_with_bans()?;
    let packages: Vec<&str> = banning.iter().map(String::as_str).chain(WITH_TWO_FORMS).collect();
    let packages: Vec<&str> = packages.iter().flat_map(|name| ["-p", name]).collect();
    step("cargo", &[&["clippy"], &packages[..], &["--", "-D", "warnings"]].concat())?;
    // As programs build it: without the parts of a server.
    step("cargo", &["check", "--package", "afflux"])?;
    links()?;
    rest::check()
}

/// Each link in a comment leads to an item, also in comments of private items.
fn links() -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]);
    succeeds(cargo.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links").current_dir(repository::root()))
}

/// Has a build of cargo's read the lints of all crates of the workspace. Warnings are errors. A pass of its own over
/// the same code takes a fifth of the whole run, and this a fiftieth of the build.
fn linted(cargo: &mut Command) {
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    // As `cargo clippy -- ARGUMENTS` passes its arguments on.
    let arguments: String = LINTS.iter().map(|word| format!("{word}{BETWEEN_LINTS}")).collect();
    cargo.env("CLIPPY_ARGS", arguments);
}

/// The tests of a run.
#[derive(Clone, Copy)]
struct Scope {
    with_browser: bool,
    /// Also those over object stores, and the lints of everything, as before a change is accepted.
    is_for_change: bool,
    /// A skipped test without an excuse is a failure.
    is_gate: bool,
    /// As a user without root and packages.
    as_user: bool,
}

/// The packages whose folders have a `clippy.toml`, and in it bans: folder and package have one name.
fn crates_with_bans() -> Result<Vec<String>> {
    let paths = repository::paths()?;
    let folders = paths.iter().filter_map(|path| path.strip_suffix("/clippy.toml"));
    Ok(folders.filter_map(|folder| Some(format!("afflux-{}", folder.rsplit_once('/')?.1))).collect())
}

/// Installs the tools if necessary, then runs every test of the workspace. Browser tests run only if there is a browser
/// already, or on request.
pub(crate) fn test(with_browser: bool, as_user: bool) -> Result<()> {
    let scope = Scope { with_browser, is_for_change: false, is_gate: false, as_user };
    install(scope)?;
    prepare(scope)?;
    tested(scope, None)
}

/// Installs what the tests use. Without the programs of other registries, a gate fails for the tests that are skipped.
fn install(scope: Scope) -> Result<()> {
    if !scope.is_gate {
        return install_missing(tools("tests"));
    }
    install_missing(["tests", "servers", "store", "guest", "installers"].into_iter().flat_map(tools))?;
    // By itself: a system without one of these packages installs none of a list.
    install_missing(tools("uml"))?;
    if let Err(error) = registries::install() {
        eprintln!("warning: going on without programs of other registries ({error:#})");
    }
    Ok(())
}

/// Gets what some tests use, and none needs.
fn prepare(scope: Scope) -> Result<()> {
    if scope.with_browser {
        browser()?;
    }
    if let Err(error) = fio_engine::source() {
        eprintln!("warning: going on without the source of fio, so without the tests of the engine for it ({error:#})");
    }
    Ok(())
}

/// Runs the tests. A gate also runs what is beside them, with the Debian that this thread makes.
fn tested(scope: Scope, debian: Option<ScopedJoinHandle<'_, Result<()>>>) -> Result<()> {
    let store = scope.is_for_change.then_some("store");
    let used = ["tests", "servers"].into_iter().chain(store).chain(["browser", "never"]).flat_map(tools);
    let left_out = used.filter(|tool| !is_there(tool)).collect::<Vec<_>>();
    let (begin, first, skipped) = (Instant::now(), fresh_seed().to_string(), skips::begin()?);
    let path = registries::path()?.into_string().map_err(|_| anyhow!("the path is no text"))?;
    let skipped_name = skipped.to_str().context("a path of text")?;
    let environment = [("AFFLUX_FIRST_SEED", first.as_str()), (SKIPPED, skipped_name), ("PATH", path.as_str())];
    let form = if scope.is_for_change { WITH_STORES } else { &[] };
    let tests = |what: &[&str]| {
        let arguments = [&["test", "--no-fail-fast", "--workspace"], what, form].concat();
        eprintln!("+ AFFLUX_FIRST_SEED={first} cargo {}", arguments.join(" "));
        let mut command = Command::new("cargo");
        command.args(arguments).envs(environment).current_dir(repository::root());
        if scope.is_for_change {
            linted(&mut command);
        }
        command
    };
    let targets: &[&str] = if scope.is_for_change { &["--tests", "--examples", "--bench", "*"] } else { &["--tests"] };
    let has_cases = debian.is_some();
    let beside = || debian.map_or(Ok(Vec::new()), |debian| beside(&skipped, debian));
    let Some(programs) = programs::built(tests(targets))? else {
        bail!("the run FAILED: the tests cannot be built; cargo says why above");
    };
    let command = |program: &Program| {
        let mut command = Command::new(&program.executable);
        command.envs(environment);
        command
    };
    let Outcome { mut failures, totals } = match scope.as_user {
        true => as_user(&programs, &environment, &skipped)?,
        false => programs::run(programs.iter(), command, beside)?,
    };
    if has_cases {
        // Not beside the programs: a case's namespace holds each disk that a test has mounted at its start, and its
        // network writes to the kernel's log.
        failures.extend(uml_cases(&skipped)?);
    }
    if scope.is_gate {
        let for_gate: Vec<_> = programs.into_iter().filter(|it| plain::is_for_gate(&it.source)).collect();
        failures.extend(as_user(&for_gate, &environment, &skipped)?.failures);
    }
    let (examples_are_right, examples) = doctest_totals(tests(&["--doc"]))?;
    eprint!("{}", said_at_the_end(&left_out) + &other_compiler(&compiler()));
    let skips = skips::end(&skipped, scope.is_gate);
    failures.iter().for_each(|failure| eprint!("{failure}"));
    let sums = totals.said(examples, skips::count(&skipped), begin.elapsed());
    if !failures.is_empty() {
        bail!("the run FAILED in {} programs; their last lines are above. {sums}", failures.len());
    }
    if !examples_are_right {
        bail!("the run FAILED in examples of the documentation; cargo names them above. {sums}");
    }
    skips.with_context(|| format!("the run FAILED. {sums}"))?;
    eprintln!("The run passed. {sums}");
    Ok(())
}

/// Runs programs once more as a user without root and packages. What is skipped then is no fault.
fn as_user(programs: &[Program], environment: &[(&str, &str)], skipped: &Path) -> Result<Outcome> {
    if let Some(obstacle) = plain::obstacle() {
        own::skip("the tests as a plain user", &obstacle, skipped)?;
        return Ok(Outcome::default());
    }
    eprintln!("The tests of {} programs as a plain user, without packages:", programs.len());
    let begin = Instant::now();
    let user = Plain::prepare()?;
    let outcome = programs::run(programs.iter(), |it| user.command(&it.executable, environment), || Ok(Vec::new()))?;
    let sums = outcome.totals.said(Totals::default(), user.skipped(), begin.elapsed());
    eprintln!("As a plain user: {sums}");
    Ok(outcome)
}

/// Runs the examples of the documentation, without a time limit: cargo starts each. Passes their output through.
fn doctest_totals(mut examples: Command) -> Result<(bool, Totals)> {
    let mut child = examples.stdout(Stdio::piped()).spawn().context("cargo test")?;
    let mut said = String::new();
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
        let line = line.context("cargo test")?;
        println!("{line}");
        said += &format!("{line}\n");
    }
    Ok((child.wait().context("cargo test")?.success(), Totals::of(&said)))
}

/// Makes the Debian of the cases in a guest, if this machine can and has none.
fn debian() -> Result<()> {
    if !is_root() || !tools("guest").all(|tool| is_there(&tool)) {
        return Ok(());
    }
    own::succeeds(&["guest", "--debian"])
}

/// Runs programs on a mount and cases in a guest, one after the other, with the server that the tests have built.
/// Returns a text for each failure. A part that cannot run counts as a skipped test.
fn beside(skipped: &Path, debian: ScopedJoinHandle<'_, Result<()>>) -> Result<Vec<String>> {
    let mounted = mounted_programs(skipped)?;
    let debian = debian.join().unwrap_or_else(|panic| resume_unwind(panic));
    Ok(mounted.into_iter().chain(guest_cases(skipped, debian)?).collect())
}

fn mounted_programs(skipped: &Path) -> Result<Option<String>> {
    let obstacle = match is_root() {
        false => Some("only root is sure to be allowed to mount"),
        true if !Path::new("/dev/fuse").exists() => Some("/dev/fuse is not there"),
        true => (!has_fsx()?).then_some("fsx cannot be installed"),
    };
    let obstacle = obstacle.map(str::to_owned);
    own::with_built("programs on a mount", obstacle, skipped, &["mounted", "--fuse"], MOUNTED)
}

fn uml_cases(skipped: &Path) -> Result<Option<String>> {
    let absent = tools("uml").find(|tool| !is_there(tool));
    let obstacle = match (is_root(), absent) {
        (false, _) => Some("only root can make a network of machines".to_owned()),
        (true, Some(_)) if !cfg!(target_arch = "x86_64") => Some("User Mode Linux is of x86-64 alone".to_owned()),
        (true, Some(tool)) => Some(format!("{} is not installed (Debian package {})", tool.program, tool.package)),
        (true, None) => (!skips::has_taps()).then(|| "no network device of a program can be made".to_owned()),
    };
    own::with_built("cases in machines of User Mode Linux", obstacle, skipped, &["uml"], &[])
}

fn guest_cases(skipped: &Path, debian: Result<()>) -> Result<Option<String>> {
    let absent = tools("guest").find(|tool| !is_there(tool));
    let obstacle = match (is_root(), absent) {
        (false, _) => Some("only root can make a Debian for a guest".to_owned()),
        (true, Some(tool)) => Some(format!("{} is not installed (Debian package {})", tool.program, tool.package)),
        (true, None) => debian.err().map(|error| format!("{error:#}; perhaps nothing may be mounted")),
    };
    own::with_built("cases in a guest", obstacle, skipped, &["guest"], CASES)
}

/// Installs fsx if it is not there: without optimization, which takes longer than its run.
fn has_fsx() -> Result<bool> {
    let root = own_tools();
    let root = root.parent().and_then(Path::to_str).context("a path of text")?;
    let install = || step("cargo", &["install", "--quiet", "--debug", "--root", root, FSX]);
    Ok(on_path("fsx") || install().is_ok())
}

/// Programs that were built for the tests.
pub(crate) fn own_tools() -> PathBuf {
    repository::target().join("tools/bin")
}

/// A line for each missing tool.
fn said_at_the_end(left_out: &[Tool]) -> String {
    let line = |tool: &Tool| {
        let ask = if tool.package == BROWSER { "; `cargo xtask test --with-browser` installs it" } else { "" };
        format!(
            "Left out: {} ({} is not installed, Debian package {}{ask}).\n",
            tool.without, tool.program, tool.package
        )
    };
    left_out.iter().map(line).collect()
}

/// The version of cargo's compiler.
fn compiler() -> String {
    output(Command::new("rustc").arg("--version")).unwrap_or_default()
}

/// A line if the instruction budgets are for another compiler.
fn other_compiler(version: &str) -> String {
    let known = COUNTED_WITH.trim();
    if version.starts_with(known) {
        return String::new();
    }
    format!("Left out: the budgets of instructions (they are of {known}x, and this is {version}).\n")
}

/// The first of the tests' random scenarios: different for each commit, the same for each run of one commit.
fn fresh_seed() -> u64 {
    let hash = output(Command::new("git").args(["rev-parse", "--short=8", "HEAD"])).unwrap_or_default();
    u64::from_str_radix(&hash, 16).unwrap_or(0)
}

/// Installs a browser if there is none.
fn browser() -> Result<()> {
    install_all(|| tools("browser"))
}

/// Installs a server to race with, if there is none.
pub(crate) fn install_ganesha() -> Result<()> {
    install_all(|| tools("servers"))
}

/// Installs a store to compare ways to it, and those of others, which may be absent.
pub(crate) fn install_store() -> Result<()> {
    install_missing(tools("mounts"))?;
    install_all(|| tools("store").chain(tools("tests").filter(|tool| tool.program == "ip")))
}

/// Installs the store that tests kill.
pub(crate) fn install_ceph() -> Result<()> {
    install_all(|| tools("store"))
}

/// Installs User Mode Linux and what its machines run.
pub(crate) fn install_uml() -> Result<()> {
    install_all(|| tools("uml"))
}

/// Installs an emulated machine and the programs that make a Debian for it.
pub(crate) fn install_guest() -> Result<()> {
    install_all(|| tools("guest"))
}

fn install_all<I: Iterator<Item = Tool>>(tools: impl Fn() -> I) -> Result<()> {
    install_missing(tools())?;
    match tools().find(|tool| !is_there(tool)) {
        Some(tool) => bail!("{} is not there: {} goes without it", tool.program, tool.without),
        None => Ok(()),
    }
}

/// Installs a client and creates the directories if necessary, builds quickly, and execs `afflux serve`.
pub(crate) fn serve(arguments: &[OsString]) -> Result<()> {
    if arguments.is_empty() {
        return Err(xflags::Error::new("a directory to serve is missing").into());
    }
    eprintln!(
        "Building afflux to be tried out: this takes some minutes the first time. (For use, build it with all \
         optimization: cargo install --path product/command.)"
    );
    install_missing(tools("tests").filter(|tool| tool.program == "nfs-cp"))?;
    for directory in arguments.iter().take_while(|argument| !argument.as_encoded_bytes().starts_with(b"-")) {
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    let mut command = Command::new("cargo");
    command.args(["run", "--profile", "demo", "--package", "afflux-command", "--manifest-path"]);
    command.arg(repository::root().join("Cargo.toml")).args(["--", "serve"]).args(arguments);
    if std::env::var_os("AFFLUX_CACHE").is_none() {
        command.args(demo_cache(arguments));
    }
    // An exec, so that Ctrl-C reaches only the server.
    Err(command.exec()).context("cargo run")
}

/// Arguments that make the cache small, unless the given ones set its size.
fn demo_cache(arguments: &[OsString]) -> &'static [&'static str] {
    let given = arguments.iter().any(|word| word == "--cache" || word.as_encoded_bytes().starts_with(b"--cache="));
    if given { &[] } else { &["--cache", DEMO_CACHE] }
}

/// Builds the soak with its own profile and execs it.
pub(crate) fn soak(arguments: &[OsString]) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--profile", "soak", "--package", "afflux-checker", "--bin", "soak"]);
    command.args(["--features", "rare-paths", "--"]);
    command.args(arguments).current_dir(repository::root());
    Err(command.exec()).context("cargo run")
}

/// Installs the packages of the missing tools. If the installation is not allowed or fails, the function names the
/// packages and continues: no step needs all of them.
fn install_missing(tools: impl Iterator<Item = Tool>) -> Result<()> {
    let missing: Vec<&str> = tools.filter(|tool| !is_there(tool)).map(|tool| tool.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    let by_hand = format!("sudo apt-get update && sudo apt-get install -y --no-install-recommends {list}");
    if !on_path("apt-get") || !is_root() {
        eprintln!("Not installed: {list}. To install:\n  {by_hand}");
        return Ok(());
    }
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(&missing);
    let installed = step("apt-get", &["update"]).and_then(|()| step("apt-get", &install));
    if let Err(error) = installed {
        eprintln!("warning: going on without {list} ({error}). To install:\n  {by_hand}");
    }
    Ok(())
}

/// Whether the tool is installed; a browser by any of its names.
fn is_there(tool: &Tool) -> bool {
    on_path(tool.program) || tool.package == BROWSER && BROWSERS.iter().any(|name| on_path(name))
}

/// Whether the path has a program of this name.
pub(crate) fn on_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A user's path may lack the folders of programs for root.
    let for_root = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(for_root).chain([own_tools()]).any(|directory| directory.join(tool).is_file())
}

fn step(program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    succeeds(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").current_dir(repository::root()))
}
