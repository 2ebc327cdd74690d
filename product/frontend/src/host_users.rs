//! The groups of users, as the host knows them.
//!
//! Owns: the seam between front ends, which need a user's groups, and the world, which may wait for a directory
//! service.
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

/// The users that the host knows.
pub trait HostUsers: Send + Sync {
    /// The groups of a user, if they are known now. Does not wait.
    fn find(&self, uid: u32) -> Option<UserGroups>;

    /// Asks the host. After that [`HostUsers::find`] has an answer, unless other users took its place.
    fn look_up(&self, uid: u32) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Takes the user for unknown, since the host does not answer.
    fn give_up(&self, uid: u32);

    /// Increases when earlier answers are to be looked up again.
    fn age(&self) -> u64;
}

/// Users whose groups are known without a question.
impl<F: Fn(u32) -> UserGroups + Send + Sync> HostUsers for F {
    fn find(&self, uid: u32) -> Option<UserGroups> {
        Some(self(uid))
    }

    fn look_up(&self, _uid: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    fn give_up(&self, _uid: u32) {}

    fn age(&self) -> u64 {
        0
    }
}
