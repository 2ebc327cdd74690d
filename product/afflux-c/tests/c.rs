//! The C interface from C: installed as for use, compiled by the system's compiler, run directly and under valgrind.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, reason = "a test")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod sanitizer;

/// All warnings are enabled, and a warning is an error.
const STRICT: &[&str] = &["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The libraries, installed in a directory of the test.
struct Installed {
    place: tempfile::TempDir,
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).join("\n");
    assert!(output.status.success(), "{command:?}: {}\n{told}", output.status);
    output
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        afflux_scratch::skipped!("{program} is not installed");
    }
    there
}

impl Installed {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        // Cargo leaves the libraries beside the tests.
        let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        ran(Command::new(source("install.sh")).arg(libraries).arg(place.path().join("usr")));
        Self { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The output of pkg-config.
    fn flags(&self, ask: &[&str]) -> Vec<String> {
        let found = self.path("usr/lib/pkgconfig");
        let mut command = Command::new("pkg-config");
        let output = ran(command.env("PKG_CONFIG_PATH", found).args(ask).arg("afflux"));
        String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
    }

    /// A program, linked with the shared library or the static one.
    fn built(&self, name: &str, how: How) -> PathBuf {
        let program = self.path("program");
        let mut compile = Command::new("cc");
        compile.args(STRICT).args(self.flags(&["--cflags"])).arg(source(name)).arg("-o").arg(&program);
        compile.args(sanitizer::flags());
        match how {
            How::Static => {
                compile.arg(self.path("usr/lib/libafflux.a"));
                let libraries = self.flags(&["--libs", "--static"]);
                compile.args(libraries.iter().filter(|flag| *flag != "-lafflux"));
            }
            How::Sanitized => drop(compile.args(SANITIZED).args(self.flags(&["--libs"]))),
            How::Shared | How::Valgrind => drop(compile.args(self.flags(&["--libs"]))),
        }
        ran(&mut compile);
        program
    }

    /// Runs a program, and fails if a fault is found.
    fn run(&self, program: &Path, arguments: &[&OsStr], how: How) -> String {
        let mut command = Command::new("timeout");
        command.arg("300").envs(sanitizer::options());
        if how == How::Valgrind {
            command.args(["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--trace-children=no"]);
            // Otherwise threads that find all their reads in the cache, and so make no system call, may keep all others
            // from running.
            command.arg("--fair-sched=yes");
            // Memory that is still reachable is kept for the process's life on purpose.
            command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
        }
        command.arg(program).args(arguments).env("LD_LIBRARY_PATH", self.path("usr/lib"));
        let output = ran(&mut command);
        let said = String::from_utf8_lossy(&output.stderr);
        let found: Vec<&str> = said.lines().filter(|line| !is_note_of_valgrind(line)).collect();
        assert!(found.is_empty(), "{command:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Whether a line is valgrind's note on a system call that it does not know. What it finds begins with `==`.
fn is_note_of_valgrind(line: &str) -> bool {
    let number = line.strip_prefix("--").and_then(|rest| rest.split_once("-- "));
    number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

/// How a program is linked, and the tool that watches it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Shared,
    Static,
    /// With system calls instead of io_uring: while one thread waits for a ring, valgrind lets no other run.
    Valgrind,
    /// The sanitizer sees all accesses across the border, and every freed block; with io_uring.
    Sanitized,
}

const SANITIZED: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

impl How {
    fn is_possible(self) -> bool {
        let possible = is_there("cc") && is_there("pkg-config");
        let alone = sanitizer::NAME.is_none() || matches!(self, Self::Shared | Self::Static);
        if !alone {
            afflux_scratch::skipped!("neither valgrind nor another sanitizer beside one");
        }
        possible && alone && (self != Self::Valgrind || is_there("valgrind"))
    }
}

/// Everything below a directory, without directories.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let is_directory = std::fs::symlink_metadata(&path).unwrap().is_dir();
        if is_directory { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn a_staged_installation_works_at_its_prefix() {
    if !How::Shared.is_possible() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let stage = place.path().join("a stage");
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let prefix = place.path().join("opt");
    ran(Command::new(source("install.sh")).arg(libraries).args([&prefix, &stage]));
    assert!(!prefix.exists(), "nothing is put at the prefix itself");
    for path in files_below(&stage) {
        let text = if path.is_symlink() {
            std::fs::read_link(&path).unwrap().into_os_string().into_string().unwrap()
        } else if path.extension().is_some_and(|kind| kind == "pc") {
            std::fs::read_to_string(&path).unwrap()
        } else {
            continue;
        };
        assert!(!text.contains("stage"), "{} names the stage: {text}", path.display());
    }
    // As a package is unpacked.
    std::fs::rename(stage.join(prefix.strip_prefix("/").unwrap()), place.path().join("usr")).unwrap();
    std::os::unix::fs::symlink("usr", &prefix).unwrap();
    let installed = Installed { place };
    let program = installed.built("examples/log.c", How::Shared);
    let log = installed.path("log");
    assert_eq!(installed.run(&program, &[log.as_os_str()], How::Shared), "1000 records, 0 bytes dirty, 1 files\n");
}

#[test]
fn a_prefix_that_pkg_config_could_not_tell_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    for (prefix, why) in [
        ("opt/afflux", "is no absolute path"),
        ("", "is no absolute path"),
        ("/opt/a|b", "has other characters than letters, digits and"),
        ("/opt/a b", "has other characters than letters, digits and"),
        ("/opt/a&b", "has other characters than letters, digits and"),
    ] {
        let mut script = Command::new(source("install.sh"));
        let output = script.arg(&libraries).args([OsStr::new(prefix), place.path().as_os_str()]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{prefix}: {said}");
        assert!(said.contains(why) && said.contains(&format!("'{prefix}'")), "{prefix}: {said}");
        assert_eq!(files_below(place.path()), Vec::<PathBuf>::new(), "{prefix}");
    }
}

fn log_runs(how: How) {
    if !how.is_possible() {
        return;
    }
    let installed = Installed::new();
    let program = installed.built("examples/log.c", how);
    let log = installed.path("log");
    let mut arguments = vec![log.as_os_str()];
    arguments.extend((how == How::Valgrind).then_some(OsStr::new("syscalls")));
    assert_eq!(installed.run(&program, &arguments, how), "1000 records, 0 bytes dirty, 1 files\n");
    assert_eq!(std::fs::metadata(log).unwrap().len(), 256 * 1000);
}

#[test]
fn the_example_runs_with_the_shared_library() {
    log_runs(How::Shared);
}

#[test]
fn the_example_runs_with_the_static_library() {
    log_runs(How::Static);
}

#[test]
fn valgrind_finds_nothing_in_the_example() {
    log_runs(How::Valgrind);
}

#[test]
fn the_address_sanitizer_finds_nothing_in_the_example() {
    log_runs(How::Sanitized);
}

fn bad_input(how: How) {
    if !how.is_possible() {
        return;
    }
    let installed = Installed::new();
    let program = installed.built("tests/c/bad_input.c", how);
    let files = installed.path("files");
    std::fs::create_dir(&files).unwrap();
    // The header's number.
    let io = if how == How::Valgrind { "2" } else { "0" };
    let told = installed.run(&program, &[OsStr::new(io), files.as_os_str()], how);
    assert_eq!(told.lines().next_back(), Some("all is as it should be"), "{told}");
}

#[test]
fn every_mistake_is_an_error_and_nothing_else() {
    bad_input(How::Shared);
}

#[test]
fn valgrind_finds_nothing_in_mistakes() {
    bad_input(How::Valgrind);
}

#[test]
fn the_address_sanitizer_finds_nothing_in_mistakes() {
    bad_input(How::Sanitized);
}

/// The sanitizer sees how the library itself uses a program's memory.
#[test]
fn a_sanitized_library_finds_what_a_program_does_wrong() {
    let Some((word, finding)) = sanitizer::planted().filter(|_| How::Static.is_possible()) else { return };
    let installed = Installed::new();
    for how in [How::Static, How::Shared] {
        let program = installed.built("tests/c/planted.c", how);
        let mut command = Command::new("timeout");
        command.arg("60").arg(program).arg(word).arg(installed.path("file"));
        let output = command.env("LD_LIBRARY_PATH", installed.path("usr/lib")).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(finding), "{}\n{told}", output.status);
        let found_in = |frame: &str| frame.contains("#0 ") && frame.contains("queue");
        assert!(told.lines().any(found_in), "not in the library: {told}");
    }
}

#[test]
fn the_header_is_for_c_plus_plus_and_old_compilers_of_c_too() {
    for (compiler, standard) in [("c++", "-std=c++11"), ("cc", "-std=c99"), ("cc", "-std=gnu2x")] {
        if is_there(compiler) {
            let language = if compiler == "c++" { "c++" } else { "c" };
            let flags = [standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", language];
            ran(Command::new(compiler).args(flags).arg(source("include/afflux.h")));
        }
    }
}

#[test]
fn the_installed_names_are_those_that_programs_look_for() {
    if !is_there("readelf") {
        return;
    }
    let installed = Installed::new();
    let library = installed.path("usr/lib/libafflux.so.0");
    let dynamic = ran(Command::new("readelf").arg("-d").arg(&library));
    assert!(String::from_utf8_lossy(&dynamic.stdout).contains("Library soname: [libafflux.so.0]"));
    let symbols = ran(Command::new("readelf").args(["--dyn-syms", "--wide"]).arg(&library));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let ours = symbols.lines().filter(|line| line.contains(" FUNC ") && !line.contains(" UND "));
    let names: Vec<_> = ours.filter_map(|line| line.split_whitespace().nth(7)).collect();
    assert!(names.contains(&"afflux_read") && names.iter().all(|name| name.starts_with("afflux_")), "{names:?}");
    if is_there("pkg-config") {
        assert!(installed.flags(&["--modversion"]).concat().starts_with(env!("CARGO_PKG_VERSION")));
    }
}
