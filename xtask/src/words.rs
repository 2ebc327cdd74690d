//! The words of all commands.
//!
//! Owns: their declaration; the help that is made from it.
//! Does not own: the words of the races (`afflux_rig::words`), the meaning of any word.
//! Invariants: a word is declared once. `cargo xtask NAME --help` shows each word of a command.
#![allow(unreachable_pub, reason = "a macro makes types of the declaration")]

use std::ffi::OsString;
use std::path::PathBuf;

use afflux_rig::choice;
use afflux_rig::words::{Count, Number, Races};

xflags::xflags! {
    /// Development tasks. `cargo xtask NAME --help` shows the words of one.
    cmd xtask {
        /// Try the server out: make DIR if it is not there, build quickly, and run `afflux serve` with a small cache.
        cmd serve {
            /// DIR, then words of `afflux serve`
            repeated words: OsString
        }

        /// Run all tests. Installs the Debian packages they use, or names them.
        cmd test {
            /// Also install a browser for the tests in one. Without it they run where there is a browser
            optional --with-browser
            /// As root: run them as a user without root and packages, with the limits of a login
            optional --as-user
        }

        /// Check the rules that no compiler checks. `cargo test` does so, too.
        cmd tidy {
            /// First lower the figures of xtask/names.txt to those of today
            optional --renew
        }

        /// Print each rule with its tests.
        cmd rules {}

        /// Write the generated documents, and the header of the C interface.
        cmd docs {
            /// Also the tables whose simulation takes minutes
            optional --long
        }

        /// Mount the server, as root, and run fio, tar, rsync, git, sqlite, fsx, pjdfstest and others there. fsx and
        /// pjdfstest come by `cargo install fsx pjdfstest`.
        cmd mounted {
            /// The programs, or tests of xfstests, to run (all)
            repeated names: String
            /// On `afflux mount`, and not on the server through a bridge: also a shared mapping, a cargo build,
            /// stress-ng and a group with little memory
            optional --fuse
            /// Over a volume in a store: file, or radosgw
            optional --store kind: Store
            /// Kill the store's gateway (radosgw) at this interval
            optional --kill-every seconds: Count
            /// Operations of fsx by each seed (20000)
            optional --operations n: Count
            /// Seeds of fsx (1)
            optional --seeds n: Count
            /// The first seed of fsx (1)
            optional --first-seed n: Count
            /// How long stress-ng and the program with little memory run (20 seconds)
            optional --minutes n: Count
            /// Run the quick group of the xfstests that is built in this directory, or the named tests, on `afflux
            /// mount`, for an hour
            optional --xfstests dir: PathBuf
            /// The files are in a new directory inside this one (target)
            optional --dir dir: PathBuf
            /// The programs are in this directory, and none is built
            optional --built dir: PathBuf
            /// The profile of the build (demo)
            optional --profile name: String
            /// Leave the files there
            optional --keep
        }

        /// Run cases of tests/guest in a Debian under QEMU, as root, for hours: Linux's own NFS client, the package
        /// under systemd, failing disks. A package, a Debian and an emulator are made or installed.
        cmd guest {
            /// The cases (all); CASE@knfsd runs beside Linux's own server
            repeated cases: String
            /// Only the cases of two minutes
            optional --quick
            /// Print the names of the cases
            optional --list
            /// The release of Debian (bookworm)
            optional --suite name: String
            /// A package that is there
            optional --deb file: PathBuf
            /// A directory of programs, for a package of them
            optional --built dir: PathBuf
            /// A built xfstests, for the case of this name
            optional --xfstests dir: PathBuf
            /// The profile of the build (demo)
            optional --profile name: String
            /// Processors of the guest (1)
            optional --cpus n: Count
            /// Its memory in MiB (1024)
            optional --memory mib: Count
            /// Make the Debian anew
            optional --rebuild
            /// Make the Debian only
            optional --debian
            /// Print a record of the verdicts
            optional --json
        }

        /// Run cases of tests/uml with Linux's own NFS client, as root, in three minutes: machines of User Mode Linux
        /// boot in seconds. cthon04 and nfs-conformance are other projects' suites, which come from GitHub.
        cmd uml {
            /// The cases (those of tests/uml/all)
            repeated cases: String
            /// The programs are in this directory, and none is built
            optional --built dir: PathBuf
            /// The profile of the build (demo)
            optional --profile name: String
        }

        /// Print the dirty pages and pauses of a real Linux 6.1 in instruction time, second by second:
        /// docs/develop/guest.md. Or print what an NFS server there has left to write at each COMMIT of a copy, or
        /// the time of programs on a mount of it.
        cmd guest-law {
            /// stream, at-rate, small-sync, burst, copy or programs (stream)
            optional --load name: Load
            /// The server of copy and programs: knfsd or afflux; of programs also afflux-async, ganesha, none (knfsd)
            optional --server name: Server
            /// The program afflux of these loads
            optional --program file: PathBuf
            /// The strict limit of the disk's dirty pages of copy, since Linux 6.2 (0: none)
            optional --max-bytes n: Number
            /// The release of Debian (bookworm; trixie has Linux 6.12)
            optional --suite name: String
            /// Bytes a second of the load at-rate (0: full speed), and of the link of copy (0: 11,800,000)
            optional --rate bytes: Number
            /// vm.dirty_bytes; the background limit is half of it (0: the kernel's ratios)
            optional --dirty-bytes n: Number
            /// The length of the load (45)
            optional --seconds n: Count
            /// The guest's memory in MiB (4096)
            optional --memory mib: Count
            /// The disk's time for a request of at most 128 KiB (5242880)
            optional --request-ns n: Number
        }

        /// Build for use, and make Debian packages in target/deb.
        cmd deb {
            /// The profile of the build (dist)
            optional --profile name: String
        }

        /// Build and install the C interface: header, libraries, pkg-config file.
        cmd install-c {
            /// Where it is installed (/usr/local)
            optional --prefix dir: PathBuf
            /// A root above the prefix, for packages
            optional --destdir dir: PathBuf
            /// The profile of the build (release)
            optional --profile name: String
        }

        /// Build target/fio-engine/afflux.so, with which fio goes through Afflux: product/afflux-c/fio/README.md.
        cmd fio-engine {
            /// The profile of the build (release)
            optional --profile name: String
        }

        /// Run tests with a sanitizer. The build takes minutes; docs/develop/concurrency.md has its limits.
        cmd sanitize {
            /// address or thread
            required which: Sanitizer
            /// Arguments of `cargo test` (the tests of crates with raw memory or threads)
            repeated words: OsString
        }

        /// Check the licences, sources and known faults of others' crates with cargo-deny. It is installed below target
        /// if it is not there.
        cmd advisories {}

        /// Run many random scenarios in the simulator.
        cmd soak {
            /// `cargo xtask soak --help` builds the soak, which shows its own words
            repeated words: OsString
        }

        /// Formatting, lints, and all tests.
        cmd ci {
            /// Also install a browser for the tests in one
            optional --with-browser
            /// Fail for a skipped test unless xtask/src/skips.rs excuses it
            optional --forbid-skips
        }

        /// The long checks, for hours: large soaks, tests of minutes, loom's models, both sanitizers, the races in
        /// their small form, the licences and known faults of others' crates.
        cmd nightly {}
    }
}

