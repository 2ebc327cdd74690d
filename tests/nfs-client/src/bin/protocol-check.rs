//! Runs the checks of [`afflux_nfs_client::check`] on a server.
//!
//! Owns: its words, a line for each check. Does not own: the checks.
//! Invariants: exit code 0 if all rules hold, 1 if not, 2 for wrong usage or an unreachable server.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::process::ExitCode;

use afflux_nfs_client::check::{Failure, More, Target, all, make_links};

mod words {
    //! The words of this program.
    #![allow(unreachable_pub, reason = "a macro makes types of the declaration")]

    use std::net::SocketAddr;
    use std::path::PathBuf;

    xflags::xflags! {
        /// Check an NFSv3 server, in directories that it makes in the export and removes.
        cmd protocol-check {
            /// HOST:PORT of NFS
            optional nfs: SocketAddr
            /// The export
            optional export: String
            /// HOST:PORT of MOUNT, if it is another
            optional --mount address: SocketAddr
            /// A small export of an ext4 of its own, for the checks about full disks
            optional --small export: String
            /// A read-only export with `file` and `directory` in it
            optional --read-only export: String
            /// Fill this directory of the server's host with links for --small, and check nothing
            optional --links dir: PathBuf
        }
    }
}

fn main() -> ExitCode {
    let words = words::ProtocolCheck::from_env_or_exit();
    if let Some(directory) = words.links {
        return match make_links(&directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {}: {error}", directory.display());
                ExitCode::from(2)
            }
        };
    }
    let (Some(nfs), Some(export)) = (words.nfs, words.export) else {
        xflags::Error::new("an address and an export are missing; --help shows all words").exit()
    };
    let more = More { small: words.small, read_only: words.read_only };
    let target = Target { nfs, mount: words.mount.unwrap_or(nfs), export, more };
    if let Err(error) = target.reach() {
        eprintln!("error: {} at {}: {error}", target.export, target.nfs);
        return ExitCode::from(2);
    }
    let (mut holding, mut broken) = (0, 0);
    for check in all() {
        match check.run(&target) {
            Ok(()) => {
                holding += 1;
                println!("holds   {}", check.name);
            }
            Err(Failure::Missing(what)) => println!("left out {}: needs {what}", check.name),
            Err(failure) => {
                broken += 1;
                println!("broken  {}: {failure}\n        ({})", check.name, check.rule);
            }
        }
    }
    println!("{holding} of {} rules hold", holding + broken);
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
