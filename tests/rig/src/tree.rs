//! An archive of small files for tar.
//!
//! Owns: the files, fifty to a directory.
//! Does not own: the run of tar that extracts them.
//! Invariants: an archive that is there is used again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILES_IN_DIRECTORY: u64 = 50;

/// The archive in this place, made if it is not there. `bytes` tells the length of each file.
pub fn archive(place: &Path, files: u64, bytes: fn(u64) -> u64) -> io::Result<PathBuf> {
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
