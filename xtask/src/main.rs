//! Development tasks: `cargo xtask <serve|test|pages|soak|race|race-nfs|race-kills|race-mount|race-stores|mounted|guest|guest-law|deb|install-c|fio-engine|sanitize|advisories|tidy|rules|docs|ci|nightly>`.
//!
//! Owns: the words that name a task, and the exit code.
//! Does not own: the tasks themselves (`tidy`, `docs`, `ci`, `limited`, `pages`, `race`, `race_nfs`, `race_kills`,
//! `race_mount`, `race_stores`, `mounted`, `guest`, `deb`, `c_library`, `fio_engine`, `sanitize`, `advisories`, `nightly`).
//! Invariants: a task that finds faults prints every one and exits with 1; wrong usage exits with 2.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is the purpose of tasks")]

mod advisories;
mod c_library;
mod ci;
mod deb;
mod docs;
mod fio_engine;
mod guest;
mod limited;
mod measured;
mod mounted;
mod nightly;
mod notices;
mod pages;
mod race;
mod race_kills;
mod race_mount;
mod race_nfs;
mod race_stores;
mod repository;
mod rules;
mod sanitize;
mod skips;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <task>
  serve DIR [...]  make DIR if it is not there, build quickly, and run `afflux serve DIR [...]` with a small cache
  test [--with-browser]
                   run all tests; installs the Debian packages they use, or names them; those in a browser
                   only where there is one, or with --with-browser, which installs it
  pages [FILE...]  look at HTML pages in a real browser, by default at those of the tests, and
                   leave pictures of them in target/pictures
  tidy [--renew]   check the rules that no compiler checks (also run by `cargo test`); --renew first writes
                   docs/reference/rules.md, and lowers the figures of xtask/english.txt to what they are
  rules            print each rule with its tests
  docs             write the generated documents, and the header of the C interface; --long: also the tables whose
                   simulation takes minutes
  race [--quick] [--rounds N] [--only PART] [--half memory|fio] [--profile NAME] [--dir DIR]
                   race the library with the kernel's page cache, a mapping, quick_cache, foyer and moka on an idle
                   machine, as root, for about a quarter of an hour, and write the tables to target/race.md;
                   --quick, or a part alone, only to see that it works; its files are in a new directory inside DIR
  race-nfs [--quick] [--profile NAME] [--dir DIR]
                   race the server with nfs-ganesha on an idle machine of two CPUs, as root, for about six minutes,
                   and write the table to target/race-nfs.md; --quick only to see that it works; its files are in a new
                   directory inside DIR
  race-kills [--rounds N] [--json] [--profile NAME] [--built DIR] [--dir DIR]
                   kill the server and nfs-ganesha under one load by turns, as root, and write what their clients lost,
                   must send again and waited for to target/race-kills.md, or print it as JSON; --built: the
                   programs are there
  race-mount [--quick] [--rounds N] [--only WORDS]... [--all-cpus] [--libfuse DIR] [--profile NAME] [--dir DIR]
                   race the mount with the host, a bare FUSE server, libfuse's passthrough_ll and passthrough_hp,
                   mergerfs and NFS by a bridge on an idle machine, as root, for about six minutes, and write the
                   tables to target/race-mount.md; DIR of --libfuse has libfuse's examples; --quick only to see that it
                   works
  race-stores [--quick] [--delay-ms N] [--minutes N] [--only NAME]... [--profile NAME] [--dir DIR]
                   compare volumes in an object store with plain requests, s3fs and rclone, on a Ceph whose answers are
                   30 ms late, on an idle machine, as root, for about seven minutes, and write the table to
                   target/race-stores.md; --quick, or some participants, only to see that it works
  mounted [--fuse] [--store file|radosgw [--kill-every SECONDS]] [--operations N] [--seeds N] [--minutes N] [--dir DIR]
          [--built DIR] [--profile NAME] [--keep] [NAME...]
                   mount the server through a bridge, as root, and run fio, tar, rsync, git, sqlite, fsx and pjdfstest there,
                   or those named; --fuse: on `afflux mount` instead, with a shared mapping, a cargo build, stress-ng and a
                   group with little memory, too, the last two for --minutes; --store: over a volume in a store, whose
                   gateway is killed at that interval; --operations: those of fsx by each of its --seeds; --dir: the files
                   are in a new directory there; --built: the programs are there; fsx and pjdfstest: `cargo install fsx
                   pjdfstest`
  mounted --xfstests DIR [--dir DIR] [--built DIR] [--profile NAME] [--keep] [NAME...]
                   run the quick group of a built xfstests, or the named tests, on `afflux mount`, as root, for an hour
  guest [--quick] [--list] [--suite NAME] [--deb FILE | --built DIR] [--xfstests DIR] [--profile NAME] [--cpus N]
        [--memory MIB] [--rebuild] [--debian] [--json] [CASE...]
                   run the cases of tests/guest in a Debian under QEMU, as root: Linux's own NFS client, the package
                   under systemd, failing disks; without names all of them, for hours; --quick: those of two minutes;
                   CASE@knfsd: beside Linux's own server; --xfstests: the case of this name runs a built xfstests; a package, a
                   Debian and an emulator are made or installed
  guest-law [--dirty-bytes N] [--seconds N] [--memory MIB] [--request-ns N]
                   the dirty pages and pauses of a real Linux 6.1 in instruction time, second by second: docs/develop/guest.md
  deb [--profile NAME]
                   build for use, and make a Debian package of it in target/deb
  install-c [--prefix DIR] [--destdir DIR] [--profile NAME]
                   build and install the C interface: header, libraries, pkg-config file
  fio-engine [--profile NAME]
                   build target/fio-engine/afflux.so, with which fio goes through Afflux: product/afflux-c/fio/README.md
  sanitize address|thread [...]
                   run tests with the AddressSanitizer or the ThreadSanitizer, or what `cargo test` is given: minutes to
                   build; docs/develop/concurrency.md says what they see
  advisories       check the licences, sources and known faults of others' crates with cargo-deny, which is installed
                   below target if it is not there
  soak [...]       run many random scenarios in the simulator; --help says more
  ci [--with-browser] [--forbid-skips]
                   formatting, lints, and all tests; with --forbid-skips, fails for a skipped test unless
                   xtask/src/skips.rs excuses it
  nightly          the long checks, for hours: large soaks, tests of minutes, loom's models, both sanitizers,
                   the licences and known faults of others' crates";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["tidy"] => tidy::run(),
        ["tidy", "--renew"] => tidy::renew(),
        ["rules"] => rules::print(),
        ["docs"] => docs::write(false),
        ["docs", "--long"] => docs::write(true),
        ["nightly"] => nightly::run(),
        ["ci", ..] => ci::all(&words[1..]),
        ["test"] => ci::test(false),
        ["test", "--with-browser"] => ci::test(true),
        ["pages", ..] => pages::check(&words[1..]),
        ["race", ..] => race::run(&words[1..]),
        ["race-kills", ..] => race_kills::run(&words[1..]),
        ["race-mount", ..] => race_mount::run(&words[1..]),
        ["race-nfs", ..] => race_nfs::run(&words[1..]),
        ["race-stores", ..] => race_stores::run(&words[1..]),
        ["mounted", ..] => mounted::run(&words[1..]),
        ["guest", ..] => guest::run(&words[1..]),
        ["guest-law", ..] => guest::law::run(&words[1..]),
        ["deb", ..] => deb::run(&words[1..]),
        ["install-c", ..] => c_library::install(&words[1..]),
        ["fio-engine", ..] => fio_engine::run(&words[1..]),
        ["sanitize", ..] => sanitize::run(&words[1..]),
        ["advisories"] => advisories::check(),
        ["soak", ..] => ci::soak(&words[1..]),
        ["serve", _, ..] => ci::serve(&words[1..]),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
