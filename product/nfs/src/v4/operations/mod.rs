//! The operations of version 4, each from its arguments to its result, over the volume.
//!
//! Owns: which operation is carried out where; the results of each.
//! Does not own: their order and bounds (`compound`), the state's rules (`state`), the volume's.
//! Invariants: an operation changes the compound only once nothing in it waits any more. Operations
//! on cached data are carried out at once; all others wait for a worker and have memory of their own.

mod attributes;
mod copies;
mod data;
mod delegations;
mod handles;
mod locks;
mod names;
mod opens;
mod requested;
pub(super) mod sessions;

use afflux_volume::Platform;
use futures_util::future::BoxFuture;

use super::codec::ArgOp;
use super::compound::Compound;
use crate::operations::{Ended, Operations, Task};
use crate::status::NfsStatus;
use crate::wire::reply::Draft;

/// Whether an operation changes something. The length of a result may not fail such an operation after the change.
pub(super) fn is_change(operation: &ArgOp) -> bool {
    !matches!(
        operation,
        ArgOp::Access(_)
            | ArgOp::Getattr(_)
            | ArgOp::Getfh
            | ArgOp::Lookup(_)
            | ArgOp::Lookupp
            | ArgOp::Verify { .. }
            | ArgOp::Putfh(_)
            | ArgOp::Putrootfh
            | ArgOp::Read { .. }
            | ArgOp::Readdir(_)
            | ArgOp::Readlink
            | ArgOp::Restorefh
            | ArgOp::Savefh
            | ArgOp::Secinfo(_)
            | ArgOp::SecinfoNoName { .. }
            | ArgOp::Lockt { .. }
            | ArgOp::TestStateid { .. }
            | ArgOp::Seek { .. }
            | ArgOp::Getxattr(_)
            | ArgOp::Listxattrs { .. }
            | ArgOp::Sequence
            | ArgOp::Unsupported
            | ArgOp::Illegal
    )
}

/// Whether a later server has to find the call of an operation, since a repetition would not do the same.
pub(super) fn is_noted(operation: &ArgOp) -> bool {
    let is_harmless = matches!(
        operation,
        ArgOp::Write { .. }
            | ArgOp::Commit { .. }
            | ArgOp::Allocate { .. }
            | ArgOp::Deallocate { .. }
            | ArgOp::Copy(_)
            | ArgOp::Clone(_)
    );
    is_change(operation) && !is_harmless
}

/// Whether an operation goes on when its connection has ended, and with it the rest of its compound. The client sends
/// any other again, and it then does the same.
pub(super) fn is_lasting(operation: &ArgOp) -> bool {
    let is_repeated =
        matches!(operation, ArgOp::Write { .. } | ArgOp::Commit { .. } | ArgOp::Copy(_) | ArgOp::Clone(_));
    is_change(operation) && !is_repeated
}

/// Carries out one of the most usual operations, if that takes no waiting: a state machine would cost as much as the
/// operation. None for others.
pub(super) fn try_at_once<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    operation: &ArgOp,
) -> Option<Result<(), NfsStatus>> {
    match *operation {
        ArgOp::Putfh(handle) => handles::try_putfh(on, compound, handle).then_some(Ok(())),
        ArgOp::Getattr(ref asked) => attributes::try_getattr(on, compound, draft, asked).then_some(Ok(())),
        ArgOp::Lock { ref lock, reclaims, ref locker } => locks::try_lock(on, compound, draft, lock, reclaims, locker),
        ArgOp::Locku { stateid, offset, len } => locks::try_unlock(compound, draft, stateid, offset, len),
        _ => None,
    }
}

