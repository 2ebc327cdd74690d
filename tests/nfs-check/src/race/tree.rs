//! A tree that tar extracts through a mount of a server.
//!
//! Owns: the files of the tree.
//! Does not own: the servers; the mount, which is a FUSE bridge since most kernels of containers have no NFS client.
//! Invariants: both servers use the same bridge; nothing stays mounted.

use std::fs;
use std::io;
use std::process::Command;

use afflux_rig::{Measurement, Mounted, archive};

use super::figure::Figure;
use super::scale::Scale;
use super::servers::{Called, Running, Servers};

pub(super) fn run(servers: &Servers, which: Running, scale: &Scale, round: usize) -> Called<Figure> {
    let place = servers.export().with_file_name("trees");
    fs::create_dir_all(&place)?;
    let archive = archive(&place, scale.tree_files, |at| at * 37 % (16 << 10))?;
    let point = place.join(format!("mount-{}", which.word()));
    let mounted = Mounted::start(&mut servers.bridge(which, &point), &point, &place.join("bridge.log"))?;
    let into = mounted.point().join(format!("tree-{}-{round}", which.word()));
    fs::create_dir(&into)?;
    let begun = Measurement::begin([servers.process(which)]);
    let status = Command::new("tar").arg("-C").arg(&into).arg("-xf").arg(archive).status()?;
    let figure = Figure::of(begun, scale.tree_files, scale.tree_files);
    if status.success() { Ok(figure) } else { Err(io::Error::other("tar fails on the mount").into()) }
}
