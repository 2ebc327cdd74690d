//! For whom an operation is carried out.
//!
//! Owns: a user of the host with its groups, and what a caller may do at most.
//! Does not own: who is believed to be whom (front ends), what a user may do with an object (`data::permission`, and
//! the host).
//! Invariants: plain values that do not change. Two callers with one number are the same user with the same groups.

use std::sync::Arc;

/// A user of the host, with the groups that count.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Credentials {
    /// The user.
    pub uid: u32,
    /// The group of what the user makes.
    pub gid: u32,
    /// Further groups, ascending, each once.
    pub groups: Box<[u32]>,
}

impl Credentials {
    /// Whether the user is in a group.
    pub fn is_in(&self, group: u32) -> bool {
        self.gid == group || self.groups.binary_search(&group).is_ok()
    }

    /// Whether permissions hold it back: root's do not.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// For whom an operation is carried out, and whether it may change anything.
#[derive(Clone, Debug)]
pub struct Caller {
    user: Option<Arc<Credentials>>,
    /// By which what was found out for it is known again; 0 is the server.
    number: u64,
    read_only: bool,
}

impl Caller {
    /// The server itself: the host alone says what its user may do.
    pub const SERVER: Self = Self { user: None, number: 0, read_only: false };

    /// A user of the host, known by a `number` above 0.
    pub(crate) fn user(user: Arc<Credentials>, number: u64) -> Self {
        Self { user: Some(user), number, read_only: false }
    }

    /// The same, unable to change anything.
    #[must_use]
    pub fn reading_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Whose rights count; none where it is the server's own user.
    pub fn credentials(&self) -> Option<&Arc<Credentials>> {
        self.user.as_ref()
    }

    /// Whether it must not change anything, whatever its user may do.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}
