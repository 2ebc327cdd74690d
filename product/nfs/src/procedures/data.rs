//! READ, WRITE and COMMIT; and, without waiting, GETATTR, READ and unstable WRITE of cached data.
//!
//! Owns: the results of these, and the choice of their write verifier.
//! Does not own: the cache, durability, the verifier's value (the volume).
//! Invariants: the answered level of stability was reached. A client never takes lost data for committed. It takes data
//! for committed if the verifiers of a WRITE and of a later COMMIT are equal, and each loss changes the verifier. So
//! WRITE takes its verifier before it writes: a later one could be newer than a loss of these very bytes, and equal the
//! COMMIT's. COMMIT takes its verifier after the sync: an earlier one could be older than a loss during the sync, and
//! equal the WRITE's. If the verifiers differ without need, the client only sends again data that it still has.

use std::sync::Arc;

use afflux_volume::{Caller, Consistency, FILE_BYTES_MAX, Inode, Kind, Outcome, Platform, ReadResult, Use, Volume};
use bytes::Bytes;

use super::{OnBehalf, attributes_now, check_regular, consistency_now, resolve};
use crate::arguments::{Extent, Stability};
use crate::batch::Batch;
use crate::limits::{HANDLE_BYTES_MAX, READ_BYTES_MAX, WRITE_BYTES_MAX};
use crate::reply::{Data, Draft, Reply};
use crate::status::Status;
use crate::xdr::{Reader, Writer};

/// Answers a GETATTR into `batch` if that takes no waiting; otherwise does nothing.
pub(crate) fn try_get_attributes<P: Platform>(
    volume: &Volume<P>,
    xid: u32,
    arguments: &[u8],
    batch: &mut Batch,
) -> Option<()> {
    let mut reader = Reader::new(arguments);
    let inode = volume.try_resolve(reader.opaque(HANDLE_BYTES_MAX).ok()?)?;
    let attributes = volume.try_attributes(&inode)?;
    let start = batch.writer.len();
    batch.writer.accept(xid);
    batch.writer.u32(Status::Ok.code());
    batch.writer.attributes(&attributes);
    batch.writer.end_record(start, 0);
    Some(())
}

/// Answers a READ into `batch` if that takes no waiting; otherwise does nothing.
pub(crate) fn try_read<P: Platform>(
    volume: &Volume<P>,
    caller: &Caller,
    xid: u32,
    arguments: &[u8],
    batch: &mut Batch,
) -> Option<()> {
    let mut reader = Reader::new(arguments);
    let inode = volume.try_resolve(reader.opaque(HANDLE_BYTES_MAX).ok()?)?;
    let (offset, count) = (reader.u64().ok()?, reader.u32().ok()?);
    let count = readable(offset, count);
    if inode.kind() != Kind::Regular || count == 0 || volume.allows(&inode, caller, Use::Read) != Some(true) {
        return None;
    }
    let read = volume.try_read(&inode, offset, count)?;
    let start = batch.writer.len();
    batch.writer.accept(xid);
    let data = write_read_results(&mut batch.writer, read);
    batch.writer.end_record(start, data.len());
    batch.data(data);
    Some(())
}

/// Carries out an unstable WRITE and answers it into `batch` if that takes no waiting; otherwise
/// does nothing.
pub(crate) fn try_write<P: Platform>(
    volume: &Volume<P>,
    caller: &Caller,
    xid: u32,
    arguments: &[u8],
    batch: &mut Batch,
) -> Option<()> {
    let mut reader = Reader::new(arguments);
    let inode = volume.try_resolve(reader.opaque(HANDLE_BYTES_MAX).ok()?)?;
    let (offset, count, stability) = (reader.u64().ok()?, reader.u32().ok()?, reader.u32().ok()?);
    let data = reader.opaque(WRITE_BYTES_MAX as usize).ok()?;
    let as_usual = stability == Stability::Unstable as u32
        && data.len() == count as usize
        && !data.is_empty()
        && writable(offset, count).is_ok()
        && inode.kind() == Kind::Regular
        && volume.allows(&inode, caller, Use::Write) == Some(true);
    if !as_usual {
        return None;
    }
    let verifier = volume.write_verifier();
    let consistency = volume.try_write(&inode, offset, data)?;
    let start = batch.writer.len();
    batch.writer.accept(xid);
    batch.writer.u32(Status::Ok.code());
    write_written(&mut batch.writer, &consistency, count, Stability::Unstable, verifier);
    batch.writer.end_record(start, 0);
    Some(())
}

/// Bytes to read from the volume for a request of `count` bytes: at most a reply's limit, and none past the largest
/// offset of a file.
fn readable(offset: u64, count: u32) -> u32 {
    let to_end = FILE_BYTES_MAX.saturating_sub(offset);
    u64::from(count.min(READ_BYTES_MAX)).min(to_end) as u32
}

fn writable(offset: u64, count: u32) -> Result<(), Status> {
    match offset.checked_add(count.into()) {
        Some(end) if end <= FILE_BYTES_MAX => Ok(()),
        _ => Err(Status::TooLarge),
    }
}

/// Writes status and results of a READ without the data, which it returns.
fn write_read_results(writer: &mut Writer, read: ReadResult) -> Data {
    let data = Data::from(read.bytes);
    writer.u32(Status::Ok.code());
    writer.post_op(Some(&read.attributes));
    writer.u32(data.len() as u32);
    writer.bool(read.end_of_file);
    writer.u32(data.len() as u32);
    data
}

