//! A tree that tar extracts through a mount of a server.
//!
//! Owns: the tree, the mount (a FUSE bridge, since most kernels of containers have no NFS client), its end.
//! Does not own: the bridge, the servers.
//! Invariants: both servers use the same bridge; nothing stays mounted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::cases::{Called, MeasurementStart};
use super::servers::{Running, Servers};
use super::{Figure, Scale};

const PATIENCE: Duration = Duration::from_secs(20);
const FILES_IN_DIRECTORY: u64 = 50;

/// Unmounts and ends the bridge on drop.
struct Mounted {
    bridge: Child,
    point: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.point).stderr(Stdio::null()).status();
        let _ = self.bridge.kill();
        let _ = self.bridge.wait();
    }
}

fn mounted(servers: &Servers, which: Running, place: &Path) -> io::Result<Mounted> {
    let point = place.join(format!("mount-{}", which.name()));
    fs::create_dir_all(&point)?;
    let device = |path: &Path| fs::metadata(path).map(|metadata| std::os::unix::fs::MetadataExt::dev(&metadata));
    let before = device(&point)?;
    let bridge = servers.bridge(which, &point)?.stderr(Stdio::null()).spawn()?;
    let mounted = Mounted { bridge, point };
    let begin = Instant::now();
    while device(&mounted.point).is_ok_and(|now| now == before) {
        if begin.elapsed() > PATIENCE {
            return Err(io::Error::other("the bridge does not mount"));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(mounted)
}

/// An archive of files, fifty to a directory, unless it is there. `bytes` tells the length of each.
pub(crate) fn archive(place: &Path, files: u64, bytes: fn(u64) -> u64) -> io::Result<PathBuf> {
    let (tree, archive) = (place.join("tree"), place.join("tree.tar"));
    if archive.exists() {
        return Ok(archive);
    }
    for at in 0..files {
        let directory = tree.join(format!("d{}", at / FILES_IN_DIRECTORY));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("f{at}")), vec![at as u8; bytes(at) as usize])?;
    }
    let status = Command::new("tar").arg("-C").arg(place).arg("-cf").arg(&archive).arg("tree").status()?;
    if status.success() { Ok(archive) } else { Err(io::Error::other("tar cannot make the archive")) }
}

pub(super) fn run(servers: &Servers, which: Running, scale: &Scale, round: usize) -> Called<Figure> {
    let place = servers.export().with_file_name("trees");
    fs::create_dir_all(&place)?;
    let archive = archive(&place, scale.tree_files, |at| at * 37 % (16 << 10))?;
    let mounted = mounted(servers, which, &place)?;
    let into = mounted.point.join(format!("tree-{}-{round}", which.name()));
    fs::create_dir(&into)?;
    let begun = MeasurementStart::of(servers.process(which))?;
    let status = Command::new("tar").arg("-C").arg(&into).arg("-xf").arg(archive).status()?;
    let figure = begun.end(scale.tree_files, scale.tree_files)?;
    if status.success() { Ok(figure) } else { Err(io::Error::other("tar fails on the mount").into()) }
}