choice! {
    /// A kind of store: a directory, or a Ceph.
    pub(crate) Store { File = "file", Radosgw = "radosgw" }
}

choice! {
    /// A sanitizer of the compiler.
    pub(crate) Sanitizer { Address = "address", Thread = "thread" }
}

choice! {
    /// A load that `tests/guest/law/load.py` knows, the copy of `copy.py`, or the programs of `programs.sh`.
    pub(crate) Load {
        Stream = "stream", AtRate = "at-rate", SmallSync = "small-sync", Burst = "burst", Copy = "copy", Programs = "programs",
    }
}

choice! {
    /// A server of NFS: Linux's own, ours with durable names or without, or ganesha; none is the file system itself.
    pub(crate) Server {
        Knfsd = "knfsd", Afflux = "afflux", AffluxAsync = "afflux-async", Ganesha = "ganesha", None = "none",
    }
}

/// Commands whose words after the name, or its first word, are another program's.
const OTHERS: [&str; 3] = ["serve", "sanitize", "soak"];

/// The command that words name, unless they name a race.
pub(crate) fn parsed(words: &[&str]) -> xflags::Result<Xtask> {
    let mut all: Vec<OsString> = words.iter().map(OsString::from).collect();
    if words.first().is_some_and(|name| OTHERS.contains(name)) {
        all.insert(1, "--".into());
    }
    Xtask::from_vec(all)
}

/// The help that words ask for. That of the soak is its own.
pub(crate) fn asked_help(words: &[&str]) -> Option<String> {
    match *words {
        ["help" | "--help" | "-h"] => Some(overview()),
        ["soak", ..] => None,
        [name, "--help" | "-h"] => Some(help(name).unwrap_or_else(overview)),
        _ => None,
    }
}

/// The help of one command.
fn help(name: &str) -> Option<String> {
    let (all, root) = if name.starts_with("race") { (Races::HELP, "races ") } else { (Xtask::HELP_, "xtask ") };
    let mut lines = all.lines().skip_while(|line| line.strip_prefix(root) != Some(name));
    let first = lines.next()?;
    let own: Vec<&str> = lines.take_while(|line| !line.starts_with(root)).collect();
    let mut text = format!("cargo xtask {}\n{}", first.strip_prefix(root)?, own.join("\n"));
    if root == "races " {
        let shared = all.split_once("OPTIONS:")?.1.split_once("SUBCOMMANDS:")?.0;
        text = format!("{}\n\n  Of all races:{shared}", text.trim_end());
    }
    Some(text.trim_end().to_owned())
}

/// Each command with its first sentence.
pub(crate) fn overview() -> String {
    let mut text = "usage: cargo xtask NAME; `cargo xtask NAME --help` shows the words of one\n".to_owned();
    for (all, root) in [(Xtask::HELP_, "xtask "), (Races::HELP, "races ")] {
        let mut lines = all.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(name) = line.strip_prefix(root) else { continue };
            text += &format!("\n  {name}\n");
            while let Some(line) = lines.next_if(|line| line.starts_with("  ") && !line.trim().is_empty()) {
                text += &format!("      {}\n", line.trim());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
