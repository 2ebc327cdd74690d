//! The operations of version 4, each from its arguments to its result, over the volume.
//!
//! Owns: which operation is carried out where; the results of each.
//! Does not own: their order and bounds (`compound`), the state's rules (`state`), the volume's.
//! Invariants: an operation changes the compound only once nothing in it waits any more. Operations
//! on cached data are carried out at once; all others wait for a worker and have memory of their own.

mod attributes;
mod data;
mod handles;
mod listing;
mod locks;
mod names;
mod objects;
mod opens;
mod ranges;
pub(super) mod sessions;
mod xattrs;

use afflux_volume::Platform;
use futures_util::future::BoxFuture;

use super::codec::CompoundOperation;
use super::compound::Compound;
use crate::operations::{Ended, Operations, Task};
use crate::status::Status;
use crate::wire::reply::Draft;

/// Whether an operation changes something. The length of a result may not fail such an operation after the change.
pub(super) fn is_change(operation: &CompoundOperation) -> bool {
    !matches!(
        operation,
        CompoundOperation::Access(_)
            | CompoundOperation::GetAttributes(_)
            | CompoundOperation::GetHandle
            | CompoundOperation::Lookup(_)
            | CompoundOperation::LookupParent
            | CompoundOperation::Verify { .. }
            | CompoundOperation::PutHandle(_)
            | CompoundOperation::PutRoot
            | CompoundOperation::Read { .. }
            | CompoundOperation::List(_)
            | CompoundOperation::ReadLink
            | CompoundOperation::Restore
            | CompoundOperation::Save
            | CompoundOperation::Security(_)
            | CompoundOperation::SecurityOfCurrent { .. }
            | CompoundOperation::TestLock { .. }
            | CompoundOperation::TestStateids { .. }
            | CompoundOperation::Seek { .. }
            | CompoundOperation::GetXattr(_)
            | CompoundOperation::ListXattrs { .. }
            | CompoundOperation::Sequence
            | CompoundOperation::Unsupported
            | CompoundOperation::Illegal
    )
}

/// Whether a later server has to find the call of an operation, since a repetition would not do the same.
pub(super) fn is_noted(operation: &CompoundOperation) -> bool {
    let is_harmless = matches!(
        operation,
        CompoundOperation::Write { .. }
            | CompoundOperation::Commit { .. }
            | CompoundOperation::Allocate { .. }
            | CompoundOperation::Deallocate { .. }
            | CompoundOperation::Copy(_)
    );
    is_change(operation) && !is_harmless
}

/// Whether an operation goes on when its connection has ended, and with it the rest of its compound. The client sends
/// any other again, and it then does the same.
pub(super) fn is_lasting(operation: &CompoundOperation) -> bool {
    let is_repeated = matches!(
        operation,
        CompoundOperation::Write { .. } | CompoundOperation::Commit { .. } | CompoundOperation::Copy(_)
    );
    is_change(operation) && !is_repeated
}

/// Carries out one of the most usual operations, if that takes no waiting: a state machine would cost as much as the
/// operation. None for others.
pub(super) fn try_at_once<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    operation: &CompoundOperation,
) -> Option<Result<(), Status>> {
    match *operation {
        CompoundOperation::PutHandle(handle) => handles::try_put(on, compound, handle).then_some(Ok(())),
        CompoundOperation::GetAttributes(ref asked) => {
            attributes::try_get(on, compound, draft, asked).then_some(Ok(()))
        }
        CompoundOperation::Lock { ref lock, reclaims, ref locker } => {
            locks::try_lock(on, compound, draft, lock, reclaims, locker)
        }
        CompoundOperation::Unlock { stateid, offset, len } => {
            locks::try_unlock(compound, draft, stateid, (offset, len))
        }
        _ => None,
    }
}

