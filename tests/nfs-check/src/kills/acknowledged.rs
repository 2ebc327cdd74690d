//! A file as its acknowledged calls have left it.
//!
//! Owns: the bytes of each acknowledged WRITE, and which of them no COMMIT covers.
//! Does not own: the choice of calls (`load`).
//! Invariants: bytes of an unanswered WRITE may have either value. A COMMIT covers WRITEs with its own verifier only.

use std::io;
use std::ops::AddAssign;

use afflux_nfs_client::{Client, Error, Handle, stable_how};

pub(super) struct File {
    handle: Handle,
    bytes: Vec<u8>,
    /// For each byte: whether no COMMIT covers it.
    unstable: Vec<bool>,
    /// The WRITE that was not answered.
    pending: Option<(usize, Vec<u8>)>,
    verifier: Option<[u8; 8]>,
}

/// Acknowledged bytes that are missing or wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) unstable: u64,
    pub(super) committed: u64,
}

impl AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.unstable += other.unstable;
        self.committed += other.committed;
    }
}

impl File {
    pub(super) fn create(client: &mut Client, directory: &[u8], name: &str) -> Result<Self, Error> {
        Ok(Self::empty(client.create_empty(directory, name.as_bytes())?))
    }

    pub(super) fn empty(handle: Handle) -> Self {
        Self { handle, bytes: Vec::new(), unstable: Vec::new(), pending: None, verifier: None }
    }

    pub(super) fn handle(&self) -> &[u8] {
        &self.handle
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn verifier(&self) -> Option<[u8; 8]> {
        self.verifier
    }

    pub(super) fn unstable(&self) -> u64 {
        self.unstable.iter().filter(|unstable| **unstable).count() as u64
    }

    pub(super) fn committed(&self) -> u64 {
        self.len() as u64 - self.unstable()
    }

    /// An error leaves the WRITE pending.
    pub(super) fn write(&mut self, client: &mut Client, offset: usize, bytes: Vec<u8>) -> Result<(), Error> {
        let (_, bytes) = self.pending.insert((offset, bytes));
        let written = client.write(&self.handle, offset as u64, bytes, stable_how::UNSTABLE)?;
        let count = written.count as usize;
        self.same_verifier(written.verf.0)?;
        self.acknowledged(count, written.committed == stable_how::UNSTABLE);
        Ok(())
    }

    /// The server has taken `count` bytes of the pending WRITE.
    pub(super) fn acknowledged(&mut self, count: usize, unstable: bool) {
        let Some((offset, bytes)) = self.pending.take() else { return };
        let end = offset + count;
        if end > self.len() {
            // The zeroes between the old end and the WRITE are acknowledged with it.
            self.bytes.resize(end, 0);
            self.unstable.resize(end, unstable);
        }
        self.bytes[offset..end].copy_from_slice(&bytes[..count]);
        self.unstable[offset..end].fill(unstable);
    }

    pub(super) fn commit(&mut self, client: &mut Client) -> Result<(), Error> {
        let committed = client.commit(&self.handle, 0, 0)?;
        self.same_verifier(committed.verf.0)?;
        self.unstable.fill(false);
        Ok(())
    }

    pub(super) fn check(&self, client: &mut Client, offset: usize, count: usize) -> Result<(), Error> {
        let read = client.read(&self.handle, offset as u64, count as u32)?.data;
        let right = self.bytes.get(offset..offset + read.len()) == Some(&read[..]);
        if right { Ok(()) } else { Err(io::Error::other("a wrong byte before any kill").into()) }
    }

    fn same_verifier(&mut self, seen: [u8; 8]) -> Result<(), Error> {
        let same = *self.verifier.get_or_insert(seen) == seen;
        if same { Ok(()) } else { Err(io::Error::other("the verifier changed before any kill").into()) }
    }

    /// Counts the acknowledged bytes that `found` lacks.
    pub(super) fn lost(&self, found: &[u8]) -> Lost {
        let mut lost = Lost::default();
        for (at, (byte, unstable)) in self.bytes.iter().zip(&self.unstable).enumerate() {
            let found = found.get(at).copied();
            if found == Some(*byte) || (found.is_some() && found == self.pending_at(at)) {
                continue;
            }
            *if *unstable { &mut lost.unstable } else { &mut lost.committed } += 1;
        }
        lost
    }

    fn pending_at(&self, at: usize) -> Option<u8> {
        let (offset, bytes) = self.pending.as_ref()?;
        bytes.get(at.checked_sub(*offset)?).copied()
    }

    /// A WRITE begins.
    #[cfg(test)]
    pub(super) fn begin(&mut self, offset: usize, bytes: &[u8]) {
        self.pending = Some((offset, bytes.to_vec()));
    }
}
