//! The procedures of NFSv3, each from its arguments to its reply, over the volume.
//!
//! Owns: the results of each procedure, on success and on failure.
//! Does not own: decoding (`arguments`), the volume's rules, when a call runs (`connection`).
//! Invariants: a failure carries every available attribute that RFC 1813 allows; nothing is kept between calls.

mod attributes;
mod data;
mod listing;
mod names;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use afflux_volume::{Attributes, Caller, Client, Consistency, Inode, Kind, Platform, Volume};

use crate::arguments::{Arguments, Handle};
use crate::reply::{Draft, Reply};
use crate::status::Status;

pub(crate) use attributes::try_access;
pub(crate) use data::{try_get_attributes, try_read, try_write};
pub(crate) use names::try_lookup;

/// A running call; dropping it cancels it.
pub(crate) type Running = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// The originator of a call.
pub(crate) struct OnBehalf {
    /// The user that it is carried out as.
    pub(crate) caller: Caller,
    /// The client that its reads and writes count for.
    pub(crate) client: Client,
}

/// Carries out a call. READ, WRITE and COMMIT allocate nothing, since they must go on when the host has no memory;
/// other procedures have boxed futures.
pub(crate) async fn carry_out<P: Platform>(
    volume: Arc<Volume<P>>,
    by: OnBehalf,
    draft: Draft,
    call: Arguments,
) -> Reply {
    match call {
        Arguments::Read(extent) => data::read(volume, by, draft, extent).await,
        Arguments::Write { extent, stability, data } => data::write(volume, by, draft, extent, stability, data).await,
        Arguments::Commit(extent) => data::commit(volume, by, draft, extent).await,
        call => other(volume, by.caller, draft, call).await,
    }
}

fn other<P: Platform>(volume: Arc<Volume<P>>, caller: Caller, draft: Draft, call: Arguments) -> Running {
    match call {
        Arguments::Read(_) | Arguments::Write { .. } | Arguments::Commit(_) => unreachable!("carried out before"),
        Arguments::Null => Box::pin(std::future::ready(draft.finish())),
        Arguments::GetAttributes { object } => Box::pin(attributes::get(volume, draft, object)),
        Arguments::SetAttributes { object, change, guard } => {
            Box::pin(attributes::set(volume, caller, draft, object, change, guard))
        }
        Arguments::Lookup(place) => Box::pin(names::lookup(volume, caller, draft, place)),
        Arguments::Access { object, wanted } => Box::pin(attributes::access(volume, caller, draft, object, wanted)),
        Arguments::ReadLink { object } => Box::pin(names::read_link(volume, draft, object)),
        Arguments::Create { place, creation } => Box::pin(names::create(volume, caller, draft, place, creation)),
        Arguments::MakeDirectory { place, change } => {
            Box::pin(names::make_directory(volume, caller, draft, place, change))
        }
        Arguments::Symlink { place, change, target } => {
            Box::pin(names::symlink(volume, caller, draft, place, change, target))
        }
        Arguments::MakeNode { place, node } => Box::pin(names::make_node(volume, caller, draft, place, node)),
        Arguments::Remove(place) => Box::pin(names::remove(volume, caller, draft, place)),
        Arguments::RemoveDirectory(place) => Box::pin(names::remove_directory(volume, caller, draft, place)),
        Arguments::Rename { from, to } => Box::pin(names::rename(volume, caller, draft, from, to)),
        Arguments::Link { object, place } => Box::pin(names::link(volume, caller, draft, object, place)),
        Arguments::List(request) => Box::pin(listing::list(volume, caller, draft, request)),
        Arguments::FileSystemSpace { object } => Box::pin(attributes::space(volume, draft, object)),
        Arguments::FileSystemInformation { object } => Box::pin(attributes::information(volume, draft, object)),
        Arguments::PathLimits { object } => Box::pin(attributes::path_limits(volume, draft, object)),
    }
}

/// The object of a handle.
async fn resolve<P: Platform>(volume: &Volume<P>, handle: &Handle) -> Result<Arc<Inode<P>>, Status> {
    if handle.as_bytes().is_empty() {
        return Err(Status::BadHandle);
    }
    match volume.try_resolve(handle.as_bytes()) {
        Some(inode) => Ok(inode),
        None => Ok(volume.resolve(handle.as_bytes()).await?),
    }
}

/// Attributes for a reply that may go without them.
async fn attributes_now<P: Platform>(volume: &Volume<P>, inode: &Arc<Inode<P>>) -> Option<Attributes> {
    match volume.try_attributes(inode) {
        Some(attributes) => Some(attributes),
        None => volume.attributes(inode).await.ok(),
    }
}

/// The consistency data of an operation; if it has none, with the current attributes.
async fn consistency_now<P: Platform>(volume: &Volume<P>, inode: &Arc<Inode<P>>, from: Consistency) -> Consistency {
    match from.after {
        Some(_) => from,
        // A "before" would not match: changes by others until now would lie in between.
        None => Consistency { before: None, after: attributes_now(volume, inode).await },
    }
}

/// Refuses data operations on objects that are not regular files, as Linux servers do.
fn check_regular(kind: Kind) -> Result<(), Status> {
    match kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(Status::IsDirectory),
        _ => Err(Status::Invalid),
    }
}
