//! The words of the commands that race. `cargo xtask` reads them, and hands them to the race's program, which reads
//! them again.
//!
//! Owns: their declaration, its numbers, the places that xtask hands over before the words; what the programs print.
//! Does not own: the other commands of xtask.
//! Invariants: a word is declared once. A partial race is never whole.
#![allow(missing_docs, unreachable_pub, reason = "a macro makes types of the declaration, which has their texts")]

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use crate::choice;

xflags::xflags! {
    /// Race beside others, on an idle machine. All but `race` take root. A whole race writes its tables to
    /// target/NAME.md.
    cmd races {
        /// See only that it works: the figures mean nothing, and no table is written
        optional --quick
        /// Rounds of each case
        optional --rounds n: Count
        /// Only cases or contenders with these words in their names; no table is written
        repeated --only words: String
        /// The profile of the build (release)
        optional --profile name: String
        /// The files are in a new directory inside this one (target)
        optional --dir dir: PathBuf

        /// Race the library with the kernel's page cache, a mapping, quick_cache, foyer and moka in memory, in redb and
        /// in fio, for about a quarter of an hour. With the profile `quick` it is built fast.
        cmd race {
            /// Only this part: memory, redb or fio; no table is written
            optional --half part: Half
        }

        /// Race the server with nfs-ganesha, on two CPUs, for about six minutes.
        cmd race-nfs {}

        /// Kill the server and nfs-ganesha under one load by turns. The table tells what their clients lost, must send
        /// again and waited for.
        cmd race-kills {
            /// Print the figures of each kill as JSON; no table is written
            optional --json
            /// The programs are in this directory, and none is built
            optional --built dir: PathBuf
        }

        /// Race the mount with the host, a bare FUSE server, libfuse's passthrough_ll and passthrough_hp, mergerfs, and
        /// NFS by a bridge, for about six minutes.
        cmd race-mount {
            /// Callers and servers use all CPUs
            optional --all-cpus
            /// The directory of libfuse's examples (that of Debian's libfuse3-dev)
            optional --libfuse dir: PathBuf
        }

        /// Compare volumes in an object store with plain requests, ZeroFS, s3fs and rclone, on a Ceph whose answers are
        /// late, for about seven minutes.
        cmd race-stores {
            /// Milliseconds by which each answer is late (30)
            optional --delay-ms n: Number
            /// The bandwidth of the network in each direction (0: no bound)
            optional --network-mbit-per-s n: Number
            /// The time for all rounds (7)
            optional --minutes n: Count
        }
    }
}

impl Races {
    /// The text of the declaration.
    pub const HELP: &str = Self::HELP_;

    /// Whether all of it runs, in full length, for a table to keep.
    pub fn is_whole(&self) -> bool {
        let is_part = match &self.subcommand {
            RacesCmd::Race(race) => race.half.is_some(),
            RacesCmd::RaceKills(kills) => kills.json,
            _ => false,
        };
        !self.quick && self.only.is_empty() && !is_part
    }

    /// Whether a case, or a contender, of this name runs.
    pub fn is_wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|words| name.contains(words.as_str()))
    }

    /// The rounds of a case that has so many usually. A quick race has one.
    pub fn rounds_or(&self, usual: usize) -> usize {
        self.rounds.map_or(if self.quick { 1 } else { usual }, |rounds| rounds.0 as usize)
    }

    /// The words of a race's program, after the places that xtask made for it. Ends the program if they are wrong.
    fn of_program<const N: usize>() -> ([PathBuf; N], Self) {
        let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
        let rest = words.split_off(N.min(words.len()));
        let parsed =
            <[OsString; N]>::try_from(words).map_err(|_| xflags::Error::new("`cargo xtask` starts this program"));
        match parsed.and_then(|places| Ok((places.map(PathBuf::from), Self::from_vec(rest)?))) {
            Ok(parsed) => parsed,
            Err(error) => error.exit(),
        }
    }
}

/// Runs a race's program, given the places that xtask made for it and the words: standard output has the tables alone,
/// standard error the progress.
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is the purpose of these programs")]
pub fn program<const N: usize, E: Display>(
    race: impl FnOnce([PathBuf; N], Races, &mut dyn FnMut(String)) -> Result<String, E>,
) -> ExitCode {
    let (places, words) = Races::of_program();
    printed(race(places, words, &mut |line| eprintln!("{line}")))
}

/// Prints the outcome of a program.
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is the purpose of these programs")]
pub fn printed<E: Display>(outcome: Result<String, E>) -> ExitCode {
    match outcome {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

choice! {
    /// A part of `race`.
    pub Half { Memory = "memory", Redb = "redb", Fio = "fio" }
}

/// A whole number, at least `LEAST`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtLeast<const LEAST: u64>(pub u64);

/// A whole number.
pub type Number = AtLeast<0>;

/// A whole number of things of which there is one at least.
pub type Count = AtLeast<1>;

impl<const LEAST: u64> FromStr for AtLeast<LEAST> {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let number = word.parse().ok().filter(|number| *number >= LEAST);
        number.map(Self).ok_or_else(|| format!("'{word}' is no whole number from {LEAST} to {}", u64::MAX))
    }
}

#[cfg(test)]
mod tests;
