//! Changes and opens as the requesting user.
//!
//! The kernel has checked the object as it knew it, and that may be a second old. The host checks the object as it is
//! now, for the requester.
//!
//! Owns: the callers as which a call is tried, one after the other; the requester's rights at an open.
//! Does not own: the changes (`names`, `attributes`, `xattrs`), the checks (the volume), the facts about threads
//! ([`crate::Requesters`]).
//! Invariants: without rights on a directory with the sticky bit, a user removes and moves nothing of others there.
//! Root alone acts as the server from the start. An object or a directory is changed by capabilities only if they count
//! for its present owner.

use std::sync::Arc;

use afflux_volume::{Caller, Inode, Platform, VolumeError};

use crate::mount::{Mount, ThreadRights};
use crate::mount_state::BegunChange;
use crate::request::RequestHeader;

/// The mode bit that restricts removing and moving the names of a directory to their owners.
const STICKY: u32 = 0o1000;

/// Capabilities, as the kernel's bits.
pub(super) mod capability {
    pub(in crate::operations) const CHOWN: u64 = 1 << 0;
    /// All rights on bytes and names.
    pub(in crate::operations) const DAC_OVERRIDE: u64 = 1 << 1;
    /// Reading, and searching directories.
    pub(in crate::operations) const DAC_READ_SEARCH: u64 = 1 << 2;
    /// What an owner may.
    pub(in crate::operations) const FOWNER: u64 = 1 << 3;
}

/// The remaining tries.
#[derive(PartialEq, Eq)]
enum Tries {
    /// With the requester's further groups, which the kernel does not send.
    WithGroups,
    /// With a right of the requester's capabilities, which the kernel has granted.
    ByCapabilities,
    Nothing,
}

/// The next try after a refusal.
enum Next {
    /// With another caller.
    Try,
    /// As the server, if these rights include that.
    IfCapable(ThreadRights),
    End,
}

/// The caller of a change.
pub(super) struct ActingRequester<'a, P: Platform> {
    on: &'a Mount<P>,
    header: &'a RequestHeader,
    caller: Caller,
    /// A group in which the caller is in any case.
    group: Option<u32>,
    /// The change, if a later server may be asked for it.
    change: Option<&'a BegunChange>,
    tries: Tries,
}

fn is_server<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> bool {
    header.uid == 0 || !on.options.acts_as_callers
}

/// Whether the kernel may have checked the requester's rights with an owner or a mode that others have changed since.
pub(super) fn is_doubtful<P: Platform>(on: &Mount<P>, header: &RequestHeader) -> bool {
    !is_server(on, header) && !on.options.sole
}

impl<'a, P: Platform> ActingRequester<'a, P> {
    pub(super) fn of(on: &'a Mount<P>, header: &'a RequestHeader) -> Self {
        Self::in_group(on, header, None)
    }

    /// As [`ActingRequester::of`], with a group for the setgid bit. The kernel has taken the bit from one who is not in
    /// the file's group, and the host would take it from a caller whose groups the host does not know.
    pub(super) fn in_group(on: &'a Mount<P>, header: &'a RequestHeader, group: Option<u32>) -> Self {
        let is_server = is_server(on, header);
        let caller = if is_server { on.own.clone() } else { on.caller_with(header, group.as_slice()) };
        Self {
            on,
            header,
            caller,
            group,
            change: None,
            tries: if is_server { Tries::Nothing } else { Tries::WithGroups },
        }
    }

    /// The same for a change that a later server may be asked for.
    pub(super) fn changing(self, change: &'a BegunChange) -> Self {
        Self { caller: change.of(self.caller), change: Some(change), ..self }
    }

    /// The caller of the next try.
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether the change in these directories is to be tried again, after this result.
    pub(super) async fn check_retry<T>(
        &mut self,
        result: &Result<T, VolumeError>,
        directories: &[&Arc<Inode<P>>],
    ) -> bool {
        match self.next(result) {
            Next::Try => true,
            Next::End => false,
            // Root of a container, for example. A refusal because of the sticky bit is about the object, not about the
            // directory.
            Next::IfCapable(rights) => {
                let is_of_directory = matches!(result, Err(VolumeError::Denied));
                rights.capabilities != 0 && is_of_directory && self.check_open(directories).await
            }
        }
    }

    /// Whether the change of this object is to be tried again, after this result. One of these capabilities gives the
    /// right to it.
    pub(super) async fn check_retry_on<T>(
        &mut self,
        result: &Result<T, VolumeError>,
        object: &Arc<Inode<P>>,
        capabilities: u64,
    ) -> bool {
        match self.next(result) {
            Next::Try => true,
            Next::End => false,
            Next::IfCapable(rights) => {
                let mode = self.mode_within_reach(object).await;
                rights.capabilities & capabilities != 0 && mode.is_some()
            }
        }
    }

    /// Prepares the next try.
    fn next<T>(&mut self, result: &Result<T, VolumeError>) -> Next {
        let is_refused = matches!(result, Err(VolumeError::Denied | VolumeError::NotPermitted));
        if !is_refused || self.tries == Tries::Nothing {
            return Next::End;
        }
        // The thread waits for the answer, so its rights do not change meanwhile.
        let Some(rights) = self.on.rights(self.header) else { return Next::End };
        if self.tries == Tries::WithGroups && !rights.groups.is_empty() {
            self.tries = Tries::ByCapabilities;
            let groups: Vec<u32> = rights.groups.into_iter().chain(self.group).collect();
            self.caller = self.of_change(self.on.caller_with(self.header, &groups));
            return Next::Try;
        }
        self.tries = Tries::Nothing;
        self.caller = self.of_change(self.on.own.clone());
        Next::IfCapable(rights)
    }

    /// A caller of the change.
    fn of_change(&self, caller: Caller) -> Caller {
        match self.change {
            Some(change) => change.of(caller),
            None => caller,
        }
    }

    /// Whether whoever may write the directories may change all their names.
    async fn check_open(&self, directories: &[&Arc<Inode<P>>]) -> bool {
        for directory in directories {
            if self.mode_within_reach(directory).await.is_none_or(|mode| mode & STICKY != 0) {
                return false;
            }
        }
        true
    }

    /// The mode of an object if the requester's capabilities count for its present owner.
    async fn mode_within_reach(&self, object: &Arc<Inode<P>>) -> Option<u32> {
        if is_doubtful(self.on, self.header) {
            self.on.volume.look_again(object).await.ok()?;
        }
        let found = self.on.volume.attributes(object).await.ok()?;
        self.on.is_over(self.header, &found).then_some(found.mode)
    }
}

/// Refuses an open if the requester does not have these rights now: a sum of read 1, write 2, execute 4.
pub(super) async fn check_open<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    inode: &Arc<Inode<P>>,
    wanted: u8,
) -> Result<(), VolumeError> {
    if !is_doubtful(on, header) {
        return Ok(());
    }
    on.volume.look_again(inode).await?;
    let mut acting = ActingRequester::of(on, header);
    loop {
        let (rights, _) = on.volume.access_by(acting.caller(), inode).await?;
        let result = if rights & wanted == wanted { Ok(()) } else { Err(VolumeError::Denied) };
        if !acting.check_retry_on(&result, inode, capability::DAC_OVERRIDE | capability::DAC_READ_SEARCH).await {
            return result;
        }
    }
}
