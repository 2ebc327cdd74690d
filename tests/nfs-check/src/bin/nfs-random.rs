//! Runs random operations on a running server, against a model of each file.
//!
//! Owns: its words, its output. Does not own: the operations (`afflux_nfs_check::random`).
//! Invariants: exit code 0 if every answer was right, 1 if not, 2 for wrong usage or an unreachable server.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is its purpose")]

use std::process::ExitCode;

use afflux_nfs_check::random::{Plan, drive};
use afflux_nfs_client::{Change, Client};

use words::NfsRandom;

mod words {
    //! The words of this program.
    #![allow(unreachable_pub, reason = "a macro makes types of the declaration")]

    use std::net::SocketAddr;

    xflags::xflags! {
        /// Random operations of several clients in a directory that it makes in the export, against a model.
        cmd nfs-random {
            /// HOST:PORT of NFS
            required nfs: SocketAddr
            /// The export
            required export: String
            /// The directory, and the operations, follow from it
            optional --seed n: u64
            /// Operations in all
            optional --operations n: u64
            /// Clients, each with a connection
            optional --clients n: usize
            /// A client loses its connection once in so many calls, and sends its unanswered calls again: the server
            /// must know such calls
            optional --lose-one-in n: u64
            /// HOST:PORT of MOUNT, if it is another
            optional --mount address: SocketAddr
        }
    }
}

fn directory(words: &NfsRandom, seed: u64) -> Result<Vec<u8>, afflux_nfs_client::Error> {
    let root = Client::connect(words.mount.unwrap_or(words.nfs))?.mount(&words.export)?;
    let mut client = Client::connect(words.nfs)?;
    let name = format!("random-{seed}");
    client.mkdir(&root, name.as_bytes(), Change { mode: Some(0o755), ..Change::default() })?;
    Ok(client.lookup(&root, name.as_bytes())?.0)
}

fn main() -> ExitCode {
    let words = NfsRandom::from_env_or_exit();
    let usual = Plan::default();
    let plan = Plan {
        seed: words.seed.unwrap_or(usual.seed),
        operations: words.operations.unwrap_or(usual.operations),
        clients: words.clients.unwrap_or(usual.clients),
        ..usual
    };
    let root = match directory(&words, plan.seed) {
        Ok(root) => root,
        Err(error) => {
            eprintln!("error: {} at {}: {error}", words.export, words.nfs);
            return ExitCode::from(2);
        }
    };
    match drive(words.nfs, &root, plan, words.lose_one_in.unwrap_or(0)) {
        Ok(outcome) => {
            println!(
                "{} operations answered rightly, {} connections lost on the way",
                outcome.operations, outcome.connections_lost
            );
            ExitCode::SUCCESS
        }
        Err(fault) => {
            println!("wrong with seed {}: {fault}", plan.seed);
            ExitCode::FAILURE
        }
    }
}
