//! Encodes the client's calls and decodes the replies.
//!
//! This codec is separate from the server's, so that a mistake on one side shows on the other.
//!
//! Owns: record marks, the RPC header (RFC 5531), MNT, CREATE, WRITE and COMMIT (RFC 1813).
//! Does not own: the time of calls (`window`), waits for replies (`mod`).
//! Invariants: decoding checks every length against the bytes present.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, BufMut, Bytes, BytesMut};

const LAST_FRAGMENT: u32 = 1 << 31;
const NFS: (u32, u32) = (100_003, 3);
const MOUNT: (u32, u32) = (100_005, 3);
const MACHINE_NAME: &[u8] = b"client";
/// Longer replies are refused: no reply to these calls reaches 1 KiB.
const REPLY_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Procedure {
    Mount,
    Create,
    Write,
    Commit,
}

impl Procedure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mount => "MNT",
            Self::Create => "CREATE",
            Self::Write => "WRITE",
            Self::Commit => "COMMIT",
        }
    }
}

/// A record of a call without its arguments, with a capacity of `room` bytes for them.
fn call(xid: u32, procedure: Procedure, room: usize) -> BytesMut {
    let ((program, version), number) = match procedure {
        Procedure::Mount => (MOUNT, 1),
        Procedure::Create => (NFS, 8),
        Procedure::Write => (NFS, 7),
        Procedure::Commit => (NFS, 21),
    };
    let mut record = BytesMut::with_capacity(80 + room);
    // The record mark is set once the length is known. Then: a call, RPC version 2.
    for word in [0, xid, 0, 2, program, version, number] {
        record.put_u32(word);
    }
    // AUTH_SYS: a stamp, a name, user 0, group 0, no further groups; and no verifier.
    let credential = 5 * 4 + padded(MACHINE_NAME.len()) as u32;
    record.put_u32(1);
    record.put_u32(credential);
    record.put_u32(0);
    opaque(&mut record, MACHINE_NAME);
    for word in [0, 0, 0, 0, 0] {
        record.put_u32(word);
    }
    record
}

fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

fn opaque(record: &mut BytesMut, bytes: &[u8]) {
    record.put_u32(bytes.len() as u32);
    record.put_slice(bytes);
    record.put_bytes(0, padded(bytes.len()) - bytes.len());
}

fn marked(mut record: BytesMut) -> Bytes {
    let mark = LAST_FRAGMENT | (record.len() - 4) as u32;
    record[..4].copy_from_slice(&mark.to_be_bytes());
    record.freeze()
}

/// MNT of an export.
pub(super) fn mount(xid: u32, path: &str) -> Bytes {
    let mut record = call(xid, Procedure::Mount, 8 + path.len());
    opaque(&mut record, path.as_bytes());
    marked(record)
}

/// CREATE, UNCHECKED, with mode 0644 and size 0.
pub(super) fn create(xid: u32, directory: &[u8], name: &str) -> Bytes {
    let mut record = call(xid, Procedure::Create, 64 + directory.len() + name.len());
    opaque(&mut record, directory);
    opaque(&mut record, name.as_bytes());
    for word in [0, 1, 0o644, 0, 0, 1, 0, 0, 0, 0] {
        record.put_u32(word);
    }
    marked(record)
}

/// Records of sent and dropped WRITEs, which are refilled without zeroing them again.
#[derive(Clone, Default)]
pub(super) struct Records(Arc<Mutex<Vec<Vec<u8>>>>);

const RECORDS_MAX: usize = 256;

struct PersistedRecordTable {
    record: Vec<u8>,
    records: Records,
}

impl AsRef<[u8]> for PersistedRecordTable {
    fn as_ref(&self) -> &[u8] {
        &self.record
    }
}

impl Drop for PersistedRecordTable {
    fn drop(&mut self) {
        let mut records = self.records.lock();
        if records.len() < RECORDS_MAX {
            records.push(std::mem::take(&mut self.record));
        }
    }
}

