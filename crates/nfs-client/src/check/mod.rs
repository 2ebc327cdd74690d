//! A check of what a server of NFSv3 tells its clients, for any server that can be reached.
//!
//! Each check is something that clients rely on and that servers are known to get wrong; most were met in
//! servers in use. None looks at the server's disk: what a check says, a client could have seen.
//!
//! Owns: the checks, by name; connecting anew where a check has to.
//! Does not own: starting a server; what a failure means for that server's release.
//! Invariants: a check works in a directory of its own and leaves the connection that others use alone. It
//! ends: each call waits for [`PATIENCE`] at most.

mod attributes;
mod names;
mod writes;

use std::net::SocketAddr;
use std::time::Duration;

use crate::connection::{Client, Error};
use crate::procedures::Change;
use crate::results::{Attributes, Handle, Stability};
use crate::wire::Malformed;

/// The longest wait for a reply.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that a check writes at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Where the server is.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it answers NFS.
    pub nfs: SocketAddr,
    /// Where it answers MOUNT.
    pub mount: SocketAddr,
    /// The path to mount.
    pub export: String,
}

/// One check.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What a client relies on.
    pub rule: &'static str,
    run: fn(&mut Place) -> Result<(), Failure>,
}

/// Why a check failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server does something else than the rule says.
    #[error("{0}")]
    Broken(String),
    /// A call that has nothing to do with the rule failed.
    #[error(transparent)]
    Call(#[from] Error),
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::Call(malformed.into())
    }
}

/// All checks.
pub const CHECKS: &[Check] = &[
    attributes::USED_COVERS_THE_DATA,
    attributes::USED_AFTER_A_TRUNCATION,
    attributes::CONSISTENCY_OF_A_WRITE,
    attributes::CONSISTENCY_OF_A_SETATTR,
    attributes::TIMES_STAY_OVER_A_COMMIT,
    attributes::SPECIAL_BITS_ARE_CLEARED,
    attributes::NANOSECONDS_OUT_OF_RANGE,
    writes::PAST_THE_LARGEST_FILE,
    writes::LARGER_THAN_TOLD,
    writes::COUNT_BELOW_THE_DATA,
    writes::VERIFIER_STAYS,
    names::MOUNT_THROUGH_A_SYMLINK,
    names::DEVICE_NODES,
    names::REMOVE_REPEATED,
    names::EXCLUSIVE_REPEATED,
    names::STALE_HANDLE,
];

impl Target {
    /// Mounts the export.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not export that.
    pub fn reach(&self) -> Result<(), Failure> {
        let root = connect(self.mount)?.mount(&self.export)?;
        connect(self.nfs)?.getattr(&root)?;
        Ok(())
    }
}

impl Check {
    /// Checks the server, in a directory named after the check, which is removed again.
    ///
    /// # Errors
    /// When the rule does not hold, or the server cannot be used.
    pub fn run(&self, target: &Target) -> Result<(), Failure> {
        let mut place = Place::new(target, self.name)?;
        let result = (self.run)(&mut place);
        place.remove();
        result
    }
}

/// A directory of the server's to work in, and the connection to do so.
struct Place {
    target: Target,
    client: Client,
    root: Handle,
    name: &'static str,
    directory: Handle,
}

impl Place {
    fn new(target: &Target, name: &'static str) -> Result<Self, Failure> {
        let root = connect(target.mount)?.mount(&target.export)?;
        let mut client = connect(target.nfs)?;
        let change = Change { mode: Some(0o777), ..Change::default() };
        let made = client.mkdir(&root, name.as_bytes(), change)?;
        let directory = match made.handle {
            Some(handle) => handle,
            None => client.lookup(&root, name.as_bytes())?.0,
        };
        Ok(Self { target: target.clone(), client, root, name, directory })
    }

    /// Another client.
    fn another(&self) -> Result<Client, Failure> {
        Ok(connect(self.target.nfs)?)
    }

    fn file(&mut self, name: &str) -> Result<Handle, Failure> {
        let change = Change { mode: Some(0o666), size: Some(0), ..Change::default() };
        let made = self.client.create(&self.directory, name.as_bytes(), crate::Creation::Unchecked(change))?;
        match made.handle {
            Some(handle) => Ok(handle),
            None => Ok(self.client.lookup(&self.directory, name.as_bytes())?.0),
        }
    }

    /// Writes `len` bytes from the start on, UNSTABLE.
    fn fill(&mut self, file: &Handle, len: usize) -> Result<(), Failure> {
        let bytes = vec![0x5a; PIECE_BYTES];
        for offset in (0..len).step_by(PIECE_BYTES) {
            let piece = &bytes[..(len - offset).min(PIECE_BYTES)];
            let written = self.client.write(file, offset as u64, piece, Stability::Unstable)?;
            demand(written.count as usize == piece.len(), || {
                format!("a WRITE of {} took {}", piece.len(), written.count)
            })?;
        }
        Ok(())
    }

    fn attributes(&mut self, file: &Handle) -> Result<Attributes, Failure> {
        Ok(self.client.getattr(file)?)
    }

    /// Removes what a check left. What cannot be removed stays: the check's result counts.
    fn remove(mut self) {
        // The connection may have been closed by the server; that was the check's to say.
        let Ok(mut client) = connect(self.target.nfs) else { return };
        std::mem::swap(&mut self.client, &mut client);
        for entry in self.client.entries(&self.directory).unwrap_or_default() {
            let removed = self.client.remove(&self.directory, &entry.name);
            if removed.is_err() {
                let _ = self.client.rmdir(&self.directory, &entry.name);
            }
        }
        let _ = self.client.rmdir(&self.root, self.name.as_bytes());
    }
}

fn connect(address: SocketAddr) -> Result<Client, Error> {
    let mut client = Client::connect(address)?;
    client.set_timeout(Some(PATIENCE))?;
    Ok(client)
}

/// Fails with what `said` says unless `holds`.
fn demand(holds: bool, said: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Broken(said())) }
}

/// The status of a call that was to fail: 0 if it did not.
fn status_of<T>(result: Result<T, Error>) -> Result<u32, Failure> {
    match result {
        Ok(_) => Ok(0),
        Err(Error::Status { status, .. }) => Ok(status),
        Err(error) => Err(error.into()),
    }
}
