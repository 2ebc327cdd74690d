//! The procedures of NFSv3, each from its arguments to its reply, over the volume.
//!
//! Owns: the results of each procedure, on success and on failure.
//! Does not own: decoding (`arguments`), the volume's rules, when a call runs (`connection`), the statuses that a
//! procedure may return (`permitted`).
//! Invariants: a failure carries every available attribute that RFC 1813 allows; nothing is retained between calls. A
//! call that stops has written no result, and goes on with its object. The volume checks its caller's right once more,
//! in memory as a rule: no operation that may wait relies on its front end for that.

mod attributes;
mod data;
mod names;

use std::sync::Arc;

use afflux_volume::{Caller, Inode, Platform, Volume};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};

use crate::operations::{AtOnce, Ended, OnBehalf, Operations, Stop, Task};
use crate::status::NfsStatus;
use crate::v3::arguments::{Arguments, NfsCall};
use crate::v3::permitted::Procedure;
use crate::wire::reply::{Draft, Reply};
use crate::wire::xdr::Field;

/// The object of a call's first handle. A call that waits goes on with it.
pub(crate) enum FirstObject<P: Platform> {
    Found(Arc<Inode<P>>),
    /// It is not in memory.
    Behind(Field),
}

/// A call with all that it needs to wait, and the beginning of its reply.
pub(crate) struct WaitingCall<P: Platform> {
    pub(crate) by: OnBehalf,
    pub(crate) record: Bytes,
    pub(crate) arguments: Arguments,
    pub(crate) object: FirstObject<P>,
    pub(crate) draft: Draft,
}

/// Carries out a call and answers it if that takes no waiting; otherwise returns its object. The calls that matter
/// most are tried. NULL has no results.
pub(crate) fn try_answer<P: Platform>(
    volume: &Volume<P>,
    caller: &Caller,
    record: &[u8],
    NfsCall { handle, arguments }: &NfsCall,
    draft: &mut Draft,
) -> Result<(), FirstObject<P>> {
    let Some(handle) = *handle else { return Ok(()) };
    let Some(object) = volume.try_resolve(&record[handle.range()]) else {
        return Err(FirstObject::Behind(handle));
    };
    let on = AtOnce { volume, caller, record };
    let call = &mut Procedure { object: &object, draft };
    let done = match *arguments {
        Arguments::GetAttributes => attributes::get(&on, call).now_or_never(),
        Arguments::Lookup { name } => names::lookup(&on, call, name).now_or_never(),
        Arguments::Access { wanted } => attributes::access(&on, call, wanted).now_or_never(),
        Arguments::Read(extent) => data::read(&on, call, extent).now_or_never(),
        Arguments::Write { extent, stability, data } => data::write(&on, call, extent, stability, data).now_or_never(),
        _ => None,
    };
    match done {
        None | Some(Err(Stop::WouldWait)) => Err(FirstObject::Found(object)),
        Some(done) => {
            end(draft, done, arguments.absent_attributes(), arguments.procedure());
            Ok(())
        }
    }
}

/// Writes the failure of a call that has no results, and a status that the procedure may return.
#[inline]
fn end(draft: &mut Draft, done: Ended, absent_attributes: usize, procedure: u32) {
    match done {
        Ok(()) => {}
        Err(Stop::Failed(status)) => draft.failed(status, absent_attributes),
        Err(Stop::WouldWait) => unreachable!("a call that may wait has stopped instead"),
    }
    if draft.written() != NfsStatus::Ok {
        draft.restate(draft.written().permitted(procedure));
    }
}

/// Carries out the rest of a call, which may wait.
pub(crate) async fn carry_out<P: Platform>(volume: &Volume<P>, call: WaitingCall<P>) -> Reply {
    let WaitingCall { by: OnBehalf { caller, client }, record, arguments, object, mut draft } = call;
    let on = Task { volume, caller: &caller, client: &client, record: &record };
    let (absent_attributes, procedure) = (arguments.absent_attributes(), arguments.procedure());
    let done = rest(&on, &mut draft, arguments, object).await;
    end(&mut draft, done, absent_attributes, procedure);
    draft.finish()
}

/// READ, WRITE and COMMIT, which have to go on where the host has no memory to give, take none for themselves; others
/// have futures of their own.
async fn rest<P: Platform>(on: &Task<'_, P>, draft: &mut Draft, arguments: Arguments, object: FirstObject<P>) -> Ended {
    let object = match object {
        FirstObject::Found(object) => object,
        FirstObject::Behind(handle) => on.resolve(handle).await?,
    };
    let call = &mut Procedure { object: &object, draft };
    match arguments {
        Arguments::Read(extent) => data::read(on, call, extent).await,
        Arguments::Write { extent, stability, data } => data::write(on, call, extent, stability, data).await,
        Arguments::Commit(extent) => data::commit(on, call, extent).await,
        arguments => other(on, call, arguments).await,
    }
}

fn other<'a, P: Platform>(
    on: &'a Task<'a, P>,
    call: &'a mut Procedure<'a, P>,
    arguments: Arguments,
) -> BoxFuture<'a, Ended> {
    match arguments {
        Arguments::Null | Arguments::Read(_) | Arguments::Write { .. } | Arguments::Commit(_) => {
            unreachable!("carried out before")
        }
        Arguments::GetAttributes => Box::pin(attributes::get(on, call)),
        Arguments::SetAttributes { change, guard } => Box::pin(attributes::set(on, call, change, guard)),
        Arguments::Lookup { name } => Box::pin(names::lookup(on, call, name)),
        Arguments::Access { wanted } => Box::pin(attributes::access(on, call, wanted)),
        Arguments::ReadLink => Box::pin(names::read_link(on, call)),
        Arguments::Create { name, creation } => Box::pin(names::create(on, call, on.bytes(name), creation)),
        Arguments::MakeDirectory { name, change } => Box::pin(names::make_directory(on, call, on.bytes(name), change)),
        Arguments::Symlink { name, change, target } => {
            Box::pin(names::symlink(on, call, on.bytes(name), change, on.bytes(target)))
        }
        Arguments::MakeNode { name, node } => Box::pin(names::make_node(on, call, on.bytes(name), node)),
        Arguments::Remove { name } => Box::pin(names::remove(on, call, on.bytes(name))),
        Arguments::RemoveDirectory { name } => Box::pin(names::remove_directory(on, call, on.bytes(name))),
        Arguments::Rename { name, to } => Box::pin(names::rename(on, call, on.bytes(name), to)),
        Arguments::Link(diropargs) => Box::pin(names::link(on, call, diropargs)),
        Arguments::List(request) => Box::pin(names::list(on, call, request)),
        Arguments::FileSystemSpace => Box::pin(attributes::space(on, call)),
        Arguments::FileSystemInformation => Box::pin(attributes::information(on, call)),
        Arguments::PathLimits => Box::pin(attributes::path_limits(on, call)),
    }
}

#[cfg(test)]
mod tests;
