//! The operations on files.
//!
//! Owns: which operation is carried out where, and which are refused.
//! Does not own: the volume's work, layouts.
//! Invariants: an operation that is tried without a wait asks the host nothing. Until it gives up it has changed
//! nothing, except for the beginning of a WRITE, which is then written again.

mod acting;
mod attributes;
mod data;
mod locks;
mod names;
mod synchronous;
mod xattrs;

use afflux_volume::Platform;

use crate::mount::{Mount, Outcome};
use crate::reply::{Errno, ReplyDraft};
use crate::request::{FuseOperation, RequestHeader};

/// The outcome, if it needs no wait.
pub(crate) fn at_once<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    operation: &FuseOperation<'_>,
) -> Option<Outcome> {
    match *operation {
        FuseOperation::Lookup { name } => names::try_look_up(on, header, name),
        FuseOperation::GetAttributes { fh } => attributes::try_get(on, header, fh),
        FuseOperation::Open { flags } => data::try_open(on, header, flags),
        FuseOperation::OpenDirectory => names::try_open_directory(on, header),
        FuseOperation::Read(extent) => data::try_read(on, extent),
        // One that has to be durable waits.
        FuseOperation::Write { synchronous: true, .. } => None,
        FuseOperation::Write { extent, data, append, .. } => data::try_write(on, extent, data, append),
        FuseOperation::GetXattr { name, .. } => xattrs::try_get(on, header, name),
        FuseOperation::Flush { fh, owner } => {
            locks::flush(on, fh, owner);
            if on.volume.locks().are_on_host() { None } else { data::try_flush(on, fh) }
        }
        FuseOperation::Release { fh, owner } => {
            locks::release(on, fh, owner);
            on.close(fh);
            Some(Ok(ReplyDraft::empty()))
        }
        FuseOperation::TestLock(locking) => locks::try_test(on, &locking),
        FuseOperation::Lock { locking, waits } => locks::try_lock(on, &locking, waits),
        FuseOperation::Destroy => Some(Ok(ReplyDraft::empty())),
        FuseOperation::InputOutputControl => Some(Err(Errno::NO_TERMINAL)),
        // The kernel does without them: it decides about permissions itself.
        FuseOperation::Unknown => Some(Err(Errno::NO_OPERATION)),
        _ => None,
    }
}

/// The outcome of an operation that was tried and waits. The largest futures have boxes of their own: each call moves
/// as many bytes as the largest one of the others takes.
pub(crate) async fn carry_out<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    operation: FuseOperation<'_>,
    message: &[u8],
) -> Outcome {
    match operation {
        FuseOperation::Lookup { name } => names::look_up(on, header, name).await,
        FuseOperation::GetAttributes { fh } => attributes::get(on, header, fh).await,
        FuseOperation::SetAttributes(wanted) => attributes::set(on, header, wanted).await,
        FuseOperation::Space => attributes::space(on, header).await,
        FuseOperation::ReadLink => names::read_link(on, header).await,
        FuseOperation::Symlink { name, target } => names::symlink(on, (header, message), name, target).await,
        FuseOperation::MakeNode { mode, device, name } => {
            names::make_node(on, (header, message), mode, device, name).await
        }
        FuseOperation::MakeDirectory { mode, name } => names::make_directory(on, (header, message), mode, name).await,
        FuseOperation::Create { flags, mode, name } => names::create(on, (header, message), flags, mode, name).await,
        FuseOperation::MakeUnnamed { flags, mode } => names::make_unnamed(on, (header, message), flags, mode).await,
        FuseOperation::Unlink { name } => names::remove(on, header, name, false).await,
        FuseOperation::RemoveDirectory { name } => names::remove(on, header, name, true).await,
        FuseOperation::Rename { to, flags, name, new_name } => {
            names::rename(on, header, name, (to, new_name), flags).await
        }
        FuseOperation::Link { target, name } => names::link(on, header, target, name).await,
        FuseOperation::Open { flags } => Box::pin(data::open(on, header, flags)).await,
        FuseOperation::OpenDirectory => names::open_directory(on, header).await,
        FuseOperation::Read(extent) => Box::pin(data::read(on, extent)).await,
        FuseOperation::Write { extent, data, append, synchronous, is_kernels } => {
            let how = data::WriteHow { append, synchronous, is_kernels };
            Box::pin(data::write(on, header, extent, data, how)).await
        }
        FuseOperation::Copy { from, to, len } => Box::pin(data::copy(on, from, to, len)).await,
        FuseOperation::Allocate { fh, offset, len, mode } => Box::pin(data::allocate(on, fh, offset, len, mode)).await,
        FuseOperation::Seek { fh, offset, whence } => data::seek(on, fh, offset, whence).await,
        FuseOperation::SetXattr { size, flags, rest } => xattrs::set(on, header, size, flags, rest).await,
        FuseOperation::GetXattr { size, name } => xattrs::get(on, header, size, name).await,
        FuseOperation::ListXattrs { size } => xattrs::list(on, header, size).await,
        FuseOperation::RemoveXattr { name } => xattrs::remove(on, header, name).await,
        FuseOperation::Flush { fh, .. } => Box::pin(flush(on, fh)).await,
        FuseOperation::TestLock(locking) => Box::pin(locks::test(on, &locking)).await,
        FuseOperation::Lock { locking, waits } => Box::pin(locks::lock(on, &locking, waits)).await,
        FuseOperation::Sync { fh, data_only } => data::sync(on, header, fh, data_only).await,
        FuseOperation::SyncDirectory { fh } => data::sync_directory(on, fh).await,
        FuseOperation::List { extent, with_attributes } => {
            Box::pin(names::list(on, header, extent, with_attributes)).await
        }
        // Those that never wait, and those without a reply.
        _ => Err(Errno::NO_OPERATION),
    }
}

/// Answers a close once the volume has the file's bytes, and programs of the host see the unlocked ranges.
async fn flush<P: Platform>(on: &Mount<P>, fh: u64) -> Outcome {
    let flushed = match data::try_flush(on, fh) {
        Some(flushed) => flushed,
        None => data::flush(on, fh).await,
    };
    locks::show_unlocks(on, fh).await;
    flushed
}
