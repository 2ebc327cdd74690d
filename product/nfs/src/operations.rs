//! The volume's operations for one call of any version, with waiting or without.
//!
//! Owns: the form in which each operation is tried without a wait; the bits of ACCESS, and which of them follow from a
//! user's rights.
//! Does not own: the operations and the rights (the volume), their use (the procedures).
//! Invariants: a call that must not wait asks the host nothing, and stops where the operation would. Until then it has
//! changed nothing except the beginning of a WRITE, which the call writes again when it may wait. A right is reported
//! only where it applies to the kind of object.

use std::future::Future;
use std::sync::Arc;

use afflux_volume::{
    Attributes, Caller, Client, Consistency, Inode, Kind, NAME_BYTES_MAX, Outcome, Platform, ReadResult, Use, Volume,
};

use crate::status::NfsStatus;
use crate::wire::xdr::Field;

/// The caller of a call that waits.
pub(crate) struct OnBehalf {
    /// The user that it is carried out as.
    pub(crate) caller: Caller,
    /// The client that its reads and writes count for.
    pub(crate) client: Client,
}

/// When the data of a WRITE must be durable; in the order of strength and with the wire's numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stability {
    Unstable = 0,
    DataSync = 1,
    FileSync = 2,
}

impl Stability {
    /// The one with this number on the wire.
    pub(crate) fn of(number: u32) -> Option<Self> {
        [Self::Unstable, Self::DataSync, Self::FileSync].into_iter().find(|it| *it as u32 == number)
    }
}

/// Why a procedure ends without results.
pub(crate) enum Stop {
    Failed(NfsStatus),
    WouldWait,
}

/// The wall clock, as the beginning of a call is noted.
pub(crate) fn wall_ns<P: Platform>(volume: &Volume<P>) -> u64 {
    u64::try_from(volume.engine().platform().wall_clock().0).unwrap_or_default()
}

/// The result of an operation or a procedure.
pub(crate) type Ended<T = ()> = Result<T, Stop>;

impl<S: Into<NfsStatus>> From<S> for Stop {
    fn from(status: S) -> Self {
        Self::Failed(status.into())
    }
}

/// The volume's operations for one call.
pub(crate) trait Operations<P: Platform>: Sync {
    fn volume(&self) -> &Volume<P>;

    /// The user that it is carried out as.
    fn caller(&self) -> &Caller;

    /// The whole call.
    fn record(&self) -> &[u8];

    /// The operations of a call that may wait; an error for one that must not.
    fn task(&self) -> Result<&Task<'_, P>, Stop>;

    /// The same operations by the server itself, for a user whose rights were asked before.
    fn as_server(&self) -> Self
    where
        Self: Sized;

    /// The bytes of a field of the call.
    fn bytes(&self, field: Field) -> &[u8];

    /// The object of a handle that is not in memory.
    fn resolve(&self, handle: Field) -> impl Future<Output = Ended<Arc<Inode<P>>>> + Send;

    fn attributes(&self, inode: &Arc<Inode<P>>) -> impl Future<Output = Ended<Attributes>> + Send;

    /// Refuses a use without the right to it.
    fn permit(&self, inode: &Arc<Inode<P>>, wanted: Use) -> impl Future<Output = Ended> + Send;

    /// The caller's rights, and the attributes.
    fn access(&self, inode: &Arc<Inode<P>>) -> impl Future<Output = Ended<(u8, Attributes)>> + Send;

    /// The object of a name, and its attributes.
    fn lookup(
        &self,
        directory: &Arc<Inode<P>>,
        name: Field,
    ) -> impl Future<Output = Ended<(Arc<Inode<P>>, Attributes)>> + Send;

    /// Reads `count` bytes from `offset`, at least one.
    fn read(&self, inode: &Arc<Inode<P>>, offset: u64, count: u32) -> impl Future<Output = Ended<ReadResult>> + Send;

    /// Writes `data`, at least a byte, as durably as wanted.
    fn write(
        &self,
        inode: &Arc<Inode<P>>,
        offset: u64,
        data: &[u8],
        stability: Stability,
    ) -> impl Future<Output = Ended<(NfsStatus, Consistency)>> + Send;

    /// Makes bytes durable.
    fn commit(&self, inode: &Arc<Inode<P>>, offset: u64, len: u64) -> impl Future<Output = Ended> + Send;
}

/// The server as the user of its own operations, for a client with an open.
static OPENER: Caller = Caller::OPENER;

