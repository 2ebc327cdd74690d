//! Hostile clients of version 4.2 beside honest ones, on a running server.
//!
//! Owns: its words, its output. Does not own: the clients (`afflux_nfs_check::hostile`).
//! Invariants: exit code 0 if each honest answer was right and came within the bound, 1 if not, 2 for wrong usage.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::process::ExitCode;
use std::time::Duration;

use afflux_nfs_check::hostile::{Outcome, Plan, run};

use words::NfsHostile;

mod words {
    //! The words of this program.
    #![allow(unreachable_pub, reason = "a macro makes types of the declaration")]

    use std::net::SocketAddr;

    use afflux_nfs_check::hostile::Attack;

    xflags::xflags! {
        /// Hostile clients of NFS 4.2 in the export's root, and honest clients whose answers are timed. Needs root.
        cmd nfs-hostile {
            /// HOST:PORT of NFS, of this machine
            required nfs: SocketAddr
            /// The length of the run in seconds (60)
            optional --seconds n: u64
            /// The only kind of hostile clients, such as delegations (all)
            optional --only kind: Attack
            /// The hostile clients' draws follow from it (1)
            optional --seed n: u64
            /// The longest time of an honest answer, in milliseconds (100)
            optional --bound-ms n: u64
            /// The longest time of a change of a file that others may have delegated, in milliseconds (70000: a lease
            /// and ten seconds)
            optional --conflict-bound-ms n: u64
        }
    }
}

fn main() -> ExitCode {
    let words = NfsHostile::from_env_or_exit();
    let (seconds, seed) = (words.seconds.unwrap_or(60), words.seed.unwrap_or(1));
    match run(&Plan { nfs: words.nfs, seed, time: Duration::from_secs(seconds), only: words.only }) {
        Ok(outcome) => {
            print(&outcome);
            let is_within =
                |time: Duration, bound: Option<u64>, usual| time <= Duration::from_millis(bound.unwrap_or(usual));
            let is_right = is_within(outcome.longest(), words.bound_ms, 100)
                && is_within(outcome.longest_conflict(), words.conflict_bound_ms, 70_000);
            if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(failure) => {
            eprintln!("error: {failure} (seed {seed})");
            ExitCode::FAILURE
        }
    }
}

fn print(outcome: &Outcome) {
    for asked in &outcome.asked {
        let us = |time: Duration| time.as_micros();
        println!(
            "{:12} {:7} answers, median {:6} us, 99 % {:7} us, longest {:7} us",
            asked.kind.word(),
            asked.count(),
            us(asked.per_mille(500)),
            us(asked.per_mille(990)),
            us(asked.longest()),
        );
    }
    for (attack, answers) in &outcome.attacks {
        println!("{:12} {answers:7} answers to a hostile client", attack.word());
    }
}