/// Carries out an operation, and writes what follows its status.
pub(super) async fn carry_out<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    operation: &CompoundOperation,
) -> Ended {
    match *operation {
        CompoundOperation::PutHandle(handle) => handles::put(on, compound, handle).await,
        CompoundOperation::PutRoot => {
            handles::put_root(on, compound);
            Ok(())
        }
        CompoundOperation::GetHandle => Ok(handles::get(compound, draft)?),
        CompoundOperation::Save => Ok(compound.save()?),
        CompoundOperation::Restore => Ok(compound.restore()?),
        CompoundOperation::Lookup(name) => handles::lookup(on, compound, name).await,
        CompoundOperation::Access(wanted) => attributes::access(on, compound, draft, wanted).await,
        CompoundOperation::GetAttributes(asked) => attributes::get(on, compound, draft, &asked).await,
        CompoundOperation::Read { stateid, offset, count, in_segments } => {
            data::read(on, compound, draft, stateid, (offset, count), in_segments).await
        }
        CompoundOperation::Write { stateid, offset, stability, data } => {
            data::write(on, compound, draft, stateid, offset, stability, data).await
        }
        CompoundOperation::Commit { offset, count } => data::commit(on, compound, draft, offset, count).await,
        CompoundOperation::Open(ref arguments) => opens::open(on, compound, draft, arguments).await,
        CompoundOperation::Close(stateid) => Ok(opens::close(compound, draft, stateid)?),
        CompoundOperation::Downgrade { stateid, access, deny } => {
            Ok(opens::downgrade(compound, draft, stateid, access, deny)?)
        }
        CompoundOperation::Lock { lock, reclaims, locker } => {
            locks::lock(on, compound, draft, &lock, reclaims, &locker).await
        }
        CompoundOperation::TestLock { lock, owner } => locks::test(on, compound, lock, owner).await,
        CompoundOperation::Unlock { stateid, offset, len } => {
            locks::unlock(on, compound, draft, stateid, (offset, len)).await
        }
        CompoundOperation::Sequence => Err(Status::SequencePosition.into()),
        CompoundOperation::Unsupported => Err(Status::NotSupported.into()),
        CompoundOperation::Illegal => Err(Status::OperationIllegal.into()),
        CompoundOperation::Introduce(_)
        | CompoundOperation::CreateSession(_)
        | CompoundOperation::DestroySession(_)
        | CompoundOperation::DestroyClient(_)
        | CompoundOperation::Bind { .. }
        | CompoundOperation::BackChannel(_)
        | CompoundOperation::FreeStateid(_)
        | CompoundOperation::TestStateids { .. }
        | CompoundOperation::ReclaimComplete { .. } => {
            Ok(sessions::within(compound, on.volume(), on.record(), draft, operation)?)
        }
        _ => other(on.task()?, compound, draft, operation).await,
    }
}

/// Carries out an operation that may wait, in memory of its own.
fn other<'a, P: Platform>(
    on: &'a Task<'a, P>,
    compound: &'a mut Compound<P>,
    draft: &'a mut Draft,
    operation: &'a CompoundOperation,
) -> BoxFuture<'a, Ended> {
    match *operation {
        CompoundOperation::LookupParent => Box::pin(handles::lookup_parent(on, compound)),
        CompoundOperation::Security(name) => Box::pin(handles::security(on, compound, draft, name)),
        CompoundOperation::SecurityOfCurrent { of_parent } => {
            Box::pin(handles::security_of_current(on, compound, draft, of_parent))
        }
        CompoundOperation::SetAttributes { stateid, values } => {
            Box::pin(attributes::set(on, compound, draft, stateid, values))
        }
        CompoundOperation::Verify { values, are_same } => Box::pin(attributes::verify(on, compound, values, are_same)),
        CompoundOperation::Create { kind, name, attributes } => {
            Box::pin(names::create(on, compound, draft, kind, name, attributes))
        }
        CompoundOperation::ReadLink => Box::pin(names::read_link(on, compound, draft)),
        CompoundOperation::Remove(name) => Box::pin(names::remove(on, compound, draft, name)),
        CompoundOperation::Rename { from, to } => Box::pin(names::rename(on, compound, draft, from, to)),
        CompoundOperation::Link(name) => Box::pin(names::link(on, compound, draft, name)),
        CompoundOperation::List(ref arguments) => Box::pin(listing::list(on, compound, draft, arguments)),
        CompoundOperation::Seek { stateid, offset, what } => {
            Box::pin(ranges::seek(on, compound, draft, stateid, offset, what))
        }
        CompoundOperation::Allocate { stateid, offset, len } => {
            Box::pin(ranges::allocate(on, compound, stateid, (offset, len)))
        }
        CompoundOperation::Deallocate { stateid, offset, len } => {
            Box::pin(ranges::deallocate(on, compound, stateid, (offset, len)))
        }
        CompoundOperation::Copy(arguments) => Box::pin(ranges::copy(on, compound, draft, arguments)),
        CompoundOperation::GetXattr(name) => Box::pin(xattrs::get(on, compound, draft, name)),
        CompoundOperation::SetXattr { how, name, value } => {
            Box::pin(xattrs::set(on, compound, draft, how, name, value))
        }
        CompoundOperation::ListXattrs { cookie, bytes_max } => {
            Box::pin(xattrs::list(on, compound, draft, cookie, bytes_max))
        }
        CompoundOperation::RemoveXattr(name) => Box::pin(xattrs::remove(on, compound, draft, name)),
        _ => unreachable!("carried out before"),
    }
}