/// Those of a call that must not wait.
pub(crate) struct AtOnce<'a, P: Platform> {
    pub(crate) volume: &'a Volume<P>,
    pub(crate) caller: &'a Caller,
    pub(crate) record: &'a [u8],
}

impl<P: Platform> AtOnce<'_, P> {
    fn check_allowed(&self, inode: &Arc<Inode<P>>, wanted: Use) -> Ended {
        if self.volume.allows(inode, self.caller, wanted) == Some(true) { Ok(()) } else { Err(Stop::WouldWait) }
    }
}

impl<P: Platform> Operations<P> for AtOnce<'_, P> {
    fn volume(&self) -> &Volume<P> {
        self.volume
    }

    fn caller(&self) -> &Caller {
        self.caller
    }

    fn record(&self) -> &[u8] {
        self.record
    }

    fn task(&self) -> Result<&Task<'_, P>, Stop> {
        Err(Stop::WouldWait)
    }

    fn as_server(&self) -> Self {
        Self { caller: &OPENER, ..*self }
    }

    fn bytes(&self, field: Field) -> &[u8] {
        &self.record[field.range()]
    }

    async fn resolve(&self, _: Field) -> Ended<Arc<Inode<P>>> {
        Err(Stop::WouldWait)
    }

    async fn attributes(&self, inode: &Arc<Inode<P>>) -> Ended<Attributes> {
        self.volume.try_attributes(inode).ok_or(Stop::WouldWait)
    }

    async fn permit(&self, inode: &Arc<Inode<P>>, wanted: Use) -> Ended {
        self.check_allowed(inode, wanted)
    }

    async fn access(&self, inode: &Arc<Inode<P>>) -> Ended<(u8, Attributes)> {
        self.volume.try_access(inode, self.caller).ok_or(Stop::WouldWait)
    }

    async fn lookup(&self, directory: &Arc<Inode<P>>, name: Field) -> Ended<(Arc<Inode<P>>, Attributes)> {
        self.check_allowed(directory, Use::Search)?;
        let name = self.bytes(name);
        let found = if name.len() <= NAME_BYTES_MAX { self.volume.try_lookup(directory, name) } else { None };
        found.ok_or(Stop::WouldWait)
    }

    async fn read(&self, inode: &Arc<Inode<P>>, offset: u64, count: u32) -> Ended<ReadResult> {
        self.check_allowed(inode, Use::Read)?;
        self.volume.try_read(inode, offset, count).ok_or(Stop::WouldWait)
    }

    async fn write(
        &self,
        inode: &Arc<Inode<P>>,
        offset: u64,
        data: &[u8],
        stability: Stability,
    ) -> Ended<(NfsStatus, Consistency)> {
        self.check_allowed(inode, Use::Write)?;
        if stability != Stability::Unstable {
            return Err(Stop::WouldWait);
        }
        Ok((NfsStatus::Ok, self.volume.try_write(self.caller, inode, offset, data).ok_or(Stop::WouldWait)?))
    }

    async fn commit(&self, _: &Arc<Inode<P>>, _: u64, _: u64) -> Ended {
        Err(Stop::WouldWait)
    }
}

/// The operations of a call that may wait. It was tried without waiting, so nothing is tried again.
pub(crate) struct Task<'a, P: Platform> {
    pub(crate) volume: &'a Volume<P>,
    pub(crate) caller: &'a Caller,
    /// The client whose reads and writes these are.
    pub(crate) client: &'a Client,
    pub(crate) record: &'a [u8],
}

impl<P: Platform> Task<'_, P> {
    /// The same operations once more.
    pub(crate) fn same(&self) -> Self {
        Self { ..*self }
    }
}

