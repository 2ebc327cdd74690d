//! Kills servers under one load in a separate network, which `cargo xtask race-kills` sets up. With `asking` as its
//! first word the caller kills the server.
//!
//! Owns: the words of a run whose caller kills.
//! Does not own: the comparison (`afflux_nfs_check::kills`), its words and the output (`afflux_rig::words`).
//! Invariants: standard output has only the figures, and `kill` where the caller kills.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the caller hears when to kill")]

use std::ffi::OsString;
use std::process::ExitCode;

use afflux_nfs_check::Failure;
use afflux_nfs_check::kills::{Options, Server, run, run_with};
use afflux_rig::words::{RacesCmd, printed, program};

use words::Asking;

mod words {
    //! The words of a run whose caller kills.
    #![allow(unreachable_pub, reason = "a macro makes types of the declaration")]

    use std::net::SocketAddr;

    xflags::xflags! {
        /// Load a server that the caller kills when this program prints `kill`.
        cmd asking {
            /// The server's name in the figures
            required name: String
            /// The address of NFS
            required nfs: SocketAddr
            /// The address of MOUNT
            required mount: SocketAddr
            /// The export
            required export: String
            /// Kills
            required rounds: u64
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.split_first() {
        Some((word, rest)) if word == "asking" => {
            printed(Asking::from_vec(rest.to_vec()).map_or_else(|error| error.exit(), asking))
        }
        _ => program(|[directory, afflux], words, told| {
            let json = matches!(&words.subcommand, RacesCmd::RaceKills(kills) if kills.json);
            run(&Options { directory, afflux, json, words }, told)
        }),
    }
}

fn asking(words: Asking) -> Result<String, Failure> {
    let server = Server { nfs: words.nfs, mount: words.mount, path: words.export };
    let text = run_with(&server, &words.name, words.rounds, &mut |word| println!("{word}"))?;
    Ok(format!("end {text}\n"))
}
