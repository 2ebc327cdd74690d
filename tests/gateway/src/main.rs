//! Runs a Ceph with an S3 gateway for another program, and kills the gateway when told.
//!
//! Owns: the lines. Standard output says the gateway's URL, the bucket, key and secret in one line, then `restarted`
//! after each `restart` of standard input.
//! Does not own: the cluster (`afflux_gateway`).
//! Invariants: only the gateway is killed, by SIGKILL; the cluster keeps what it acknowledged. All ends with standard
//! input, so also with the program that holds its other end.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests")]

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use afflux_gateway::{Gateway, KEY, SECRET};

const BUCKET: &str = "bucket";
const BYTES: u64 = 8 << 30;

fn main() -> ExitCode {
    let outcome = match Gateway::obstacle() {
        Some(obstacle) => Err(io::Error::other(obstacle)),
        None => obey(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn obey() -> io::Result<()> {
    let mut ceph = Gateway::start(BYTES)?;
    ceph.make_bucket(BUCKET, false)?;
    say(&format!("{} {BUCKET} {KEY} {SECRET}", ceph.endpoint()))?;
    for line in io::stdin().lock().lines() {
        match line?.as_str() {
            "restart" => {
                ceph.kill_gateway();
                ceph.start_gateway()?;
                say("restarted")?;
            }
            unknown => return Err(io::Error::other(format!("there is no command {unknown}"))),
        }
    }
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
