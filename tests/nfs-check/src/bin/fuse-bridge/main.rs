//! A FUSE file system that turns each operation into NFSv3 calls, and so mounts an NFS server where the kernel has no
//! client. It lets tests run programs that know nothing of NFS. Nothing is cached here. The kernel caches only names
//! and attributes, and these only within the same instant.
//!
//! Owns: the translation of operations into calls, files that are removed while open, the table of handles.
//! Does not own: the protocol's codec (`nfs-client`), `/dev/fuse` (the crate fuser).
//! Invariants: calls are made as the requesting user. Each call in flight has its own connection, so that none waits
//! for another. fsync and close commit written data under the write verifier of its WRITEs, or return the error.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a program for tests")]

mod nodes;
mod operations;

use std::process::ExitCode;

use fuser::{Config, MountOption, SessionACL};

use operations::Bridge;

fn main() -> ExitCode {
    let words = xflags::parse_or_exit! {
        /// HOST:PORT of NFS
        required nfs: String
        /// The export
        required export: String
        /// Where it is mounted
        required point: String
        /// HOST:PORT of MOUNT, if it is another
        optional mount: String
    };
    let (address, export, point) = (&words.nfs, &words.export, &words.point);
    let bridge = match Bridge::connect(address, words.mount.as_ref().unwrap_or(address), export) {
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
