//! Measures changes of names on a server, by clients that each work in their own directory.
//!
//! Owns: its arguments, a line for each kind of call. Does not own: the load ([`afflux_nfs_client::NamesLoad`]).
//! Invariants: exit code 0 if all calls succeeded, 1 if not, 2 for wrong usage.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::net::SocketAddr;
use std::process::ExitCode;

use afflux_nfs_client::{Client, Error, NamesLoad};

const USAGE: &str = "usage: names-load HOST:PORT EXPORT CLIENTS FILES [MOUNT-HOST:PORT]
Makes, changes, renames and removes FILES files for each of CLIENTS, and says how many a second that were.";

struct Options {
    nfs: SocketAddr,
    mount: SocketAddr,
    export: String,
    clients: usize,
    files: usize,
}

fn asked(arguments: &[String]) -> Option<Options> {
    let nfs = arguments.first()?.parse().ok()?;
    let mount = arguments.get(4).map_or(Some(nfs), |mount| mount.parse().ok())?;
    let number = |at: usize| arguments.get(at)?.parse().ok().filter(|number: &usize| *number > 0);
    Some(Options { nfs, mount, export: arguments.get(1)?.clone(), clients: number(2)?, files: number(3)? })
}

fn run(asked: &Options) -> Result<(), Error> {
    let directory = Client::connect(asked.mount)?.mount(&asked.export)?;
    let load = NamesLoad { nfs: asked.nfs, directory, clients: asked.clients, files: asked.files };
    for step in load.run()? {
        println!("{:8} {:9.0}/s", step.step, step.rate());
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(asked) = asked(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
