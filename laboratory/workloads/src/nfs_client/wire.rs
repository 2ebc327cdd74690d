//! The client's calls as records, and the results in replies. `nfs3_types`, which the server does not use, encodes and
//! decodes them, so that a mistake of the server's codec shows.
//!
//! Owns: record marks, the memory of WRITEs.
//! Does not own: the time of calls (`window`), waits for replies (`mod`).
//! Invariants: a malformed reply is an error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes, BytesMut};
use nfs3_types::mount::{self, dirpath, mountres3};
use nfs3_types::nfs3::{
    self, COMMIT3args, CREATE3args, CREATE3resfail, CREATE3resok, NFS_PROGRAM, Nfs3Option, Nfs3Result, createhow3,
    diropargs3, nfs_fh3, sattr3, stable_how,
};
use nfs3_types::rpc::{
    RPC_VERSION_2, accept_stat_data, accepted_reply, auth_unix, call_body, fragment_header, msg_body, opaque_auth,
    reply_body, rpc_msg,
};
use nfs3_types::xdr_codec::{self, Opaque, Pack, Unpack};

use super::error::NfsClientError;

/// Longer replies are refused: no reply to these calls reaches 1 KiB.
const REPLY_BYTES_MAX: u32 = 64 << 10;

/// The record of a call of user and group 0 up to its arguments, with room for its mark.
fn head(xid: u32, (prog, vers): (u32, u32), proc: u32) -> xdr_codec::Result<Vec<u8>> {
    let user = auth_unix { machinename: Opaque::borrowed(b"client"), ..auth_unix::default() };
    let (cred, verf) = (opaque_auth::auth_unix(&user), opaque_auth::default());
    let body = msg_body::CALL(call_body { rpcvers: RPC_VERSION_2, prog, vers, proc, cred, verf });
    let mut record = vec![0; 4];
    rpc_msg { xid, body }.pack(&mut record)?;
    Ok(record)
}

fn nfs_head(xid: u32, procedure: NFS_PROGRAM) -> xdr_codec::Result<Vec<u8>> {
    head(xid, (nfs3::PROGRAM, nfs3::VERSION), procedure as u32)
}

fn mark(record_bytes: usize) -> [u8; 4] {
    fragment_header::new((record_bytes - 4) as u32, true).into_xdr_buf()
}

fn call(mut record: Vec<u8>, arguments: &impl Pack) -> xdr_codec::Result<Bytes> {
    arguments.pack(&mut record)?;
    let mark = mark(record.len());
    record[..4].copy_from_slice(&mark);
    Ok(record.into())
}

/// MNT of an export.
pub(super) fn mount(xid: u32, path: &str) -> xdr_codec::Result<Bytes> {
    let record = head(xid, (mount::PROGRAM, mount::VERSION), 1)?;
    call(record, &dirpath(Opaque::borrowed(path.as_bytes())))
}

/// CREATE, UNCHECKED, with mode 0644 and size 0.
pub(super) fn create(xid: u32, directory: nfs_fh3, name: &str) -> xdr_codec::Result<Bytes> {
    let where_ = diropargs3 { dir: directory, name: name.as_bytes().into() };
    let attributes = sattr3 { mode: Nfs3Option::Some(0o644), size: Nfs3Option::Some(0), ..sattr3::default() };
    let arguments = CREATE3args { where_, how: createhow3::UNCHECKED(attributes) };
    call(nfs_head(xid, NFS_PROGRAM::NFSPROC3_CREATE)?, &arguments)
}

/// COMMIT of the whole file.
pub(super) fn commit(xid: u32, file: nfs_fh3) -> xdr_codec::Result<Bytes> {
    let arguments = COMMIT3args { file, offset: 0, count: 0 };
    call(nfs_head(xid, NFS_PROGRAM::NFSPROC3_COMMIT)?, &arguments)
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
    pub(super) fn write(
        &self,
        xid: u32,
        file: nfs_fh3,
        offset: u64,
        len: u32,
        fill: impl FnOnce(&mut [u8]),
    ) -> xdr_codec::Result<Bytes> {
        let mut head = nfs_head(xid, NFS_PROGRAM::NFSPROC3_WRITE)?;
        file.pack(&mut head)?;
        offset.pack(&mut head)?;
        for word in [len, stable_how::UNSTABLE as u32, len] {
            word.pack(&mut head)?;
        }
        let data_len = len as usize;
        let total = head.len() + data_len.next_multiple_of(4);
        head[..4].copy_from_slice(&mark(total));
        let kept = self.lock().pop().filter(|record| record.len() == total);
        let mut record = kept.unwrap_or_else(|| vec![0; total]);
        record[..head.len()].copy_from_slice(&head);
        fill(&mut record[head.len()..head.len() + data_len]);
        Ok(Bytes::from_owner(PersistedRecordTable { record, records: self.clone() }))
    }
}

/// Takes the next whole record off the front of the received bytes.
pub(super) fn next_record(received: &mut BytesMut) -> Result<Option<Bytes>, NfsClientError> {
    let Some(mark) = received.first_chunk().map(|mark| fragment_header::from(*mark)) else { return Ok(None) };
    if !mark.eof() || mark.fragment_length() > REPLY_BYTES_MAX {
        return Err(NfsClientError::malformed("its mark"));
    }
    let len = mark.fragment_length() as usize;
    if received.len() < 4 + len {
        return Ok(None);
    }
    received.advance(4);
    Ok(Some(received.split_to(len).freeze()))
}

/// The number and the results of a reply to an accepted and successful call.
pub(super) fn open_reply(record: &[u8]) -> Result<(u32, &[u8]), NfsClientError> {
    let mut results = record;
    let (rpc_msg { xid, body }, _) = rpc_msg::unpack(&mut results)?;
    match body {
        msg_body::REPLY(reply_body::MSG_ACCEPTED(accepted_reply { reply_data: accept_stat_data::SUCCESS, .. })) => {
            Ok((xid, results))
        }
        _ => Err(NfsClientError::malformed("it accepts no call")),
    }
}

/// The handle in the results of MNT.
pub(super) fn mounted(mut results: &[u8]) -> Result<nfs_fh3, NfsClientError> {
    match mountres3::unpack(&mut results)?.0 {
        mountres3::Ok(mounted) => Ok(nfs_fh3 { data: Opaque::owned(mounted.fhandle.0.into_owned()) }),
        mountres3::Err(status) => Err(NfsClientError::Status { procedure: "MNT", status: status as u32 }),
    }
}

/// The handle in the results of CREATE.
pub(super) fn created(created: &[u8]) -> Result<nfs_fh3, NfsClientError> {
    match results::<CREATE3resok, CREATE3resfail>("CREATE", created)?.obj {
        Nfs3Option::Some(handle) => Ok(handle),
        Nfs3Option::None => Err(NfsClientError::malformed("there is no handle")),
    }
}

/// The results of a procedure of NFS.
pub(super) fn results<T: Unpack, E: Unpack>(procedure: &'static str, mut results: &[u8]) -> Result<T, NfsClientError> {
    match Nfs3Result::<T, E>::unpack(&mut results)?.0 {
        Nfs3Result::Ok(results) => Ok(results),
        Nfs3Result::Err((status, _)) => Err(NfsClientError::Status { procedure, status: status as u32 }),
    }
}
