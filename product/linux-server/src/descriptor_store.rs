//! Descriptors that the service manager stores for the next process of the service (systemd's
//! `FileDescriptorStoreMax=`).
//!
//! Owns: the descriptors of an earlier process, adding and removing descriptors; whether there is such a store.
//! Does not own: other messages to the manager, the check of the descriptors.
//! Invariants: a taken descriptor is closed on exec. The variables that describe the store leave the environment: in a
//! child, the numbers would mean other files. A descriptor stays in the store until its name is removed.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::{env, fs};

use sd_notify::NotifyState;

/// The most descriptors that the unit may store, if it may store any. systemd before version 254 does not report it.
const DESCRIPTORS_MAX: &str = "FDSTORE";

/// Why nothing can be stored with the service manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoStore {
    /// No service manager has started this process.
    #[error("this server is not run by systemd (NOTIFY_SOCKET is not set)")]
    NoManager,
    /// The unit may store fewer descriptors than are needed.
    #[error("the unit may store {allowed} descriptors, and the server needs {needed}: FileDescriptorStoreMax=80")]
    TooFew {
        /// The unit's limit.
        allowed: u64,
        /// The server's need.
        needed: u64,
    },
}

/// The store, with the descriptors inherited from an earlier process.
#[derive(Default)]
pub struct DescriptorStore {
    inherited: Vec<(String, OwnedFd)>,
    allowed: Option<u64>,
}

impl DescriptorStore {
    /// Takes the descriptors of an earlier process. Call it once, before the first thread starts. Later calls and calls
    /// beside other threads find nothing. An environment that contradicts itself counts as an empty store.
    pub fn of_manager() -> Self {
        if !fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1) {
            return Self::default();
        }
        let allowed = env::var(DESCRIPTORS_MAX).ok().and_then(|text| text.parse().ok());
        // SAFETY: no other thread reads the environment, since there is none.
        unsafe { env::remove_var(DESCRIPTORS_MAX) };
        // SAFETY: as above.
        let passed = unsafe { sd_notify::listen_fds_with_names_and_unset_env() };
        // SAFETY: the manager has opened these descriptors for this process. The variables are gone, so nobody else
        // takes them.
        let owned = |(number, name)| (name, unsafe { OwnedFd::from_raw_fd(number) });
        Self { inherited: passed.into_iter().flatten().map(owned).collect(), allowed }
    }

    /// A store with these descriptors of an earlier process.
    #[cfg(test)]
    pub(crate) fn with(inherited: Vec<(String, OwnedFd)>) -> Self {
        Self { inherited, allowed: None }
    }

    /// Fails unless the manager takes so many descriptors, as far as it reports.
    ///
    /// # Errors
    /// There is no manager, or its limit is lower.
    pub fn check_capacity(&self, needed: u64) -> Result<(), NoStore> {
        if env::var_os("NOTIFY_SOCKET").is_none_or(|socket| socket.is_empty()) {
            return Err(NoStore::NoManager);
        }
        match self.allowed {
            Some(allowed) if allowed < needed => Err(NoStore::TooFew { allowed, needed }),
            _ => Ok(()),
        }
    }

    /// Takes the descriptors with this name out of the inherited ones. The manager still has them.
    pub fn take(&mut self, name: &str) -> Vec<OwnedFd> {
        self.inherited.extract_if(.., |(of, _)| of == name).map(|(_, descriptor)| descriptor).collect()
    }

    /// Takes the descriptors with such a beginning of their names, as [`Self::take`].
    pub fn take_beginning(&mut self, beginning: &str) -> Vec<(String, OwnedFd)> {
        self.inherited.extract_if(.., |(of, _)| of.starts_with(beginning)).collect()
    }

    /// How many descriptors the manager takes beside so many others, but `at_most` so many. The same if it does not
    /// say.
    pub fn capacity_beside(&self, others: u64, at_most: usize) -> usize {
        let capacity = |allowed: u64| usize::try_from(allowed.saturating_sub(others)).unwrap_or(at_most);
        self.allowed.map_or(at_most, |allowed| capacity(allowed).min(at_most))
    }

    /// Leaves a descriptor with the manager. One that it has already is not stored twice.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn put(name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        // The manager would drop a descriptor that shows a hang-up.
        let states = [NotifyState::FdStore, NotifyState::FdName(name), NotifyState::Custom("FDPOLL=0")];
        sd_notify::notify_with_fds(&states, &[descriptor])
    }

    /// Has the manager close its descriptors with this name.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn remove(name: &str) -> io::Result<()> {
        sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)])
    }
}
