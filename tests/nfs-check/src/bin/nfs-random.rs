//! Runs random operations on a running server, against a model of each file.
//!
//! Owns: its arguments, its output. Does not own: the operations (`afflux_nfs_check::random`).
//! Invariants: exit code 0 if every answer was right, 1 if not, 2 for wrong usage or an unreachable server.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::net::SocketAddr;
use std::process::ExitCode;

use afflux_nfs_check::random::{Plan, drive};
use afflux_nfs_client::{Change, Client};

const USAGE: &str = "usage: nfs-random HOST:PORT EXPORT [--seed N] [--operations N] [--clients N] [--lose-one-in N]
                  [--mount HOST:PORT]
Random operations of several clients in a directory that it makes in EXPORT, against a model. With --lose-one-in a
client loses its connection now and then, and sends again what was not answered; the server must know such calls.";

struct Options {
    address: SocketAddr,
    mount: SocketAddr,
    export: String,
    plan: Plan,
    lose_one_in: u64,
}

fn wanted(arguments: &[String]) -> Option<Options> {
    let address = arguments.first()?.parse().ok()?;
    let mut wanted =
        Options { address, mount: address, export: arguments.get(1)?.clone(), plan: Plan::default(), lose_one_in: 0 };
    for pair in arguments[2..].chunks(2) {
        let [option, value] = pair else { return None };
        match option.as_str() {
            "--seed" => wanted.plan.seed = value.parse().ok()?,
            "--operations" => wanted.plan.operations = value.parse().ok()?,
            "--clients" => wanted.plan.clients = value.parse().ok()?,
            "--lose-one-in" => wanted.lose_one_in = value.parse().ok()?,
            "--mount" => wanted.mount = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(wanted)
}

fn directory(wanted: &Options) -> Result<Vec<u8>, afflux_nfs_client::Error> {
    let root = Client::connect(wanted.mount)?.mount(&wanted.export)?;
    let mut client = Client::connect(wanted.address)?;
    let name = format!("random-{}", wanted.plan.seed);
    client.mkdir(&root, name.as_bytes(), Change { mode: Some(0o755), ..Change::default() })?;
    Ok(client.lookup(&root, name.as_bytes())?.0)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(wanted) = wanted(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let root = match directory(&wanted) {
        Ok(root) => root,
        Err(error) => {
            eprintln!("error: {} at {}: {error}", wanted.export, wanted.address);
            return ExitCode::from(2);
        }
    };
    match drive(wanted.address, &root, wanted.plan, wanted.lose_one_in) {
        Ok(outcome) => {
            println!(
                "{} operations answered rightly, {} connections lost on the way",
                outcome.operations, outcome.connections_lost
            );
            ExitCode::SUCCESS
        }
        Err(fault) => {
            println!("wrong with seed {}: {fault}", wanted.plan.seed);
            ExitCode::FAILURE
        }
    }
}
