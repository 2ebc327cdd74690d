//! GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF.
//!
//! Owns: the replies about objects and about their file system.
//! Does not own: the figures (the volume), the sizes announced (`limits`).
//! Invariants: ACCESS grants only rights that the client asked for.

use std::sync::Arc;

use afflux_volume::{AttributeChange, Caller, FILE_BYTES_MAX, Kind, Platform, Timestamp, Volume};

use super::{attributes_now, check_regular, consistency_now, resolve};
use crate::arguments::Handle;
use crate::batch::Batch;
use crate::limits::{
    DATA_BYTES_MULTIPLE, DATA_BYTES_PREFERRED, HANDLE_BYTES_MAX, LISTING_BYTES_MAX, READ_BYTES_MAX, WRITE_BYTES_MAX,
};
use crate::reply::{Draft, Reply};
use crate::status::Status;
use crate::xdr::Reader;

pub(super) async fn get<P: Platform>(volume: Arc<Volume<P>>, mut draft: Draft, object: Handle) -> Reply {
    let attributes = match resolve(&volume, &object).await {
        Err(status) => Err(status),
        Ok(inode) => volume.attributes(&inode).await.map_err(Status::from),
    };
    match attributes {
        Err(status) => draft.failed(status, 0),
        Ok(attributes) => {
            draft.status(Status::Ok).attributes(&attributes);
            draft.finish()
        }
    }
}

pub(super) async fn set<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    mut draft: Draft,
    object: Handle,
    change: AttributeChange,
    guard: Option<Timestamp>,
) -> Reply {
    let inode = match resolve(&volume, &object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 2),
    };
    let (status, consistency) = match check_size(change.size, inode.kind()) {
        Err(status) => (status, Default::default()),
        Ok(()) => {
            let outcome = volume.set_attributes_by(&caller, &inode, change, guard).await;
            (outcome.result.map_or_else(Status::from, |()| Status::Ok), outcome.consistency)
        }
    };
    let consistency = consistency_now(&volume, &inode, consistency).await;
    draft.status(status).consistency(&consistency);
    draft.finish()
}

fn check_size(size: Option<u64>, kind: Kind) -> Result<(), Status> {
    match size {
        None => Ok(()),
        Some(size) if size > FILE_BYTES_MAX => Err(Status::TooLarge),
        Some(_) => check_regular(kind),
    }
}

/// The bits of ACCESS (RFC 1813, section 3.3.4).
mod bits {
    pub(super) const READ: u32 = 0x01;
    pub(super) const LOOKUP: u32 = 0x02;
    pub(super) const MODIFY: u32 = 0x04;
    pub(super) const EXTEND: u32 = 0x08;
    pub(super) const DELETE: u32 = 0x10;
    pub(super) const EXECUTE: u32 = 0x20;
}

/// The ACCESS bits that follow from the permissions `granted` (read 1, write 2, execute or search 4) on an object.
fn allowed(kind: Kind, granted: u8) -> u32 {
    let (read, write, execute) = (granted & 1 != 0, granted & 2 != 0, granted & 4 != 0);
    let when = |condition, bits| if condition { bits } else { 0 };
    match kind {
        // A change of names needs the rights to write and to search the directory.
        Kind::Directory => {
            when(read, bits::READ)
                | when(execute, bits::LOOKUP)
                | when(write && execute, bits::MODIFY | bits::EXTEND | bits::DELETE)
        }
        _ => when(read, bits::READ) | when(write, bits::MODIFY | bits::EXTEND) | when(execute, bits::EXECUTE),
    }
}

/// Answers an ACCESS into `batch` if that takes no waiting; otherwise does nothing.
pub(crate) fn try_access<P: Platform>(
    volume: &Volume<P>,
    caller: &Caller,
    xid: u32,
    arguments: &[u8],
    batch: &mut Batch,
) -> Option<()> {
    let mut reader = Reader::new(arguments);
    let inode = volume.try_resolve(reader.opaque(HANDLE_BYTES_MAX).ok()?)?;
    let wanted = reader.u32().ok()?;
    let (granted, attributes) = volume.try_access(&inode, caller)?;
    let start = batch.writer.len();
    batch.writer.accept(xid);
    batch.writer.u32(Status::Ok.code());
    batch.writer.post_op(Some(&attributes));
    batch.writer.u32(wanted & allowed(inode.kind(), granted));
    batch.writer.end_record(start, 0);
    Some(())
}

