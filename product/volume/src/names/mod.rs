//! Names: looking them up, listing them, changing them.
//!
//! Owns: the calls about entries of a directory; here lookups, and the resolution of a mount path to its directory.
//! Does not own: recent results of lookups (`objects::directory_cache`), the objects of entries (`handles`, `objects`),
//! durability (`data::sync`).
//! Invariants: changes of one directory are made one at a time. No name leads out of an export. A MOUNT of a path
//! reveals no more to a caller than LOOKUPs of its names.

use std::collections::VecDeque;
use std::sync::Arc;

use afflux_engine::Platform;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::rights::Use;
use crate::tree::attributes::{Attributes, Kind};
use crate::tree::caller::Caller;
use crate::tree::directory::Location;
use crate::tree::names;
use crate::volume::Volume;

pub(crate) mod entries;
pub(crate) mod list;
pub(crate) mod repeated;

/// Most symbolic links on a mount path, as on the host's paths.
const LINKS_MAX: usize = 40;

impl<P: Platform> Volume<P> {
    /// The directory at a mount path. "" and "/" are the export if there is only one; with several, the first name is
    /// the export's. Symbolic links are followed inside the export: their "/" is its root, and ".." does not lead above
    /// it. The caller needs the rights of [`Volume::lookup_by`] at each name, and no right for an export's own root.
    pub async fn mount_by(&self, caller: &Caller, path: &[u8]) -> Result<Arc<Inode<P>>, VolumeError> {
        let names = names::components(path)?;
        let mut names = names.as_slice();
        let export = match self.exports.as_slice() {
            [only] if only.path == "/" => only,
            several => {
                let (first, rest) = names.split_first().ok_or(VolumeError::NotFound)?;
                names = rest;
                let named = several.iter().find(|export| export.path.as_bytes()[1..] == **first);
                named.ok_or(VolumeError::NotFound)?
            }
        };
        let mut inode = Arc::clone(&export.root);
        let mut names: VecDeque<Bytes> = names.iter().map(|name| Bytes::copy_from_slice(name)).collect();
        let mut links = 0;
        while let Some(name) = names.pop_front() {
            let found = self.lookup_by(caller, &inode, &name).await?.0;
            if found.kind() != Kind::Symlink {
                inode = found;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(VolumeError::Symlink);
            }
            let (target, _) = self.read_link(&found).await?;
            if target.starts_with(b"/") {
                inode = Arc::clone(&export.root);
            }
            for name in names::components(&target)?.into_iter().rev() {
                names.push_front(target.slice_ref(name));
            }
        }
        if inode.kind() == Kind::Directory { Ok(inode) } else { Err(VolumeError::NotDirectory) }
    }

    /// As [`Volume::lookup`], from memory. The last lookup must be younger than `attributes_idle_centisecs`, the
    /// directory unchanged since as far as known, and the attributes known. Not for "." and "..".
    pub fn try_lookup(&self, directory: &Arc<Inode<P>>, name: &[u8]) -> Option<(Arc<Inode<P>>, Attributes)> {
        let object = self.names.get(directory, name, self.now(), self.idle_ns())?;
        let inode = self.table.get(&object)?;
        let attributes = self.try_attributes(&inode)?;
        Some((inode, attributes))
    }

    /// [`Volume::lookup`] by a caller; the caller needs search permission on the directory.
    pub async fn lookup_by(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
    ) -> Result<(Arc<Inode<P>>, Attributes), VolumeError> {
        names::check(name)?;
        directory.require_directory()?;
        self.permit(directory, caller, Use::Search).await?;
        self.find(caller, directory, name).await
    }

    /// The object called `name` in a directory, and its attributes.
    pub async fn lookup(
        &self,
        directory: &Arc<Inode<P>>,
        name: &[u8],
    ) -> Result<(Arc<Inode<P>>, Attributes), VolumeError> {
        self.find(&Caller::SERVER, directory, name).await
    }

    /// As [`Volume::lookup`], on behalf of a caller.
    async fn find(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
    ) -> Result<(Arc<Inode<P>>, Attributes), VolumeError> {
        names::check(name)?;
        directory.require_directory()?;
        if name == b"." {
            let attributes = self.attributes(directory).await?;
            return Ok((Arc::clone(directory), attributes));
        }
        self.trim_inodes().await;
        let (export, node) = (self.export_of(directory), directory.node.used_by(caller));
        let inode = if name == b".." {
            if self.exports.iter().any(|served| Arc::ptr_eq(&served.root, directory)) {
                Arc::clone(directory)
            } else {
                let found = self.tree.parent(&node).await?;
                self.admit(found, export, None).await?
            }
        } else {
            let name = Bytes::copy_from_slice(name);
            let (changes, asked) = (directory.changes_seen(), self.now());
            let found = self.tree.lookup(&node, name.clone()).await?;
            let location = Location { parent: directory.identity, name: name.clone() };
            let inode = self.admit(found, export, Some(location)).await?;
            self.names.keep(directory, name, inode.identity, changes, asked);
            inode
        };
        Ok((Arc::clone(&inode), inode.attributes()))
    }
}
