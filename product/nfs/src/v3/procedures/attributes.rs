//! GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF.
//!
//! Owns: the replies about objects and about their file system.
//! Does not own: the figures (the volume), the sizes announced (`limits`).
//! Invariants: ACCESS grants only rights that the client asked for.

use afflux_volume::{AttributeChange, FILE_BYTES_MAX, Kind, Platform, Share, Timestamp};

use crate::limits::{DATA_BYTES_MULTIPLE, DATA_BYTES_PREFERRED, LISTING_BYTES_MAX, READ_BYTES_MAX, WRITE_BYTES_MAX};
use crate::operations;
use crate::operations::{Ended, Operations, Task, attributes_if_any, consistency_now};
use crate::status::NfsStatus;
use crate::v3::permitted::{Procedure, check_regular, failed};

pub(super) async fn get<P: Platform>(on: &impl Operations<P>, call: &mut Procedure<'_, P>) -> Ended {
    let attributes = on.attributes(call.object).await?;
    call.draft.status(NfsStatus::Ok).attributes(&attributes);
    Ok(())
}

pub(super) async fn set<P: Platform>(
    on: &Task<'_, P>,
    call: &mut Procedure<'_, P>,
    change: AttributeChange,
    guard: Option<Timestamp>,
) -> Ended {
    let checked = check_size(change.size, call.object.kind()).and_then(|()| match change.size {
        Some(_) => Ok(on.volume.check_undenied(call.object, Share::WRITE)?),
        None => Ok(()),
    });
    let (status, consistency) = match checked {
        Err(status) => (status, Default::default()),
        Ok(()) => {
            let outcome = on.volume.set_attributes_by(on.caller, call.object, change, guard).await;
            (outcome.result.into(), outcome.consistency)
        }
    };
    let consistency = consistency_now(on, call.object, consistency).await?;
    call.draft.status(status).consistency(&consistency);
    Ok(())
}

fn check_size(size: Option<u64>, kind: Kind) -> Result<(), NfsStatus> {
    match size {
        None => Ok(()),
        Some(size) if size > FILE_BYTES_MAX => Err(NfsStatus::Fbig),
        Some(_) => check_regular(kind),
    }
}

pub(super) async fn access<P: Platform>(on: &impl Operations<P>, call: &mut Procedure<'_, P>, wanted: u32) -> Ended {
    let (granted, attributes) = match on.access(call.object).await {
        Ok(found) => found,
        Err(stop) => return failed(on, call, stop).await,
    };
    let writer = call.draft.status(NfsStatus::Ok);
    writer.post_op(Some(&attributes));
    writer.u32(wanted & operations::allowed(call.object.kind(), granted));
    Ok(())
}

pub(super) async fn space<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>) -> Ended {
    let (space, attributes) = match on.volume.space(call.object).await {
        Ok(found) => found,
        Err(error) => return failed(on, call, error.into()).await,
    };
    let writer = call.draft.status(NfsStatus::Ok);
    writer.post_op(Some(&attributes));
    let bytes = [space.total_bytes, space.free_bytes, space.available_bytes];
    let files = [space.total_files, space.free_files, space.available_files];
    bytes.iter().chain(&files).for_each(|&figure| writer.u64(figure));
    // Seconds for which this is not expected to change: none.
    writer.u32(0);
    Ok(())
}

pub(super) async fn information<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>) -> Ended {
    const LINK: u32 = 0x01;
    const SYMLINK: u32 = 0x02;
    const HOMOGENEOUS: u32 = 0x08;
    const CAN_SET_TIME: u32 = 0x10;
    const SECOND_NS: u32 = 1_000_000_000;
    let file_bytes_max = on.volume.file_bytes_max(call.object).await.min(FILE_BYTES_MAX);
    let attributes = attributes_if_any(on, call.object).await?;
    let writer = call.draft.status(NfsStatus::Ok);
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
    writer.u64(file_bytes_max);
    let unit_ns = call.object.time_unit_ns();
    writer.u32(unit_ns / SECOND_NS);
    writer.u32(unit_ns % SECOND_NS);
    writer.u32(LINK | SYMLINK | HOMOGENEOUS | CAN_SET_TIME);
    Ok(())
}

pub(super) async fn path_limits<P: Platform>(on: &Task<'_, P>, call: &mut Procedure<'_, P>) -> Ended {
    let (limits, attributes) = match on.volume.path_limits(call.object).await {
        Ok(found) => found,
        Err(error) => return failed(on, call, error.into()).await,
    };
    let writer = call.draft.status(NfsStatus::Ok);
    writer.post_op(Some(&attributes));
    writer.u32(limits.links_max);
    writer.u32(limits.name_max);
    writer.bool(limits.no_trunc);
    // Only a privileged user may give a file away.
    writer.bool(true);
    writer.bool(limits.case_insensitive);
    writer.bool(limits.case_preserving);
    Ok(())
}

#[cfg(test)]
mod tests;
