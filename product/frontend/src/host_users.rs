//! The groups of users and the names of users and groups, as the host knows them.
//!
//! Owns: the seam between front ends, which need a user's groups or the number of a name, and the world, which may wait
//! for a directory service.
//! Does not own: how the host is asked, how long an answer is valid (worlds).
//! Invariants: a search does not wait.

use std::future::Future;
use std::pin::Pin;

/// A user's groups.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserGroups {
    /// The first group. None if the host does not know the user.
    pub gid: Option<u32>,
    /// All further groups.
    pub further: Vec<u32>,
}

/// The kind of an owner of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OwnerKind {
    /// Users have UIDs.
    User,
    /// Groups have GIDs.
    Group,
}

/// The users that the host knows.
pub trait HostUsers: Send + Sync {
    /// The groups of a user, if they are known now. Does not wait.
    fn find(&self, uid: u32) -> Option<UserGroups>;

    /// Asks the host. After that [`HostUsers::find`] has an answer, unless other users took its place.
    fn look_up(&self, uid: u32) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Takes the user for unknown, since the host does not answer.
    fn give_up(&self, uid: u32);

    /// The number of the user or group with this name without a domain. None if the host knows no such name. The
    /// answer may take as long as a directory service does. A caller that waits no more drops the future.
    fn number_of(&self, kind: OwnerKind, name: &str) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>>;

    /// Increases when earlier answers are to be looked up again.
    fn age(&self) -> u64;
}

/// Users whose groups are known without a question. None of them has a name.
impl<F: Fn(u32) -> UserGroups + Send + Sync> HostUsers for F {
    fn find(&self, uid: u32) -> Option<UserGroups> {
        Some(self(uid))
    }

    fn look_up(&self, _uid: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    fn give_up(&self, _uid: u32) {}

    fn number_of(&self, _kind: OwnerKind, _name: &str) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
        Box::pin(std::future::ready(None))
    }

    fn age(&self) -> u64 {
        0
    }
}
