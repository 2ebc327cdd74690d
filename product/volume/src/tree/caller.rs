//! The user of an operation.
//!
//! Owns: a user of the host with its groups, the bounds on a caller's rights, the memory of the change that it makes.
//! Does not own: the trust in a caller's claim (front ends), a user's rights on an object (`data::permission`, and the
//! host).
//! Invariants: plain values that do not change. Two callers with one number are the same user with the same groups.

use std::sync::Arc;

use crate::tree::persisted_change::{Before, PersistedChange};

/// A user of the host, with the groups that count.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Credentials {
    /// Number of the user.
    pub uid: u32,
    /// The group of new objects.
    pub gid: u32,
    /// Further groups, ascending, each once.
    pub groups: Box<[u32]>,
}

impl Credentials {
    /// Whether the user is in a group.
    pub fn is_in(&self, group: u32) -> bool {
        self.gid == group || self.groups.binary_search(&group).is_ok()
    }

    /// Whether this is root: permissions do not restrict root.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// The user of an operation, and two properties: read-only, and from the front end that listens.
#[derive(Clone, Debug)]
pub struct Caller {
    user: Option<Arc<Credentials>>,
    /// Identifies the caller for remembered rights; 0 is the server.
    number: u64,
    read_only: bool,
    listening: bool,
    change: Option<Arc<dyn PersistedChange>>,
}

impl Caller {
    /// The server itself: only the host restricts its user.
    pub const SERVER: Self = Self { user: None, number: 0, read_only: false, listening: false, change: None };

    /// A user of the host, known by a `number` above 0.
    pub(crate) fn user(user: Arc<Credentials>, number: u64) -> Self {
        Self { user: Some(user), number, read_only: false, listening: false, change: None }
    }

    /// The same caller, unable to change anything.
    #[must_use]
    pub fn reading_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// The same caller, through the front end that listens. The listener is not told of this caller's changes.
    #[must_use]
    pub fn listening(self) -> Self {
        Self { listening: true, ..self }
    }

    /// The same caller, for one change that is kept. An earlier process may have carried it out.
    #[must_use]
    pub fn keeping(self, change: Arc<dyn PersistedChange>) -> Self {
        Self { change: Some(change), ..self }
    }

    /// The memory of the change that it makes.
    pub(crate) fn change(&self) -> Option<&Arc<dyn PersistedChange>> {
        self.change.as_ref()
    }

    /// The part of its change that an earlier process has carried out.
    pub(crate) fn before(&self) -> Before {
        self.change.as_ref().map_or(Before::Nothing, |change| change.before())
    }

    /// Its change of an object's attributes is carried out.
    pub(crate) fn note_done(&self) {
        self.change.iter().for_each(|change| change.note_done(0));
    }

    /// Whether its changes are those of the listening front end.
    pub(crate) fn is_listening(&self) -> bool {
        self.listening
    }

    /// The user whose rights count; none for the server's own.
    pub fn credentials(&self) -> Option<&Arc<Credentials>> {
        self.user.as_ref()
    }

    /// Whether it must not change anything, even if its user may.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}
