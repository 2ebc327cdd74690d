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

use super::codec::Operation;
use super::compound::Compound;
use crate::operations::{Ended, Operations, Task};
use crate::status::Status;
use crate::wire::reply::Draft;

/// Whether an operation changes something. The length of a result may not fail such an operation after the change.
pub(super) fn changes(operation: &Operation) -> bool {
    !matches!(
        operation,
        Operation::Access(_)
            | Operation::GetAttributes(_)
            | Operation::GetHandle
            | Operation::Lookup(_)
            | Operation::LookupParent
            | Operation::Verify { .. }
            | Operation::PutHandle(_)
            | Operation::PutRoot
            | Operation::Read { .. }
            | Operation::List(_)
            | Operation::ReadLink
            | Operation::Restore
            | Operation::Save
            | Operation::Security(_)
            | Operation::SecurityOfCurrent { .. }
            | Operation::TestLock { .. }
            | Operation::TestStateids { .. }
            | Operation::Seek { .. }
            | Operation::GetXattr(_)
            | Operation::ListXattrs { .. }
            | Operation::Sequence(_)
            | Operation::Unsupported
            | Operation::Illegal
    )
}

/// Whether a later server has to find the call of an operation, since a repetition would not do the same.
pub(super) fn is_noted(operation: &Operation) -> bool {
    let is_harmless = matches!(
        operation,
        Operation::Write { .. }
            | Operation::Commit { .. }
            | Operation::Allocate { .. }
            | Operation::Deallocate { .. }
            | Operation::Copy(_)
    );
    changes(operation) && !is_harmless
}

/// Carries out an operation, and writes what follows its status.
pub(super) async fn carry_out<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    operation: &Operation,
) -> Ended {
    match *operation {
        Operation::PutHandle(handle) => handles::put(on, compound, handle).await,
        Operation::GetHandle => Ok(handles::get(on, compound, draft)?),
        Operation::Save => Ok(handles::save(compound)?),
        Operation::Restore => Ok(handles::restore(compound)?),
        Operation::Lookup(name) => handles::lookup(on, compound, name).await,
        Operation::Access(wanted) => attributes::access(on, compound, draft, wanted).await,
        Operation::GetAttributes(asked) => attributes::get(on, compound, draft, asked).await,
        Operation::Read { stateid, offset, count, in_segments } => {
            data::read(on, compound, draft, stateid, (offset, count), in_segments).await
        }
        Operation::Write { stateid, offset, stability, data } => {
            data::write(on, compound, draft, stateid, offset, stability, data).await
        }
        Operation::Commit { offset, count } => data::commit(on, compound, draft, offset, count).await,
        Operation::Open(ref arguments) => opens::open(on, compound, draft, arguments).await,
        Operation::Close(stateid) => Ok(opens::close(compound, draft, stateid)?),
        Operation::Downgrade { stateid, access, deny } => Ok(opens::downgrade(compound, draft, stateid, access, deny)?),
        Operation::Lock { lock, reclaims, locker } => locks::lock(on, compound, draft, lock, reclaims, locker).await,
        Operation::TestLock { lock, owner } => locks::test(on, compound, lock, owner).await,
        Operation::Unlock { stateid, offset, len } => Ok(locks::unlock(compound, draft, stateid, (offset, len))?),
        Operation::Sequence(_) => Err(Status::SequencePosition.into()),
        Operation::Unsupported => Err(Status::NotSupported.into()),
        Operation::Illegal => Err(Status::OperationIllegal.into()),
        Operation::Introduce(_)
        | Operation::CreateSession(_)
        | Operation::DestroySession(_)
        | Operation::DestroyClient(_)
        | Operation::Bind { .. }
        | Operation::BackChannel(_)
        | Operation::FreeStateid(_)
        | Operation::TestStateids { .. }
        | Operation::ReclaimComplete { .. } => {
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
    operation: &'a Operation,
) -> BoxFuture<'a, Ended> {
    match *operation {
        Operation::PutRoot => Box::pin(handles::put_root(on, compound)),
        Operation::LookupParent => Box::pin(handles::lookup_parent(on, compound)),
        Operation::Security(name) => Box::pin(handles::security(on, compound, draft, name)),
        Operation::SecurityOfCurrent { of_parent } => {
            Box::pin(handles::security_of_current(on, compound, draft, of_parent))
        }
        Operation::SetAttributes { stateid, values } => Box::pin(attributes::set(on, compound, draft, stateid, values)),
        Operation::Verify { values, are_same } => Box::pin(attributes::verify(on, compound, values, are_same)),
        Operation::Create { kind, name, attributes } => {
            Box::pin(names::create(on, compound, draft, kind, name, attributes))
        }
        Operation::ReadLink => Box::pin(names::read_link(on, compound, draft)),
        Operation::Remove(name) => Box::pin(names::remove(on, compound, draft, name)),
        Operation::Rename { from, to } => Box::pin(names::rename(on, compound, draft, from, to)),
        Operation::Link(name) => Box::pin(names::link(on, compound, draft, name)),
        Operation::List(ref arguments) => Box::pin(listing::list(on, compound, draft, arguments)),
        Operation::Seek { stateid, offset, what } => Box::pin(ranges::seek(on, compound, draft, stateid, offset, what)),
        Operation::Allocate { stateid, offset, len } => {
            Box::pin(ranges::allocate(on, compound, stateid, (offset, len)))
        }
        Operation::Deallocate { stateid, offset, len } => {
            Box::pin(ranges::deallocate(on, compound, stateid, (offset, len)))
        }
        Operation::Copy(arguments) => Box::pin(ranges::copy(on, compound, draft, arguments)),
        Operation::GetXattr(name) => Box::pin(xattrs::get(on, compound, draft, name)),
        Operation::SetXattr { how, name, value } => Box::pin(xattrs::set(on, compound, draft, how, name, value)),
        Operation::ListXattrs { cookie, bytes_max } => Box::pin(xattrs::list(on, compound, draft, cookie, bytes_max)),
        Operation::RemoveXattr(name) => Box::pin(xattrs::remove(on, compound, draft, name)),
        _ => unreachable!("carried out before"),
    }
}
