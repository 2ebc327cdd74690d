//! Open files and directories.
//!
//! Owns: the number of each, its object, the client that pays for its reads and writes, and how many a user may open.
//! Does not own: the objects (the volume).
//! Invariants: an open file holds its object, so all calls by its number go on after the object's last name. It is
//! closed by the kernel alone, and lets go of the object then. No user but root opens more files than are left for all
//! others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use afflux_volume::{Client, Held, Platform};

use crate::limits::OPEN_FILES_MAX;
use crate::slots::Slots;

/// The meaning of an open file's number.
pub(crate) enum Opened<P: Platform> {
    /// The file.
    File(Arc<OpenFile<P>>),
    /// A file of an earlier server that had no name any more: it ended with that server.
    Lost,
}

/// An open file.
pub(crate) struct OpenFile<P: Platform> {
    pub(crate) inode: Held<P>,
    /// The node that was opened.
    pub(crate) node: u64,
    /// The process that opened it.
    pub(crate) client: Client,
    /// Bytes that it was told are accepted may be lost, and its next sync has to tell.
    pub(crate) owes_error: AtomicBool,
}

/// An open file with its user.
pub(crate) type OfUser<P> = (u32, Opened<P>);

/// All open files of a mount, by their numbers, with the user that opened each.
pub(crate) struct OpenFiles<P: Platform> {
    files: Slots<OfUser<P>>,
    /// The number of each user that has any.
    of_users: HashMap<u32, usize>,
    /// Files for which the server has descriptors.
    most: usize,
}

impl<P: Platform> OpenFiles<P> {
    /// No files yet. The server has descriptors for `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self::restored(Vec::new(), most)
    }

    /// The files of an earlier server, as [`Slots::restored`] takes them.
    pub(crate) fn restored(files: Vec<(u32, Option<OfUser<P>>)>, most: usize) -> Self {
        let mut of_users = HashMap::new();
        for (user, _) in files.iter().filter_map(|(_, file)| file.as_ref()) {
            *of_users.entry(*user).or_default() += 1;
        }
        Self { files: Slots::restored(files, OPEN_FILES_MAX), of_users, most: most.min(OPEN_FILES_MAX) }
    }

    /// Whether the user may open one more. A user other than root gets at most half of what all others leave, so the
    /// last free files are never one user's.
    pub(crate) fn has_room(&self, user: u32) -> bool {
        let left = self.most.saturating_sub(self.files.len());
        user == 0 || self.of_users.get(&user).copied().unwrap_or_default() < left
    }

    /// Adds a file; none if there is no room at all.
    pub(crate) fn insert(&mut self, user: u32, file: Opened<P>) -> Option<u64> {
        let number = self.files.insert((user, file))?;
        *self.of_users.entry(user).or_default() += 1;
        Some(number)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Opened<P>> {
        self.files.get(number).map(|(_, file)| file)
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Opened<P>> {
        let (user, file) = self.files.remove(number)?;
        if let Entry::Occupied(mut files) = self.of_users.entry(user) {
            *files.get_mut() -= 1;
            if *files.get() == 0 {
                files.remove();
            }
        }
        Some(file)
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}
