//! One client of a participant: files through NFS, or through a mount.
//!
//! Owns: whole files that are durable when a call returns, commits of 4 KiB.
//! Does not own: the participants (`participant`), clocks.
//! Invariants: each call uses the participant as its programs do: NFS by WRITE and COMMIT, a mount by write, fsync and
//! close.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_nfs_client::{Client, Handle, stable_how};
use afflux_reference::pattern;

pub(super) type Called<T> = Result<T, afflux_nfs_client::Error>;

const BLOCK: usize = 256 << 10;
const WINDOW: usize = 32;
const PART_BYTES: u64 = 64 << 20;
pub(super) const COMMIT_BYTES: usize = 4 << 10;

pub(super) enum Session {
    Nfs { client: Client, root: Handle },
    Mounted { point: PathBuf },
}

impl Session {
    /// Makes a small file.
    pub(super) fn make(&mut self, name: &str, bytes: &[u8]) -> Called<()> {
        match self {
            Self::Nfs { client, root } => {
                let file = client.create_empty(root, name.as_bytes())?;
                client.write_all(&file, 0, bytes, BLOCK, WINDOW)
            }
            Self::Mounted { point } => {
                let mut file = File::create(point.join(name))?;
                file.write_all(bytes)?;
                Ok(file.sync_all()?)
            }
        }
    }

    /// Replaces the file's only 4 KiB durably. It is made if it is absent.
    pub(super) fn commit(&mut self, name: &str, value: u8) -> Called<()> {
        let bytes = [value; COMMIT_BYTES];
        match self {
            Self::Nfs { client, root } => {
                let file = match client.lookup(root, name.as_bytes()) {
                    Ok((file, _)) => file,
                    Err(_) => client.create_empty(root, name.as_bytes())?,
                };
                client.write(&file, 0, &bytes, stable_how::UNSTABLE)?;
                client.commit(&file, 0, 0).map(drop)
            }
            Self::Mounted { .. } => self.make(name, &bytes),
        }
    }

    /// Writes a new file from its begin to its end, or until `ends`.
    pub(super) fn write_stream(&mut self, name: &str, bytes: u64, ends: &AtomicBool) -> Called<()> {
        // Bytes that no participant can compress.
        let mut part = vec![0; PART_BYTES.min(bytes) as usize];
        pattern(7, 0, &mut part);
        let parts = (0..bytes).step_by(part.len()).take_while(|_| !ends.load(Ordering::Relaxed));
        match self {
            Self::Nfs { client, root } => {
                let file = client.create_empty(root, name.as_bytes())?;
                for at in parts {
                    client.write_unstable(&file, at, &part, BLOCK, WINDOW)?;
                }
                client.commit(&file, 0, 0).map(drop)
            }
            Self::Mounted { point } => {
                let mut file = File::create(point.join(name))?;
                for _ in parts {
                    file.write_all(&part)?;
                }
                Ok(file.sync_all()?)
            }
        }
    }

    /// Reads a file of this length.
    pub(super) fn read(&mut self, name: &str, bytes: u64) -> Called<()> {
        match self {
            Self::Nfs { client, root } => {
                let file = client.lookup(root, name.as_bytes())?.0;
                let mut read = 0;
                client.read_each(&file, 0..bytes, BLOCK, WINDOW, |_, part| read += part.len() as u64)?;
                complete(name, read, bytes)
            }
            Self::Mounted { point } => {
                let read =
                    io::copy(&mut BufReader::with_capacity(BLOCK, File::open(point.join(name))?), &mut io::sink())?;
                complete(name, read, bytes)
            }
        }
    }
}

fn complete(name: &str, read: u64, bytes: u64) -> Called<()> {
    if read == bytes { Ok(()) } else { Err(io::Error::other(format!("{name} has {read} bytes of {bytes}")).into()) }
}
