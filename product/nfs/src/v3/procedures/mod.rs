//! The procedures of NFSv3, each from its arguments to its reply, over the volume.
//!
//! Owns: the results of each procedure, on success and on failure.
//! Does not own: decoding (`arguments`), the volume's rules, when a call runs (`connection`), the statuses that a
//! procedure may return (`permitted`).
//! Invariants: a failure carries every available attribute that RFC 1813 allows; nothing is retained between calls.

mod attributes;
mod data;
mod names;

use afflux_volume::{Caller, Platform, Volume};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};

use crate::operations::{AtOnce, Ended, OnBehalf, Stop, Task};
use crate::status::NfsStatus;
use crate::v3::arguments::Arguments;
use crate::wire::batch::Batch;
use crate::wire::reply::{Draft, Reply};

/// A call with all that it needs to wait, and the beginning of its reply.
pub(crate) struct WaitingCall {
    pub(crate) by: OnBehalf,
    pub(crate) record: Bytes,
    pub(crate) arguments: Arguments,
    pub(crate) draft: Draft,
}

/// Carries out a call and answers it into `batch` if that takes no waiting; otherwise does nothing. The calls that
/// matter most are tried.
pub(crate) fn try_answer<P: Platform>(
    volume: &Volume<P>,
    caller: &Caller,
    xid: u32,
    record: &[u8],
    arguments: &Arguments,
    batch: &mut Batch,
) -> Option<NfsStatus> {
    let on = AtOnce { volume, caller, record };
    let mut draft = batch.draft(xid);
    let done = match *arguments {
        Arguments::GetAttributes { object } => attributes::get(&on, &mut draft, object).now_or_never(),
        Arguments::Lookup(diropargs) => names::lookup(&on, &mut draft, diropargs).now_or_never(),
        Arguments::Access { object, wanted } => attributes::access(&on, &mut draft, object, wanted).now_or_never(),
        Arguments::Read(extent) => data::read(&on, &mut draft, extent).now_or_never(),
        Arguments::Write { extent, stability, data } => {
            data::write(&on, &mut draft, extent, stability, data).now_or_never()
        }
        _ => None,
    };
    match done {
        Some(Ok(())) => {}
        Some(Err(Stop::Failed(status))) => draft.failed(status, arguments.absent_attributes()),
        Some(Err(Stop::WouldWait)) | None => {
            batch.give_up(draft);
            return None;
        }
    }
    if draft.written() != NfsStatus::Ok {
        draft.restate(draft.written().permitted(arguments.procedure()));
    }
    Some(batch.end(draft))
}

/// Carries out a call that may wait. READ, WRITE and COMMIT, which have to go on where the host has no memory to give,
/// take none for themselves; others have futures of their own.
pub(crate) async fn carry_out<P: Platform>(volume: &Volume<P>, call: WaitingCall) -> Reply {
    let WaitingCall { by: OnBehalf { caller, client }, record, arguments, mut draft } = call;
    let on = Task { volume, caller: &caller, client: &client, record: &record };
    let (absent_attributes, procedure) = (arguments.absent_attributes(), arguments.procedure());
    let done = match arguments {
        Arguments::Read(extent) => data::read(&on, &mut draft, extent).await,
        Arguments::Write { extent, stability, data } => data::write(&on, &mut draft, extent, stability, data).await,
        Arguments::Commit(extent) => data::commit(&on, &mut draft, extent).await,
        call => other(&on, &mut draft, call).await,
    };
    match done {
        Ok(()) => {}
        Err(Stop::Failed(status)) => draft.failed(status, absent_attributes),
        Err(Stop::WouldWait) => unreachable!("a call that may wait has stopped instead"),
    }
    if draft.written() != NfsStatus::Ok {
        draft.restate(draft.written().permitted(procedure));
    }
    draft.finish()
}

fn other<'a, P: Platform>(on: &'a Task<'a, P>, draft: &'a mut Draft, call: Arguments) -> BoxFuture<'a, Ended> {
    match call {
        Arguments::Read(_) | Arguments::Write { .. } | Arguments::Commit(_) => unreachable!("carried out before"),
        Arguments::Null => Box::pin(std::future::ready(Ok(()))),
        Arguments::GetAttributes { object } => Box::pin(attributes::get(on, draft, object)),
        Arguments::SetAttributes { object, change, guard } => {
            Box::pin(attributes::set(on, draft, object, change, guard))
        }
        Arguments::Lookup(diropargs) => Box::pin(names::lookup(on, draft, diropargs)),
        Arguments::Access { object, wanted } => Box::pin(attributes::access(on, draft, object, wanted)),
        Arguments::ReadLink { object } => Box::pin(names::read_link(on, draft, object)),
        Arguments::Create { diropargs, creation } => Box::pin(names::create(on, draft, diropargs, creation)),
        Arguments::MakeDirectory { diropargs, change } => Box::pin(names::make_directory(on, draft, diropargs, change)),
        Arguments::Symlink { diropargs, change, target } => {
            Box::pin(names::symlink(on, draft, diropargs, change, target))
        }
        Arguments::MakeNode { diropargs, node } => Box::pin(names::make_node(on, draft, diropargs, node)),
        Arguments::Remove(diropargs) => Box::pin(names::remove(on, draft, diropargs)),
        Arguments::RemoveDirectory(diropargs) => Box::pin(names::remove_directory(on, draft, diropargs)),
        Arguments::Rename { from, to } => Box::pin(names::rename(on, draft, from, to)),
        Arguments::Link { object, diropargs } => Box::pin(names::link(on, draft, object, diropargs)),
        Arguments::List(request) => Box::pin(names::list(on, draft, request)),
        Arguments::FileSystemSpace { object } => Box::pin(attributes::space(on, draft, object)),
        Arguments::FileSystemInformation { object } => Box::pin(attributes::information(on, draft, object)),
        Arguments::PathLimits { object } => Box::pin(attributes::path_limits(on, draft, object)),
    }
}
