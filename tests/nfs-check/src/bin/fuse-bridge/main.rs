//! A FUSE file system whose every operation is a call of NFSv3: a mount of an NFS server where the kernel has no client.
//! For tests: programs that know nothing of NFS run on it. Nothing is cached here or, but for names and attributes
//! in the same instant, in the kernel.
//!
//! Owns: which calls a file system operation is, files that are removed while open, the table of handles.
//! Does not own: the protocol's codec (`nfs-client`), `/dev/fuse` (the crate fuser).
//! Invariants: calls are made as the user who asks; one connection for each, so none waits for another's; written data
//! is committed by fsync and close, under the verifier that its WRITEs had, or the error is told.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a program for tests")]

mod nodes;
mod operations;

use std::process::ExitCode;

use fuser::{Config, MountOption, SessionACL};

use operations::Bridge;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([address, export, point], rest) = match &arguments[..] {
        [one, two, three, rest @ ..] if rest.len() < 2 => ([one, two, three], rest),
        _ => {
            eprintln!("usage: fuse-bridge HOST:PORT EXPORT MOUNTPOINT [HOST:PORT of its MOUNT]");
            return ExitCode::from(2);
        }
    };
    let bridge = match Bridge::connect(address, rest.first().unwrap_or(address), export) {
        Ok(bridge) => bridge,
        Err(error) => {
            eprintln!("error: {export} at {address}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("nfs-bridge".to_owned()), MountOption::Dev, MountOption::Suid];
    config.acl = SessionACL::All;
    match fuser::mount(bridge, point, &config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {point}: {error}");
            ExitCode::FAILURE
        }
    }
}
