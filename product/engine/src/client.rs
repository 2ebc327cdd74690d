//! Who a call is for, as far as a front end knows.
//!
//! Owns: the name that a front end gives it, its user, whether it pays.
//! Does not own: who is believed (front ends), what is kept of it (`devices::delays`, `devices::purses`).
//! Invariants: two with the same name and user are the same. Who pays does so whatever user it acts for: to act for
//! many users is no way to a larger share.

use std::fmt;
use std::sync::Arc;

/// Somebody for whom files are read and written: the address of an NFS peer and a user there, say.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Client {
    name: Arc<str>,
    user: Option<u32>,
    pays: bool,
}

impl Client {
    /// The one of that name. With the open file it is the payer.
    pub fn named(name: &str) -> Self {
        Self { name: Arc::from(name), user: None, pays: true }
    }

    /// A task of that name: its waits are told as its own, and its files pay as if nobody were known.
    pub fn task(name: &str) -> Self {
        Self { name: Arc::from(name), user: None, pays: false }
    }

    /// The same, acting for a user.
    #[must_use]
    pub fn of_user(&self, user: u32) -> Self {
        Self { name: Arc::clone(&self.name), user: Some(user), pays: self.pays }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the user that it acts for, if it said so.
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// Who of it pays, if it does: the same for all its users.
    pub(crate) fn payer(&self) -> Option<Self> {
        self.pays.then(|| Self { name: Arc::clone(&self.name), user: None, pays: true })
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.user.map_or(Ok(()), |user| write!(f, " uid {user}"))
    }
}
