//! READ, WRITE and COMMIT.
//!
//! Owns: the results of these, and the choice of their write verifier.
//! Does not own: the cache, durability, the verifier's value (the volume).
//! Invariants: the answered level of stability was reached. A client never takes lost data for committed. It takes data
//! for committed if the verifiers of a WRITE and of a later COMMIT are equal, and each loss changes the verifier. So
//! WRITE takes its verifier before it writes: a later one could be newer than a loss of these very bytes, and equal the
//! COMMIT's. COMMIT takes its verifier after the sync: an earlier one could be older than a loss during the sync, and
//! equal the WRITE's. If the verifiers differ without need, the client only sends again data that it still has. A use
//! that an open of version 4 denies is refused; the server does not ask the client to come back, since the open may
//! last for days.

use std::sync::Arc;

use afflux_volume::{Consistency, FILE_BYTES_MAX, Inode, Platform, ReadBytes, ReadResult, Share, Use};
use bytes::Bytes;

use crate::limits::{READ_BYTES_MAX, WRITE_BYTES_MAX};
use crate::operations::{Ended, Operations, Stability, Stop, Task, consistency_now};
use crate::status::NfsStatus;
use crate::v3::arguments::Extent;
use crate::v3::permitted::{Procedure, check_regular, failed};
use crate::wire::reply::Data;
use crate::wire::xdr::Field;

/// Bytes to read from the volume for a request of `count` bytes: at most a reply's limit, and none past the largest
/// offset of a file.
fn readable(offset: u64, count: u32) -> u32 {
    let to_end = FILE_BYTES_MAX.saturating_sub(offset);
    u64::from(count.min(READ_BYTES_MAX)).min(to_end) as u32
}

fn writable(offset: u64, count: u32) -> Result<(), NfsStatus> {
    match offset.checked_add(count.into()) {
        Some(end) if end <= FILE_BYTES_MAX => Ok(()),
        _ => Err(NfsStatus::Fbig),
    }
}

pub(super) async fn read<P: Platform>(on: &impl Operations<P>, call: &mut Procedure<'_, P>, extent: Extent) -> Ended {
    let count = readable(extent.offset, extent.count);
    let checked = check_regular(call.object.kind());
    let read = match checked.and_then(|()| Ok(on.volume().check_undenied(call.object, Share::READ)?)) {
        Err(status) => Err(status.into()),
        Ok(()) if count == 0 => read_nothing(on, call.object, extent.offset).await,
        Ok(()) => on.read(call.object, extent.offset, count).await,
    };
    let read = match read {
        Ok(read) => read,
        Err(stop) => return failed(on, call, stop).await,
    };
    let data = Data::from(read.bytes);
    let writer = call.draft.status(NfsStatus::Ok);
    writer.post_op(Some(&read.attributes));
    let len = data.len() as u32;
    writer.words([len, read.end_of_file.into(), len]);
    call.draft.data(data);
    Ok(())
}

/// A READ of no bytes still says whether it is at the end of the file.
async fn read_nothing<P: Platform>(on: &impl Operations<P>, inode: &Arc<Inode<P>>, offset: u64) -> Ended<ReadResult> {
    on.permit(inode, Use::Read).await?;
    let attributes = on.attributes(inode).await?;
    let bytes = ReadBytes::Copied(Bytes::new());
    Ok(ReadResult { bytes, end_of_file: offset >= attributes.size, attributes })
}

pub(super) async fn write<P: Platform>(
    on: &impl Operations<P>,
    call: &mut Procedure<'_, P>,
    extent: Extent,
    stability: Stability,
    data: Field,
) -> Ended {
    let data = on.bytes(data);
    let verifier = on.volume().write_verifier();
    // A client sends bytes above the announced size again, once it sees how many were written. Bytes above the count
    // are dropped.
    let count = extent.count.min(WRITE_BYTES_MAX);
    let checked = check_regular(call.object.kind()).and_then(|()| {
        if data.len() < count as usize {
            return Err(NfsStatus::Inval);
        }
        writable(extent.offset, count)?;
        Ok(on.volume().check_undenied(call.object, Share::WRITE)?)
    });
    let (status, consistency) = match checked {
        Err(status) => (status, Consistency::default()),
        Ok(()) if count == 0 => match on.permit(call.object, Use::Write).await {
            Ok(()) => (NfsStatus::Ok, Consistency::default()),
            Err(Stop::Failed(status)) => (status, Consistency::default()),
            Err(stop) => return Err(stop),
        },
        Ok(()) => on.write(call.object, extent.offset, &data[..count as usize], stability).await?,
    };
    let consistency = consistency_now(on, call.object, consistency).await?;
    let writer = call.draft.status(status);
    writer.consistency(&consistency);
    if status == NfsStatus::Ok {
        writer.u32(count);
        writer.u32(stability as u32);
        writer.raw(&verifier);
    }
    Ok(())
}

pub(super) async fn commit<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>, extent: Extent) -> Ended {
    let (status, consistency) = match check_regular(call.object.kind()) {
        Err(status) => (status, Consistency::default()),
        // No file has bytes there.
        Ok(()) if extent.offset >= FILE_BYTES_MAX => (NfsStatus::Ok, Consistency::default()),
        Ok(()) => {
            let len = u64::from(extent.count).min(FILE_BYTES_MAX - extent.offset);
            let outcome = on.volume.commit_by(on.caller, Some(on.client), call.object, extent.offset, len).await;
            (outcome.result.into(), outcome.consistency)
        }
    };
    let verifier = on.volume.write_verifier();
    let consistency = consistency_now(on, call.object, consistency).await?;
    let writer = call.draft.status(status);
    writer.consistency(&consistency);
    if status == NfsStatus::Ok {
        writer.raw(&verifier);
    }
    Ok(())
}
