//! A check's own directory on the server.
//!
//! Owns: the directory, its files, the connection that a check uses.
//! Does not own: the server (`target`), the rules.

use nfs3_types::nfs3::{fattr3, stable_how};

use super::failure::{Failure, demand};
use super::target::{Target, connect};
use crate::connection::Client;
use crate::procedures::Change;
use crate::results::{CreatedObject, Handle};

/// Bytes that a check writes at a time.
pub(super) const PIECE_BYTES: usize = 64 << 10;

/// A working directory on the server, and a connection to it.
pub(super) struct WorkDirectory {
    pub(super) target: Target,
    pub(super) client: Client,
    pub(super) root: Handle,
    pub(super) name: &'static str,
    pub(super) directory: Handle,
}

impl WorkDirectory {
    pub(super) fn new(target: &Target, name: &'static str) -> Result<Self, Failure> {
        let root = connect(target.mount)?.mount(&target.export)?;
        let mut client = connect(target.nfs)?;
        let change = Change { mode: Some(0o777), ..Change::default() };
        let made = client.mkdir(&root, name.as_bytes(), change)?;
        let directory = handle(&mut client, made, &root, name)?;
        Ok(Self { target: target.clone(), client, root, name, directory })
    }

    pub(super) fn another(&self) -> Result<Client, Failure> {
        Ok(connect(self.target.nfs)?)
    }

    pub(super) fn file(&mut self, name: &str) -> Result<Handle, Failure> {
        let change = Change { mode: Some(0o666), size: Some(0), ..Change::default() };
        let made = self.client.create(&self.directory, name.as_bytes(), crate::Creation::Unchecked(change))?;
        handle(&mut self.client, made, &self.directory, name)
    }

    /// Writes `len` bytes from the start, UNSTABLE.
    pub(super) fn fill(&mut self, file: &Handle, len: usize) -> Result<(), Failure> {
        let bytes = vec![0x5a; PIECE_BYTES];
        for offset in (0..len).step_by(PIECE_BYTES) {
            let piece = &bytes[..(len - offset).min(PIECE_BYTES)];
            let written = self.client.write(file, offset as u64, piece, stable_how::UNSTABLE)?;
            demand(written.count as usize == piece.len(), || {
                format!("a WRITE of {} took {}", piece.len(), written.count)
            })?;
        }
        Ok(())
    }

    pub(super) fn attributes(&mut self, file: &Handle) -> Result<fattr3, Failure> {
        Ok(self.client.getattr(file)?)
    }

    /// Removes a check's files. Files that cannot be removed stay: only the check's result counts.
    pub(super) fn remove(mut self) {
        // The server may have closed the connection; the check itself reports that.
        let Ok(mut client) = connect(self.target.nfs) else { return };
        std::mem::swap(&mut self.client, &mut client);
        let directory = std::mem::take(&mut self.directory);
        self.empty(&directory, 0);
        let _ = self.client.rmdir(&self.root, self.name.as_bytes());
    }

    /// Removes everything in a directory of the check, to the depth that checks use.
    fn empty(&mut self, directory: &Handle, depth: u32) {
        const DEPTH_MAX: u32 = 4;
        for entry in self.client.entries(directory).unwrap_or_default() {
            if self.client.remove(directory, &entry.name).is_ok() {
                continue;
            }
            if depth < DEPTH_MAX
                && let Ok((below, _)) = self.client.lookup(directory, &entry.name)
            {
                self.empty(&below, depth + 1);
            }
            let _ = self.client.rmdir(directory, &entry.name);
        }
    }

    /// Creates a directory in the check's directory.
    pub(super) fn subdirectory(&mut self, name: &str) -> Result<Handle, Failure> {
        let change = Change { mode: Some(0o777), ..Change::default() };
        let made = self.client.mkdir(&self.directory, name.as_bytes(), change)?;
        handle(&mut self.client, made, &self.directory, name)
    }

    /// The names in a directory, by READDIRPLUS.
    pub(super) fn names(&mut self, directory: &Handle) -> Result<Vec<Vec<u8>>, Failure> {
        Ok(self.client.entries(directory)?.into_iter().map(|entry| entry.name).collect())
    }
}

/// The handle of an object that was made with this name: a server need not tell it.
fn handle(client: &mut Client, made: CreatedObject, directory: &Handle, name: &str) -> Result<Handle, Failure> {
    match made.handle {
        Some(handle) => Ok(handle),
        None => Ok(client.lookup(directory, name.as_bytes())?.0),
    }
}