impl Records {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// WRITE, UNSTABLE, of zeros that `fill` changes, at the same offsets each time.
    pub(super) fn write(&self, xid: u32, file: &[u8], offset: u64, len: u32, fill: impl FnOnce(&mut [u8])) -> Bytes {
        let data_len = len as usize;
        let mut header = call(xid, Procedure::Write, 32 + padded(file.len()));
        opaque(&mut header, file);
        header.put_u64(offset);
        for word in [len, 0, len] {
            header.put_u32(word);
        }
        let total = header.len() + padded(data_len);
        let mark = LAST_FRAGMENT | (total - 4) as u32;
        header[..4].copy_from_slice(&mark.to_be_bytes());
        let kept = self.lock().pop().filter(|record| record.len() == total);
        let mut record = kept.unwrap_or_else(|| vec![0; total]);
        record[..header.len()].copy_from_slice(&header);
        fill(&mut record[header.len()..header.len() + data_len]);
        Bytes::from_owner(PersistedRecordTable { record, records: self.clone() })
    }
}

/// COMMIT of the whole file.
pub(super) fn commit(xid: u32, file: &[u8]) -> Bytes {
    let mut record = call(xid, Procedure::Commit, 16 + padded(file.len()));
    opaque(&mut record, file);
    record.put_u64(0);
    record.put_u32(0);
    marked(record)
}

/// The malformed part of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed(pub(super) &'static str);

/// Takes the next whole record off the front of the received bytes.
pub(super) fn next_record(received: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
    let Some(mark) = received.first_chunk().map(|mark| u32::from_be_bytes(*mark)) else { return Ok(None) };
    let len = (mark & !LAST_FRAGMENT) as usize;
    if mark & LAST_FRAGMENT == 0 || len > REPLY_BYTES_MAX {
        return Err(Malformed("its mark"));
    }
    if received.len() < 4 + len {
        return Ok(None);
    }
    received.advance(4);
    Ok(Some(received.split_to(len).freeze()))
}

/// The fields of a reply, from its first on.
pub(super) struct Reply(Bytes);

impl Reply {
    /// Reads the header of a reply to an accepted and successful call; also returns the call's number.
    pub(super) fn open(record: Bytes) -> Result<(u32, Self), Malformed> {
        let mut reply = Self(record);
        let xid = reply.u32("its number")?;
        if reply.u32("its kind")? != 1 || reply.u32("whether the call was accepted")? != 0 {
            return Err(Malformed("it refuses the call"));
        }
        reply.u32("its verifier's flavour")?;
        reply.opaque("its verifier")?;
        match reply.u32("whether the call was carried out")? {
            0 => Ok((xid, reply)),
            _ => Err(Malformed("it says that the call cannot be carried out")),
        }
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        if self.0.len() < 4 {
            return Err(Malformed(what));
        }
        Ok(self.0.get_u32())
    }

    fn skip(&mut self, len: usize, what: &'static str) -> Result<(), Malformed> {
        if self.0.len() < len {
            return Err(Malformed(what));
        }
        self.0.advance(len);
        Ok(())
    }

    pub(super) fn opaque(&mut self, what: &'static str) -> Result<Bytes, Malformed> {
        let len = self.u32(what)? as usize;
        if self.0.len() < len || self.0.len() < padded(len) {
            return Err(Malformed(what));
        }
        let bytes = self.0.slice(..len);
        self.0.advance(padded(len));
        Ok(bytes)
    }

    fn optional(&mut self, len: usize, what: &'static str) -> Result<(), Malformed> {
        match self.u32(what)? {
            0 => Ok(()),
            _ => self.skip(len, what),
        }
    }

    /// Skips the attributes of the file before and after.
    fn consistency(&mut self) -> Result<(), Malformed> {
        self.optional(24, "attributes before")?;
        self.optional(84, "attributes after")
    }

    /// The handle that CREATE returns.
    pub(super) fn created(&mut self) -> Result<Bytes, Malformed> {
        match self.u32("whether there is a handle")? {
            1 => self.opaque("the handle"),
            _ => Err(Malformed("there is no handle")),
        }
    }

    /// The number of bytes that a WRITE wrote, and the verifier.
    pub(super) fn written(&mut self) -> Result<(u32, u64), Malformed> {
        self.consistency()?;
        let count = self.u32("the count")?;
        self.u32("the stability")?;
        Ok((count, self.verifier()?))
    }

    /// The verifier of a COMMIT.
    pub(super) fn committed(&mut self) -> Result<u64, Malformed> {
        self.consistency()?;
        self.verifier()
    }

    fn verifier(&mut self) -> Result<u64, Malformed> {
        let high = self.u32("the write verifier")?;
        Ok(u64::from(high) << 32 | u64::from(self.u32("the write verifier")?))
    }
}
