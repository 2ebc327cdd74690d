//! Open files and directories without a name, of which the service manager stores a descriptor for the next server.
//!
//! Owns: their names in the manager's store, the check of an earlier server's descriptors.
//! Does not own: which files these are (the volume), the store, the slots in the store (`unnamed_slots`), opening the
//! files again (`identity`).
//! Invariants: a descriptor only keeps its object alive: the next server opens the object by its handle. So a wrong
//! descriptor shows nobody another object. The manager drops a descriptor when its object has a name again, or has
//! ended.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use afflux_volume::{Identity, Kind, VolumeError};
use rustix::fs::OFlags;

use super::node::HostNode;
use super::unnamed_slots::{StoredUnnamed, UnnamedFiles, UnstoredFile};
use super::{Core, HostTree, calls};
use crate::descriptor_store::DescriptorStore;

/// Most such files.
pub const UNNAMED_FILES_MAX: usize = 64;

/// The beginning of their names in the store.
const IN_STORE: &str = "unnamed-";

/// The name of a file's descriptor in the store.
fn name_in_store(identity: &Identity) -> String {
    let mut name = format!("{IN_STORE}{:x}-{}-{}-", identity.fsid(), identity.form(), identity.kind());
    for byte in identity.bytes() {
        // A string takes all that is written to it.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

impl Core {
    /// Has the manager store a descriptor of a file or a directory. Waits while the manager's socket has no capacity
    /// for a message.
    pub(super) fn keep_unnamed(&self, node: &HostNode) -> Result<(), VolumeError> {
        let Some(files) = self.unnamed.get() else { return Err(VolumeError::NotSupported) };
        let mut stored = node.stored();
        if stored.is_some() {
            return Ok(());
        }
        let put = self.stored(files, node);
        if let Err(error) = &put {
            files.tell(match error {
                VolumeError::NoSpace => UnstoredFile::TooMany { most: files.most },
                error => UnstoredFile::Failed(error.to_string()),
            });
        }
        *stored = Some(put?);
        Ok(())
    }

    fn stored(&self, files: &Arc<UnnamedFiles>, node: &HostNode) -> Result<StoredUnnamed, VolumeError> {
        let name = name_in_store(&self.identify(node.fd())?.0);
        let (slot, is_inherited) = files.slot(name).ok_or(VolumeError::NoSpace)?;
        if !is_inherited {
            // The manager takes no descriptor that only names its object.
            let opened = match node.kind() {
                Kind::Directory => calls::open_directory(node.fd())?,
                _ => self.reopen(node, OFlags::RDONLY)?,
            };
            DescriptorStore::put(&slot.name, opened.as_fd()).map_err(|error| calls::io_error(&error))?;
        }
        Ok(slot)
    }

    /// Whether the manager stores a file, or has stored it for this server.
    pub(super) fn has_stored_unnamed(&self, identity: &Identity) -> bool {
        self.unnamed.get().is_some_and(|files| files.has(&name_in_store(identity)))
    }

    /// Whether a descriptor of an earlier server is known to be of another object than the one in its name.
    fn is_foreign(&self, name: &str, descriptor: &OwnedFd) -> bool {
        match self.identify(descriptor.as_fd()) {
            Ok((identity, stat)) => {
                !matches!(stat.kind, Kind::Regular | Kind::Directory) || name_in_store(&identity) != name
            }
            // The object is looked at again when it is opened.
            Err(_) => false,
        }
    }
}

impl HostTree {
    /// Takes the inherited descriptors of files without a name. The manager still has them, also after a start that
    /// fails. Returns how many do not fit their names; these are dropped.
    ///
    /// Has the manager store a descriptor of each open file that loses its last name from now on, up to `most`. `told`
    /// is called with the first file that is not stored. Call it once.
    pub fn keep_unnamed_files(
        &self,
        store: &mut DescriptorStore,
        most: usize,
        told: impl FnOnce(UnstoredFile) + Send + 'static,
    ) -> usize {
        let mut foreign = 0;
        let mut left = BTreeSet::new();
        for (name, descriptor) in store.take_beginning(IN_STORE) {
            if self.core.is_foreign(&name, &descriptor) {
                foreign += 1;
                // If the manager cannot be notified, it has one descriptor too many.
                let _ = DescriptorStore::remove(&name);
            } else {
                left.insert(name);
            }
        }
        let _ = self.core.unnamed.set(UnnamedFiles::new(most, left, told));
        foreign
    }

    /// Has the manager drop the files of an earlier server that nobody has open. Call it once all open files are back.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn drop_unnamed_inherited(&self) -> io::Result<()> {
        let Some(files) = self.core.unnamed.get() else { return Ok(()) };
        files.take_inherited().iter().try_for_each(|name| DescriptorStore::remove(name))
    }

    /// Has the manager drop all such files and store no further ones. No later server will go on with them.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn end_unnamed(&self) -> io::Result<()> {
        let Some(files) = self.core.unnamed.get() else { return Ok(()) };
        files.end().iter().try_for_each(|name| DescriptorStore::remove(name))
    }

    /// Takes the descriptors of such files out of the store of a server whose settings store none. Returns how many
    /// there are.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn drop_unnamed_stored(store: &mut DescriptorStore) -> io::Result<usize> {
        let left = store.take_beginning(IN_STORE);
        left.iter().try_for_each(|(name, _)| DescriptorStore::remove(name))?;
        Ok(left.len())
    }
}