/// Carries out an operation, and writes what follows its status.
pub(super) async fn carry_out<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    operation: &ArgOp,
) -> Ended {
    match *operation {
        ArgOp::Putfh(handle) => handles::putfh(on, compound, handle).await,
        ArgOp::Putrootfh => {
            handles::putrootfh(on, compound);
            Ok(())
        }
        ArgOp::Getfh => Ok(handles::getfh(compound, draft)?),
        ArgOp::Savefh => Ok(compound.savefh()?),
        ArgOp::Restorefh => Ok(compound.restorefh()?),
        ArgOp::Lookup(name) => handles::lookup(on, compound, name).await,
        ArgOp::Access(wanted) => attributes::access(on, compound, draft, wanted).await,
        ArgOp::Getattr(asked) => attributes::getattr(on, compound, draft, &asked).await,
        ArgOp::Read { stateid, offset, count, in_segments } => {
            data::read(on, compound, draft, stateid, offset, count, in_segments).await
        }
        ArgOp::Write { stateid, offset, stability, data } => {
            data::write(on, compound, draft, stateid, offset, stability, data).await
        }
        ArgOp::Commit { offset, count } => data::commit(on, compound, draft, offset, count).await,
        ArgOp::Open(ref arguments) => opens::open(on, compound, draft, arguments).await,
        ArgOp::Delegreturn(stateid) => Ok(opens::delegreturn(compound, stateid)?),
        ArgOp::Close(stateid) => Ok(opens::close(compound, draft, stateid)?),
        ArgOp::OpenDowngrade { stateid, access, deny } => {
            Ok(opens::open_downgrade(compound, draft, stateid, access, deny)?)
        }
        ArgOp::Lock { lock, reclaims, locker } => locks::lock(on, compound, draft, &lock, reclaims, &locker).await,
        ArgOp::Lockt { lock, owner } => locks::lockt(on, compound, lock, owner).await,
        ArgOp::Locku { stateid, offset, len } => locks::locku(on, compound, draft, stateid, offset, len).await,
        ArgOp::Sequence => Err(NfsStatus::SequencePos.into()),
        ArgOp::Unsupported => Err(NfsStatus::Notsupp.into()),
        ArgOp::Illegal => Err(NfsStatus::OpIllegal.into()),
        ArgOp::ExchangeId(_)
        | ArgOp::CreateSession(_)
        | ArgOp::DestroySession(_)
        | ArgOp::DestroyClientid(_)
        | ArgOp::BindConnToSession { .. }
        | ArgOp::BackchannelCtl(_)
        | ArgOp::FreeStateid(_)
        | ArgOp::TestStateid { .. }
        | ArgOp::ReclaimComplete { .. } => Ok(sessions::within(compound, on.volume(), on.record(), draft, operation)?),
        _ => other(on.task()?, compound, draft, operation).await,
    }
}

/// Carries out an operation that may wait, in memory of its own.
fn other<'a, P: Platform>(
    on: &'a Task<'a, P>,
    compound: &'a mut Compound<P>,
    draft: &'a mut Draft,
    operation: &'a ArgOp,
) -> BoxFuture<'a, Ended> {
    match *operation {
        ArgOp::Lookupp => Box::pin(handles::lookupp(on, compound)),
        ArgOp::Secinfo(name) => Box::pin(handles::secinfo(on, compound, draft, name)),
        ArgOp::SecinfoNoName { of_parent } => Box::pin(handles::secinfo_no_name(on, compound, draft, of_parent)),
        ArgOp::Setattr { stateid, values } => Box::pin(attributes::setattr(on, compound, draft, stateid, values)),
        ArgOp::Verify { values, are_same } => Box::pin(attributes::verify(on, compound, values, are_same)),
        ArgOp::Create { kind, name, attributes } => {
            Box::pin(names::create(on, compound, draft, kind, name, attributes))
        }
        ArgOp::Readlink => Box::pin(names::readlink(on, compound, draft)),
        ArgOp::Remove(name) => Box::pin(names::remove(on, compound, draft, name)),
        ArgOp::Rename { from, to } => Box::pin(names::rename(on, compound, draft, from, to)),
        ArgOp::Link(name) => Box::pin(names::link(on, compound, draft, name)),
        ArgOp::Readdir(ref arguments) => Box::pin(names::readdir(on, compound, draft, arguments)),
        ArgOp::Seek { stateid, offset, what } => Box::pin(data::seek(on, compound, draft, stateid, offset, what)),
        ArgOp::Allocate { stateid, offset, len } => Box::pin(data::allocate(on, compound, stateid, offset, len)),
        ArgOp::Deallocate { stateid, offset, len } => Box::pin(data::deallocate(on, compound, stateid, offset, len)),
        ArgOp::Copy(arguments) => Box::pin(copies::copy(on, compound, draft, arguments)),
        ArgOp::Clone(arguments) => Box::pin(copies::clone(on, compound, arguments)),
        ArgOp::Getxattr(name) => Box::pin(attributes::getxattr(on, compound, draft, name)),
        ArgOp::Setxattr { how, name, value } => Box::pin(attributes::setxattr(on, compound, draft, how, name, value)),
        ArgOp::Listxattrs { cookie, bytes_max } => {
            Box::pin(attributes::listxattrs(on, compound, draft, cookie, bytes_max))
        }
        ArgOp::Removexattr(name) => Box::pin(attributes::removexattr(on, compound, draft, name)),
        _ => unreachable!("carried out before"),
    }
}
