//! Open files and directories.
//!
//! Owns: the number of each, its object, the client that pays for its reads and writes, and whether a user may open one
//! more.
//! Does not own: the objects (the volume), the rule of users' quotas (`afflux_frontend`).
//! Invariants: an open file holds its object, so all calls by its number go on after the object's last name. The kernel
//! alone closes it, and the open file then releases the object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use afflux_frontend::FairQuotas;
use afflux_volume::{Client, Held, Platform};

use crate::limits::OPEN_FILES_MAX;
use crate::slots::NumberedSlots;

/// The meaning of an open file's number.
pub(crate) enum Opened<P: Platform> {
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
    /// Its program opened it with O_SYNC or O_DSYNC: each call that changes its bytes is durable before the answer.
    pub(crate) is_synchronous: bool,
    /// A program may map it to store bytes. True for a file of an earlier server, where nobody knows.
    pub(crate) may_be_stored: bool,
    /// Bytes that the server has reported as accepted may be lost, and the file's next sync has to report an error.
    pub(crate) owes_error: AtomicBool,
}

impl<P: Platform> Opened<P> {
    /// The node; none of a lost file.
    fn node(&self) -> Option<u64> {
        match self {
            Self::File(file) => Some(file.node),
            Self::Lost => None,
        }
    }

    /// The node, if the file may be mapped to store bytes.
    fn storable_node(&self) -> Option<u64> {
        match self {
            Self::File(file) => file.may_be_stored.then_some(file.node),
            Self::Lost => None,
        }
    }
}

/// An open file with its user.
pub(crate) type OfUser<P> = (u32, Opened<P>);

/// All open files of a mount, by their numbers, with the user that opened each.
pub(crate) struct OpenFiles<P: Platform> {
    files: NumberedSlots<OfUser<P>>,
    /// The quotas count the files for which the server has descriptors.
    quotas: FairQuotas,
    /// The number of open files of each node that may be mapped to store bytes.
    storable: OpenCounts<u64>,
    /// The number of each node's open files by user.
    of_users: OpenCounts<(u64, u32)>,
}

/// Counts of open files by a key. A key without files takes no memory.
#[derive(Default)]
struct OpenCounts<K>(BTreeMap<K, usize>);

impl<K: Ord> OpenCounts<K> {
    fn add(&mut self, key: Option<K>) {
        key.into_iter().for_each(|key| *self.0.entry(key).or_default() += 1);
    }

    fn remove(&mut self, key: Option<K>) {
        let Some((key, count)) = key.and_then(|key| self.0.get_mut(&key).map(|count| (key, count))) else { return };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&key);
        }
    }

    fn has(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }
}

impl<P: Platform> OpenFiles<P> {
    /// No files yet. The server has descriptors for `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self::restored(Vec::new(), most)
    }

    /// The files of an earlier server, as [`NumberedSlots::restored`] takes them.
    pub(crate) fn restored(files: Vec<(u32, Option<OfUser<P>>)>, most: usize) -> Self {
        let mut quotas = FairQuotas::new(most.min(OPEN_FILES_MAX));
        let (mut storable, mut of_users) = (OpenCounts::default(), OpenCounts::default());
        for (user, file) in files.iter().filter_map(|(_, file)| file.as_ref()) {
            quotas.take(*user, 1);
            storable.add(file.storable_node());
            of_users.add(file.node().map(|node| (node, *user)));
        }
        Self { files: NumberedSlots::restored(files, OPEN_FILES_MAX), quotas, storable, of_users }
    }

    /// Whether the user may open one more, if the server has descriptors for so many in addition to those that are open
    /// over any front end. Root has no bound of its own.
    pub(crate) fn may_open(&self, user: u32, left: usize) -> bool {
        user == 0 || self.quotas.may_take_of(user, left)
    }

    /// Adds a file; none if no slot is free.
    pub(crate) fn insert(&mut self, user: u32, file: Opened<P>) -> Option<u64> {
        let (storable, node) = (file.storable_node(), file.node());
        let number = self.files.insert((user, file))?;
        self.quotas.take(user, 1);
        self.storable.add(storable);
        self.of_users.add(node.map(|node| (node, user)));
        Some(number)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Opened<P>> {
        self.files.get(number).map(|(_, file)| file)
    }

    /// Whether the user has opened this node.
    pub(crate) fn has(&self, user: u32, node: u64) -> bool {
        self.of_users.has(&(node, user))
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Opened<P>> {
        let (user, file) = self.files.remove(number)?;
        self.quotas.give_back(user, 1);
        self.storable.remove(file.storable_node());
        self.of_users.remove(file.node().map(|node| (node, user)));
        Some(file)
    }

    /// Whether a mapping may have stored bytes of this node that the kernel has not written back.
    pub(crate) fn may_be_stored(&self, node: u64) -> bool {
        self.storable.has(&node)
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

#[cfg(test)]
mod tests;
