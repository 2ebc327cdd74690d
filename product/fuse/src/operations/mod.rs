//! The operations on files.
//!
//! Owns: which operation is carried out where, and which are refused.
//! Does not own: the volume's work, layouts.
//! Invariants: an operation that is tried without a wait asks the host nothing. Until it gives up it has changed
//! nothing, except for the beginning of a WRITE, which is then written again.

mod acting;
mod attributes;
mod data;
mod listing;
mod locks;
mod names;
mod repeated;
mod xattrs;

use afflux_volume::Platform;

use crate::mount::{Mount, Outcome};
use crate::reply::{Answer, Errno};
use crate::request::{Operation, RequestHeader};

/// The outcome, if it needs no wait.
pub(crate) fn at_once<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    operation: &Operation<'_>,
) -> Option<Outcome> {
    match *operation {
        Operation::Lookup { name } => names::try_look_up(on, header, name),
        Operation::GetAttributes { fh } => attributes::try_get(on, header, fh),
        Operation::Open { flags } => data::try_open(on, header, flags),
        Operation::OpenDirectory => listing::try_open(on, header),
        Operation::Read(extent) => data::try_read(on, extent),
        Operation::Write { extent, data, append, .. } => data::try_write(on, extent, data, append),
        Operation::GetXattr { name, .. } => xattrs::try_get(on, header, name),
        Operation::Flush { fh, owner } => {
            locks::flush(on, fh, owner);
            data::try_flush(on, fh)
        }
        Operation::Release { fh, owner } => {
            locks::release(on, fh, owner);
            on.close(fh);
            Some(Ok(Answer::empty()))
        }
        Operation::TestLock(locking) => Some(locks::test(on, &locking)),
        Operation::Lock { locking, waits } => locks::try_lock(on, &locking, waits),
        Operation::Destroy => Some(Ok(Answer::empty())),
        Operation::InputOutputControl => Some(Err(Errno::NO_TERMINAL)),
        // The kernel does without them: it decides about permissions itself.
        Operation::Unknown => Some(Err(Errno::NO_OPERATION)),
        _ => None,
    }
}

/// The outcome of an operation that was tried and waits. The largest futures have boxes of their own: each call moves as
/// many bytes as the largest one of the others takes.
pub(crate) async fn carry_out<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    operation: Operation<'_>,
    message: &[u8],
) -> Outcome {
    match operation {
        Operation::Lookup { name } => names::look_up(on, header, name).await,
        Operation::GetAttributes { fh } => attributes::get(on, header, fh).await,
        Operation::SetAttributes(wanted) => attributes::set(on, header, wanted).await,
        Operation::Space => attributes::space(on, header).await,
        Operation::ReadLink => names::read_link(on, header).await,
        Operation::Symlink { name, target } => names::symlink(on, (header, message), name, target).await,
        Operation::MakeNode { mode, device, name } => names::make_node(on, (header, message), mode, device, name).await,
        Operation::MakeDirectory { mode, name } => names::make_directory(on, (header, message), mode, name).await,
        Operation::Create { flags, mode, name } => names::create(on, (header, message), flags, mode, name).await,
        Operation::MakeUnnamed { flags, mode } => names::make_unnamed(on, (header, message), flags, mode).await,
        Operation::Unlink { name } => names::remove(on, header, name, false).await,
        Operation::RemoveDirectory { name } => names::remove(on, header, name, true).await,
        Operation::Rename { to, flags, name, new_name } => names::rename(on, header, name, (to, new_name), flags).await,
        Operation::Link { target, name } => names::link(on, header, target, name).await,
        Operation::Open { flags } => Box::pin(data::open(on, header, flags)).await,
        Operation::OpenDirectory => listing::open(on, header).await,
        Operation::Read(extent) => Box::pin(data::read(on, extent)).await,
        Operation::Write { extent, data, append, .. } => Box::pin(data::write(on, header, extent, data, append)).await,
        Operation::Copy { from, to, len } => Box::pin(data::copy(on, from, to, len)).await,
        Operation::Allocate { fh, offset, len, mode } => data::allocate(on, fh, (offset, len), mode).await,
        Operation::Seek { fh, offset, whence } => data::seek(on, fh, offset, whence).await,
        Operation::SetXattr { size, flags, rest } => xattrs::set(on, header, size, flags, rest).await,
        Operation::GetXattr { size, name } => xattrs::get(on, header, size, name).await,
        Operation::ListXattrs { size } => xattrs::list(on, header, size).await,
        Operation::RemoveXattr { name } => xattrs::remove(on, header, name).await,
        Operation::Flush { fh, .. } => data::flush(on, fh).await,
        Operation::Lock { locking, .. } => locks::lock(on, &locking).await,
        Operation::Sync { fh, data_only } => data::sync(on, header, fh, data_only).await,
        Operation::SyncDirectory { fh } => data::sync_directory(on, fh).await,
        Operation::List { extent, with_attributes } => {
            Box::pin(listing::list(on, header, extent, with_attributes)).await
        }
        // Those that never wait, and those without a reply.
        _ => Err(Errno::NO_OPERATION),
    }
}
