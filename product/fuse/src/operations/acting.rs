//! Changes of names as the requesting user.
//!
//! The kernel has checked the object that it knew for a name, and that may be a second old. The host checks the object that
//! has the name now, for the requester.
//!
//! Owns: the callers as which a change is tried, one after the other.
//! Does not own: the changes (`names`), the checks (the volume), the facts about threads ([`crate::Requesters`]).
//! Invariants: without rights on a directory with the sticky bit, a user removes and moves nothing of others there. Root
//! alone acts as the server from the start.

use std::sync::Arc;

use afflux_volume::{Caller, Inode, Platform, VolumeError};

use crate::mount::Mount;
use crate::request::Header;

/// The mode bit that keeps the names of a directory from all but their owners.
const STICKY: u32 = 0o1000;

/// The tries that are left.
#[derive(PartialEq, Eq)]
enum Left {
    /// With the requester's further groups, which the kernel does not send.
    WithGroups,
    /// With a right of the requester's capabilities, which the kernel has granted on the directory.
    ByCapabilities,
    Nothing,
}

/// The caller of a change of names.
pub(super) struct Acting<'a, P: Platform> {
    on: &'a Mount<P>,
    header: &'a Header,
    caller: Caller,
    left: Left,
}

impl<'a, P: Platform> Acting<'a, P> {
    pub(super) fn of(on: &'a Mount<P>, header: &'a Header) -> Self {
        let is_server = header.uid == 0 || !on.options.acts_as_callers;
        let caller = if is_server { on.own.clone() } else { on.caller_with(header, &[]) };
        Self { on, header, caller, left: if is_server { Left::Nothing } else { Left::WithGroups } }
    }

    /// The caller of the next try.
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether the change in these directories is to be tried again, after this result.
    pub(super) async fn tries_again<T>(
        &mut self,
        result: &Result<T, VolumeError>,
        directories: &[&Arc<Inode<P>>],
    ) -> bool {
        let is_refused = matches!(result, Err(VolumeError::Denied | VolumeError::NotPermitted));
        if !is_refused || self.left == Left::Nothing {
            return false;
        }
        // The thread waits for the answer, so it keeps its rights meanwhile.
        let Some(rights) = self.on.rights(self.header) else { return false };
        if self.left == Left::WithGroups && !rights.groups.is_empty() {
            self.left = Left::ByCapabilities;
            self.caller = self.on.caller_with(self.header, &rights.groups);
            return true;
        }
        // Root of a container, for example. A refusal by the sticky bit is about the object, not about the directory.
        self.left = Left::Nothing;
        self.caller = self.on.own.clone();
        rights.has_capabilities && matches!(result, Err(VolumeError::Denied)) && self.are_open(directories).await
    }

    /// Whether whoever may write the directories may change all their names.
    async fn are_open(&self, directories: &[&Arc<Inode<P>>]) -> bool {
        for directory in directories {
            if self.on.volume.attributes(directory).await.map_or(true, |found| found.mode & STICKY != 0) {
                return false;
            }
        }
        true
    }
}