pub(super) async fn access<P: Platform>(
    volume: Arc<Volume<P>>,
    caller: Caller,
    mut draft: Draft,
    object: Handle,
    wanted: u32,
) -> Reply {
    let inode = match resolve(&volume, &object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 1),
    };
    match volume.access_by(&caller, &inode).await {
        Ok((granted, attributes)) => {
            let writer = draft.status(Status::Ok);
            writer.post_op(Some(&attributes));
            writer.u32(wanted & allowed(inode.kind(), granted));
        }
        Err(error) => {
            let attributes = attributes_now(&volume, &inode).await;
            draft.status(error.into()).post_op(attributes.as_ref());
        }
    }
    draft.finish()
}

pub(super) async fn space<P: Platform>(volume: Arc<Volume<P>>, mut draft: Draft, object: Handle) -> Reply {
    let inode = match resolve(&volume, &object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 1),
    };
    match volume.space(&inode).await {
        Ok((space, attributes)) => {
            let writer = draft.status(Status::Ok);
            writer.post_op(Some(&attributes));
            let bytes = [space.total_bytes, space.free_bytes, space.available_bytes];
            let files = [space.total_files, space.free_files, space.available_files];
            bytes.iter().chain(&files).for_each(|&figure| writer.u64(figure));
            // Seconds for which the figures are expected to stay the same: none.
            writer.u32(0);
        }
        Err(error) => {
            let attributes = attributes_now(&volume, &inode).await;
            draft.status(error.into()).post_op(attributes.as_ref());
        }
    }
    draft.finish()
}

pub(super) async fn information<P: Platform>(volume: Arc<Volume<P>>, mut draft: Draft, object: Handle) -> Reply {
    const LINK: u32 = 0x01;
    const SYMLINK: u32 = 0x02;
    const HOMOGENEOUS: u32 = 0x08;
    const CAN_SET_TIME: u32 = 0x10;
    let inode = match resolve(&volume, &object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 1),
    };
    let attributes = attributes_now(&volume, &inode).await;
    let writer = draft.status(Status::Ok);
    writer.post_op(attributes.as_ref());
    let sizes = [
        READ_BYTES_MAX,
        DATA_BYTES_PREFERRED,
        DATA_BYTES_MULTIPLE,
        WRITE_BYTES_MAX,
        DATA_BYTES_PREFERRED,
        DATA_BYTES_MULTIPLE,
        LISTING_BYTES_MAX,
    ];
    sizes.iter().for_each(|&size| writer.u32(size));
    writer.u64(volume.file_bytes_max(&inode).min(FILE_BYTES_MAX));
    // Resolution of times: 0 seconds and 1 nanosecond.
    writer.u32(0);
    writer.u32(1);
    writer.u32(LINK | SYMLINK | HOMOGENEOUS | CAN_SET_TIME);
    draft.finish()
}

pub(super) async fn path_limits<P: Platform>(volume: Arc<Volume<P>>, mut draft: Draft, object: Handle) -> Reply {
    let inode = match resolve(&volume, &object).await {
        Ok(inode) => inode,
        Err(status) => return draft.failed(status, 1),
    };
    match volume.path_limits(&inode).await {
        Ok((limits, attributes)) => {
            let writer = draft.status(Status::Ok);
            writer.post_op(Some(&attributes));
            writer.u32(limits.links_max);
            writer.u32(limits.name_max);
            writer.bool(limits.no_trunc);
            // Only a privileged user may give a file away.
            writer.bool(true);
            writer.bool(limits.case_insensitive);
            writer.bool(limits.case_preserving);
        }
        Err(error) => {
            let attributes = attributes_now(&volume, &inode).await;
            draft.status(error.into()).post_op(attributes.as_ref());
        }
    }
    draft.finish()
}

#[cfg(test)]
mod tests;
