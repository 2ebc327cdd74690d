//! The client that a call is for, as far as a front end knows.
//!
//! Owns: the front end's name for the client, its user, whether it pays.
//! Does not own: whether the name is believed (front ends), what is recorded of a client (the engine).
//! Invariants: two clients with the same name and user are equal. A client pays regardless of the user it acts for:
//! acting for many users does not give it a larger part.

use std::fmt;
use std::sync::Arc;

/// A client for which files are read and written: the address of an NFS peer and a user there, say.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Client {
    name: Arc<str>,
    user: Option<u32>,
    pays: bool,
}

impl Client {
    /// The client of that name. Together with the open file it is the payer.
    pub fn named(name: &str) -> Self {
        Self { name: Arc::from(name), user: None, pays: true }
    }

    /// A task of that name: its waits are reported as its own, and its files pay as files without a client do.
    pub fn task(name: &str) -> Self {
        Self { name: Arc::from(name), user: None, pays: false }
    }

    /// The same client, acting for a user.
    #[must_use]
    pub fn of_user(&self, user: u32) -> Self {
        Self { name: Arc::clone(&self.name), user: Some(user), pays: self.pays }
    }

    /// Name that the front end gave to the client, such as an address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the user that the client acts for, if it gave one.
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// The payer, the same for all users of the client; `None` if the client does not pay.
    pub fn payer(&self) -> Option<Self> {
        self.pays.then(|| Self { name: Arc::clone(&self.name), user: None, pays: true })
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.user.map_or(Ok(()), |user| write!(f, " uid {user}"))
    }
}
