//! The volume as its server uses it for itself, with its own user's rights.
//!
//! Owns: nothing: each operation as [`Caller::SERVER`].
//! Does not own: the operations (`names`, `data`), which have the descriptions.
//! Invariants: nothing is decided here.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::names::entries::{CreateHow, Made};
use crate::names::list::Listing;
use crate::objects::inode::Inode;
use crate::tree::attributes::{AttributeChange, Attributes, Consistency, Outcome, Timestamp};
use crate::tree::caller::Caller;
use crate::tree::directory::SpecialKind;
use crate::volume::Volume;

const OWN: &Caller = &Caller::SERVER;

impl<P: Platform> Volume<P> {
    /// [`Volume::mount_by`] the server itself.
    pub async fn mount(&self, path: &[u8]) -> Result<Arc<Inode<P>>, VolumeError> {
        self.mount_by(OWN, path).await
    }

    /// [`Volume::set_attributes_by`] the server itself.
    pub async fn set_attributes(
        &self,
        inode: &Arc<Inode<P>>,
        change: AttributeChange,
        guard: Option<Timestamp>,
    ) -> Outcome<()> {
        self.set_attributes_by(OWN, inode, change, guard).await
    }

    /// [`Volume::access_by`] the server itself.
    pub async fn access(&self, inode: &Arc<Inode<P>>) -> Result<(u8, Attributes), VolumeError> {
        self.access_by(OWN, inode).await
    }

    /// [`Volume::list_by`] the server itself.
    pub async fn list(
        &self,
        directory: &Arc<Inode<P>>,
        cookie: u64,
        entries_max: usize,
        with_attributes: bool,
    ) -> Result<Listing, VolumeError> {
        self.list_by(OWN, directory, cookie, entries_max, with_attributes).await
    }

    /// [`Volume::create_by`] the server itself.
    pub async fn create(&self, directory: &Arc<Inode<P>>, name: &[u8], how: CreateHow) -> Outcome<Made<P>> {
        self.create_by(OWN, directory, name, how).await
    }

    /// [`Volume::make_directory_by`] the server itself.
    pub async fn make_directory(
        &self,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        attributes: AttributeChange,
    ) -> Outcome<Made<P>> {
        self.make_directory_by(OWN, directory, name, attributes).await
    }

    /// [`Volume::symlink_by`] the server itself.
    pub async fn symlink(
        &self,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        target: &[u8],
        attributes: AttributeChange,
    ) -> Outcome<Made<P>> {
        self.symlink_by(OWN, directory, name, target, attributes).await
    }

    /// [`Volume::make_special_by`] the server itself.
    pub async fn make_special(
        &self,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        kind: SpecialKind,
        attributes: AttributeChange,
    ) -> Outcome<Made<P>> {
        self.make_special_by(OWN, directory, name, kind, attributes).await
    }

    /// [`Volume::remove_by`] the server itself.
    pub async fn remove(&self, directory: &Arc<Inode<P>>, name: &[u8]) -> Outcome<()> {
        self.remove_by(OWN, directory, name).await
    }

    /// [`Volume::remove_directory_by`] the server itself.
    pub async fn remove_directory(&self, directory: &Arc<Inode<P>>, name: &[u8]) -> Outcome<()> {
        self.remove_directory_by(OWN, directory, name).await
    }

    /// [`Volume::rename_by`] the server itself.
    pub async fn rename(
        &self,
        from: &Arc<Inode<P>>,
        from_name: &[u8],
        to: &Arc<Inode<P>>,
        to_name: &[u8],
    ) -> (Outcome<()>, Consistency) {
        self.rename_by(OWN, from, from_name, to, to_name).await
    }

    /// [`Volume::link_by`] the server itself.
    pub async fn link(&self, inode: &Arc<Inode<P>>, directory: &Arc<Inode<P>>, name: &[u8]) -> Outcome<Attributes> {
        self.link_by(OWN, inode, directory, name).await
    }
}