impl<P: Platform> Operations<P> for Task<'_, P> {
    fn volume(&self) -> &Volume<P> {
        self.volume
    }

    fn caller(&self) -> &Caller {
        self.caller
    }

    fn record(&self) -> &[u8] {
        self.record
    }

    fn task(&self) -> Result<&Task<'_, P>, Stop> {
        Ok(self)
    }

    fn as_server(&self) -> Self {
        Self { caller: &OPENER, ..*self }
    }

    fn bytes(&self, field: Field) -> &[u8] {
        &self.record[field.range()]
    }

    async fn resolve(&self, handle: Field) -> Ended<Arc<Inode<P>>> {
        Ok(self.volume.resolve(self.bytes(handle)).await?)
    }

    async fn attributes(&self, inode: &Arc<Inode<P>>) -> Ended<Attributes> {
        Ok(self.volume.attributes(inode).await?)
    }

    async fn permit(&self, inode: &Arc<Inode<P>>, wanted: Use) -> Ended {
        Ok(self.volume.permit(inode, self.caller, wanted).await?)
    }

    async fn access(&self, inode: &Arc<Inode<P>>) -> Ended<(u8, Attributes)> {
        Ok(self.volume.access_by(self.caller, inode).await?)
    }

    async fn lookup(&self, directory: &Arc<Inode<P>>, name: Field) -> Ended<(Arc<Inode<P>>, Attributes)> {
        Ok(self.volume.lookup_by(self.caller, directory, self.bytes(name)).await?)
    }

    async fn read(&self, inode: &Arc<Inode<P>>, offset: u64, count: u32) -> Ended<ReadResult> {
        Ok(self.volume.read_by(self.caller, Some(self.client), inode, offset, count).await?)
    }

    async fn write(
        &self,
        inode: &Arc<Inode<P>>,
        offset: u64,
        data: &[u8],
        stability: Stability,
    ) -> Ended<(NfsStatus, Consistency)> {
        let client = Some(self.client);
        // A file that is removed meanwhile is synced all the same.
        let held = (stability != Stability::Unstable).then(|| self.volume.hold(inode)).transpose();
        let _held = match held {
            Ok(held) => held,
            Err(error) => return Ok((error.into(), Consistency::default())),
        };
        // The consistency data are from the moment of the write. Other callers may write while it is made durable. A
        // client that found such a change between its own before and after would not notice it.
        let written = self.volume.write_by(self.caller, client, inode, offset, data).await;
        let Outcome { mut result, consistency } = written;
        if result.is_ok() && stability != Stability::Unstable {
            result = self.volume.sync_for(client, inode, offset, data.len() as u64).await.result;
        }
        Ok((result.into(), consistency))
    }

    async fn commit(&self, inode: &Arc<Inode<P>>, offset: u64, len: u64) -> Ended {
        Ok(self.volume.commit_by(self.caller, Some(self.client), inode, offset, len).await.result?)
    }
}

/// Attributes for a reply that may go without them.
pub(crate) async fn attributes_if_any<P: Platform>(
    on: &impl Operations<P>,
    inode: &Arc<Inode<P>>,
) -> Ended<Option<Attributes>> {
    match on.attributes(inode).await {
        Err(Stop::Failed(_)) => Ok(None),
        attributes => attributes.map(Some),
    }
}

/// The consistency data of an operation, its attributes asked for now if it brought none.
pub(crate) async fn consistency_now<P: Platform>(
    on: &impl Operations<P>,
    inode: &Arc<Inode<P>>,
    from: Consistency,
) -> Ended<Consistency> {
    match from.after {
        Some(_) => Ok(from),
        // A before would hide the changes of other callers since then.
        None => Ok(Consistency { before: None, after: attributes_if_any(on, inode).await? }),
    }
}

/// The right to read, in the volume's answer about a user's rights.
pub(crate) const READ: u8 = 1;
/// The right to write.
pub(crate) const WRITE: u8 = 2;
/// The right to execute, or to search a directory.
pub(crate) const EXECUTE: u8 = 4;

/// The bits of ACCESS (RFC 1813, section 3.3.4).
mod bits {
    pub(super) const READ: u32 = 0x01;
    pub(super) const LOOKUP: u32 = 0x02;
    pub(super) const MODIFY: u32 = 0x04;
    pub(super) const EXTEND: u32 = 0x08;
    pub(super) const DELETE: u32 = 0x10;
    pub(super) const EXECUTE: u32 = 0x20;
    /// Of extended attributes (RFC 8276, section 8.5): to read one, to change one, to list all.
    pub(super) const XATTR_READ: u32 = 0x40;
    pub(super) const XATTR_WRITE: u32 = 0x80;
    pub(super) const XATTR_LIST: u32 = 0x100;
}

/// The ACCESS bits that follow from the permissions `granted` (read 1, write 2, execute or search 4) on an object.
pub(crate) fn allowed(kind: Kind, granted: u8) -> u32 {
    let (read, write, execute) = (granted & READ != 0, granted & WRITE != 0, granted & EXECUTE != 0);
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

/// The ACCESS bits about a user's extended attributes.
pub(crate) fn allowed_of_xattrs(granted: u8) -> u32 {
    let of_reader = if granted & READ != 0 { bits::XATTR_READ | bits::XATTR_LIST } else { 0 };
    of_reader | if granted & WRITE != 0 { bits::XATTR_WRITE } else { 0 }
}

#[cfg(test)]
mod tests;