fn write_written(writer: &mut Writer, consistency: &Consistency, count: u32, committed: Stability, verifier: [u8; 8]) {
    writer.consistency(consistency);
    writer.u32(count);
    writer.u32(committed as u32);
    writer.raw(&verifier);
}

pub(super) async fn read<P: Platform>(
    volume: Arc<Volume<P>>,
    OnBehalf { caller, client }: OnBehalf,
    mut draft: Draft,
    extent: Extent,
) -> Reply {
    let volume = &*volume;
    let inode = match resolve(volume, &extent.object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 1),
    };
    let count = readable(extent.offset, extent.count);
    let read = match check_regular(inode.kind()) {
        Err(status) => Err(status),
        Ok(()) if count == 0 => read_nothing(volume, &caller, &inode, extent.offset).await,
        Ok(()) => volume.read_by(&caller, Some(&client), &inode, extent.offset, count).await.map_err(Status::from),
    };
    match read {
        Ok(read) => {
            let data = write_read_results(&mut draft.writer, read);
            draft.finish_with(Some(data))
        }
        Err(status) => {
            let attributes = attributes_now(volume, &inode).await;
            draft.status(status).post_op(attributes.as_ref());
            draft.finish()
        }
    }
}

/// A READ of no bytes still reports whether it is at the end of the file.
async fn read_nothing<P: Platform>(
    volume: &Volume<P>,
    caller: &Caller,
    inode: &Arc<Inode<P>>,
    offset: u64,
) -> Result<ReadResult, Status> {
    volume.permit(inode, caller, Use::Read).await?;
    let attributes = volume.attributes(inode).await?;
    let bytes = afflux_volume::ReadBytes::Copied(Bytes::new());
    Ok(ReadResult { bytes, end_of_file: offset >= attributes.size, attributes })
}

pub(super) async fn write<P: Platform>(
    volume: Arc<Volume<P>>,
    by: OnBehalf,
    mut draft: Draft,
    extent: Extent,
    stability: Stability,
    data: Bytes,
) -> Reply {
    let volume = &*volume;
    let inode = match resolve(volume, &extent.object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 2),
    };
    let verifier = volume.write_verifier();
    // Bytes above the announced size are not written; the client sees the written count and sends the rest again. Bytes
    // beyond the call's own count are ignored.
    let count = extent.count.min(WRITE_BYTES_MAX);
    let checked = check_regular(inode.kind()).and_then(|()| {
        if data.len() < count as usize {
            return Err(Status::Invalid);
        }
        writable(extent.offset, count)
    });
    let data = data.slice(..data.len().min(count as usize));
    let (status, consistency) = match checked {
        Err(status) => (status, Consistency::default()),
        Ok(()) if count == 0 => {
            let permitted = volume.permit(&inode, &by.caller, Use::Write).await;
            (permitted.map_or_else(Status::from, |()| Status::Ok), Consistency::default())
        }
        Ok(()) => write_and_sync(volume, &by, &inode, extent.offset, (stability, data)).await,
    };
    let consistency = consistency_now(volume, &inode, consistency).await;
    let writer = draft.status(status);
    match status {
        Status::Ok => write_written(writer, &consistency, count, stability, verifier),
        _ => writer.consistency(&consistency),
    }
    draft.finish()
}

async fn write_and_sync<P: Platform>(
    volume: &Volume<P>,
    by: &OnBehalf,
    inode: &Arc<Inode<P>>,
    offset: u64,
    (stability, data): (Stability, Bytes),
) -> (Status, Consistency) {
    let count = data.len() as u64;
    // The consistency data is of the moment of the write. Other clients may write during the sync; a later "after"
    // would hide such a write from this client.
    let Outcome { result, consistency } = volume.write_by(&by.caller, Some(&by.client), inode, offset, data).await;
    if let Err(error) = result {
        return (error.into(), consistency);
    }
    if stability == Stability::Unstable {
        return (Status::Ok, consistency);
    }
    let synced = volume.sync_for(Some(&by.client), inode, offset, count).await;
    (synced.result.map_or_else(Status::from, |()| Status::Ok), consistency)
}

pub(super) async fn commit<P: Platform>(
    volume: Arc<Volume<P>>,
    OnBehalf { caller, client }: OnBehalf,
    mut draft: Draft,
    extent: Extent,
) -> Reply {
    let volume = &*volume;
    let inode = match resolve(volume, &extent.object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 2),
    };
    let (status, consistency) = match check_regular(inode.kind()) {
        Err(status) => (status, Consistency::default()),
        // No file has bytes there.
        Ok(()) if extent.offset >= FILE_BYTES_MAX => (Status::Ok, Consistency::default()),
        Ok(()) => {
            let len = u64::from(extent.count).min(FILE_BYTES_MAX - extent.offset);
            let outcome = volume.commit_by(&caller, Some(&client), &inode, extent.offset, len).await;
            (outcome.result.map_or_else(Status::from, |()| Status::Ok), outcome.consistency)
        }
    };
    let verifier = volume.write_verifier();
    let consistency = consistency_now(volume, &inode, consistency).await;
    let writer = draft.status(status);
    writer.consistency(&consistency);
    if status == Status::Ok {
        writer.raw(&verifier);
    }
    draft.finish()
}
