//! The user of an operation, and the change that the user may ask for again after a kill.
//!
//! Owns: a user of the host with its groups, the bounds on a caller's rights; the seam to the memory of a change, the
//! note that a tree makes in it.
//! Does not own: the trust in a caller's claim and that memory (front ends), a user's rights on an object
//! (`data::permission`, and the host), the answer to a repetition (`names::repeated`).
//! Invariants: plain values that do not change. Two callers with one id are the same user with the same groups. A
//! tree notes what the host has done, right after the host's call. So a note is knowledge and no guess: a change
//! without one may have been carried out or not.

use std::fmt;
use std::sync::Arc;

use crate::tree::identity::Identity;

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

/// The delegations that a change does not recall.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Changer {
    /// None: the change recalls all.
    #[default]
    Other,
    /// Those of the client with this number.
    Holder(u64),
    /// All, since the client has the file open for writing: others' delegations were recalled for the open.
    Opener,
}

/// The user of an operation, and two properties: read-only, and from the front end that listens.
#[derive(Clone, Debug)]
pub struct Caller {
    user: Option<Arc<Credentials>>,
    /// Identifies the caller for remembered rights; 0 is the server.
    id: u64,
    read_only: bool,
    listening: bool,
    changer: Changer,
    change: Option<Arc<dyn PersistedChange>>,
}

impl Caller {
    /// The server itself: only the host restricts its user.
    pub const SERVER: Self =
        Self { user: None, id: 0, read_only: false, listening: false, changer: Changer::Other, change: None };

    /// The server itself, for a client that has the file open with the right to the use.
    pub const OPENER: Self = Self { changer: Changer::Opener, ..Self::SERVER };

    /// A user of the host, known by an `id` above 0.
    pub(crate) fn user(user: Arc<Credentials>, id: u64) -> Self {
        Self { user: Some(user), id, ..Self::SERVER }
    }

    /// The same caller, unable to change anything.
    #[must_use]
    pub fn reading_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// The same caller, through the front end that listens. The listener is not notified of this caller's changes.
    #[must_use]
    pub fn listening(self) -> Self {
        Self { listening: true, ..self }
    }

    /// The same caller for the client with this number: a change recalls delegations of other clients alone. An opener
    /// stays one.
    #[must_use]
    pub fn holding(self, client: u64) -> Self {
        let changer = if self.changer == Changer::Opener { Changer::Opener } else { Changer::Holder(client) };
        Self { changer, ..self }
    }

    /// The delegations that its changes do not recall.
    pub fn changer(&self) -> Changer {
        self.changer
    }

    /// The same caller, for one change that is persisted. An earlier process may have carried it out.
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

    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

/// The part of a change that an earlier process has carried out for the same call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// None: no process has begun it.
    Nothing,
    /// The host may have been asked. Nobody knows whether it has done anything.
    Begun {
        /// The value of the beginning: the wall clock, say, in nanoseconds.
        value: u64,
        /// The number of the object at the beginning; zero if unknown.
        object: u64,
    },
    /// The host has carried it out.
    Done {
        /// The number of the object that it made; zero if it made none, or if that is unknown.
        object: u64,
    },
}

/// The memory of a change, which outlives the process.
pub trait PersistedChange: Send + Sync + fmt::Debug {
    /// The part of it that an earlier process has carried out.
    fn before(&self) -> Before;

    /// Notes the end of the host's call, with the number of the new object. The number is zero without one.
    fn note_done(&self, object: u64);
}

/// Notes a change, with the object that it made.
type Noting = dyn Fn(Option<&Identity>) + Send + Sync;

/// Lets a tree note that the host has carried out a change. A tree does so on the thread of the host's call, before
/// anything else that may wait. A tree whose changes end with its process need not.
#[derive(Clone, Default)]
pub struct ChangeNote(Option<Arc<Noting>>);

impl ChangeNote {
    pub(crate) fn new(note: impl Fn(Option<&Identity>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(note)))
    }

    /// The host has made this object.
    pub fn made(&self, object: &Identity) {
        self.0.iter().for_each(|note| note(Some(object)));
    }

    /// The host has changed names of objects that were there.
    pub fn done(&self) {
        self.0.iter().for_each(|note| note(None));
    }
}
