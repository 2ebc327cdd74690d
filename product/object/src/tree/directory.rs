//! The seam of a volume to its tree of names.
//!
//! Owns: which call is which, the answer only while this writer may answer.
//! Does not own: the calls themselves.
//! Invariants: every result, also an error, waits until this writer may answer.

use std::future::Future;
use std::ops::Range;

use afflux_volume::{
    AttributeChange, ChangedAttributes, Created, Directory, Export, Found, Identified, Identity, Joint, Linked,
    NAME_BYTES_MAX, Named, New, Node, OpenedData, PathLimits, Removed, RenameHow, Renamed, Seek, Space, Stat,
    TreeResult, Unnamed, VolumeError, Window, XattrChange,
};
use bytes::Bytes;

use super::permission;
use super::read::Used;
use super::state::ObjectTree;
use crate::format::tree::{Content, FILES_END, FILES_KEY};
use crate::format::{FieldBytes, exactly};
use crate::seams::RecordDatabase;
use crate::tree::state::DataCore;

/// A store reports neither its size nor a quota. So volumes report this size, all of it free. No record counts a
/// volume's bytes, since each write would have to change it; `afflux check` counts them.
const TOTAL_BYTES: u64 = 1 << 60;
/// An epoch has as many numbers for objects.
const TOTAL_FILES: u64 = 1 << 40;

impl<D: DataCore> ObjectTree<D> {
    fn answer<'a, T>(&'a self, call: impl Future<Output = Result<T, VolumeError>> + Send + 'a) -> TreeResult<'a, T>
    where
        T: Send + 'a,
    {
        TreeResult::by(async move {
            let result = call.await;
            self.core.wait_to_answer().await?;
            result
        })
    }

    async fn space(&self) -> Result<Space, VolumeError> {
        let found = self.scan(FILES_KEY.to_vec(), FILES_END.to_vec()).await?;
        let files = match found.first() {
            Some((_, value)) => {
                exactly("the number of files", value, 8)?;
                FieldBytes(value).u64()
            }
            None => 0,
        };
        let free_files = TOTAL_FILES.saturating_sub(files);
        Ok(Space {
            total_bytes: TOTAL_BYTES,
            free_bytes: TOTAL_BYTES,
            available_bytes: TOTAL_BYTES,
            total_files: TOTAL_FILES,
            free_files,
            available_files: free_files,
        })
    }
}

impl<D: DataCore> Directory for ObjectTree<D> {
    fn exports(&self) -> &[Export] {
        &self.exports
    }

    fn descriptors_max(&self) -> usize {
        self.options.descriptors_max
    }

    fn may_open(&self, _identity: &Identity) -> bool {
        true
    }

    fn open_identity(&self, identity: Identity) -> TreeResult<'_, Found> {
        self.answer(async move { self.open_ino(self.ino_of(&identity)?).await })
    }

    fn lookup(&self, directory: &Node, name: Bytes) -> TreeResult<'_, Found> {
        let directory = Used::of(directory);
        self.answer(async move { self.lookup(&directory, &name).await })
    }

    fn name_all(&self, directory: &Node, names: Vec<Bytes>) -> TreeResult<'_, Vec<Option<Named>>> {
        let directory = Used::of(directory);
        self.answer(async move { self.name_all(&directory, &names).await })
    }

    fn parent(&self, directory: &Node) -> TreeResult<'_, Found> {
        let directory = Used::of(directory);
        self.answer(async move { self.parent(&directory).await })
    }

    fn list(&self, directory: &Node, window: Window) -> TreeResult<'_, (Window, Stat)> {
        let directory = Used::of(directory);
        self.answer(async move { self.list(&directory, window).await })
    }

    fn identities(&self, directory: &Node) -> TreeResult<'_, Vec<Identified>> {
        let directory = Used::of(directory);
        self.answer(async move { self.identities(&directory).await })
    }

    fn stat(&self, node: &Node) -> TreeResult<'_, Stat> {
        let used = Used::of(node);
        self.answer(async move { Ok(self.stat_of_view(&self.held(&used).await?)) })
    }

    fn stat_all(&self, nodes: Vec<Node>) -> TreeResult<'_, Vec<Option<Stat>>> {
        let used: Vec<Used> = nodes.iter().map(Used::of).collect();
        self.answer(async move { self.stats(&used).await })
    }

    fn set(&self, node: &Node, change: AttributeChange, durable: bool) -> TreeResult<'_, ChangedAttributes> {
        let used = Used::of(node);
        self.answer(async move { self.set(&used, &change, durable).await })
    }

    fn join(&self, node: &Node) -> Option<Joint> {
        // A change that waits for nothing shares nothing.
        if self.options.async_metadata { None } else { self.core.join(Used::of(node).ino()) }
    }

    fn access(&self, node: &Node) -> TreeResult<'_, u8> {
        let used = Used::of(node);
        self.answer(async move {
            let rights = permission::rights(self.held(&used).await?.current().owned(), used.user());
            Ok(if self.core.records().is_read_only() { rights & !permission::WRITE } else { rights })
        })
    }

    fn read_link(&self, node: &Node) -> TreeResult<'_, Bytes> {
        let used = Used::of(node);
        self.answer(async move {
            match self.held(&used).await?.inode.content {
                Content::Symlink(target) => Ok(target),
                _ => Err(VolumeError::Invalid { what: "not a symbolic link" }),
            }
        })
    }

    fn open_data(&self, node: &Node, must_write: bool) -> TreeResult<'_, OpenedData> {
        let used = Used::of(node);
        self.answer(async move { self.open_data(&used, must_write).await })
    }

    fn create(
        &self,
        directory: &Node,
        name: Bytes,
        new: New,
        attributes: AttributeChange,
        durable: bool,
    ) -> TreeResult<'_, Created> {
        let directory = Used::of(directory);
        self.answer(async move { self.create(&directory, &name, new, attributes, durable).await })
    }

    fn remove(&self, directory: &Node, name: Bytes, directory_wanted: bool, durable: bool) -> TreeResult<'_, Removed> {
        let directory = Used::of(directory);
        self.answer(async move { self.remove(&directory, &name, directory_wanted, durable).await })
    }

    fn rename(
        &self,
        from: (&Node, Bytes),
        to: (&Node, Bytes),
        how: RenameHow,
        durable: bool,
    ) -> TreeResult<'_, Renamed> {
        let (from, to) = ((Used::of(from.0), from.1), (Used::of(to.0), to.1));
        self.answer(async move { self.rename(&from.0, &from.1, &to.0, &to.1, how, durable).await })
    }

    fn link(&self, node: &Node, directory: &Node, name: Bytes, durable: bool) -> TreeResult<'_, Linked> {
        let (used, directory) = (Used::of(node), Used::of(directory));
        self.answer(async move { self.link(&used, &directory, name, durable).await })
    }

    fn create_unnamed(&self, directory: &Node, attributes: AttributeChange) -> TreeResult<'_, Unnamed> {
        let directory = Used::of(directory);
        self.answer(async move { self.create_unnamed(&directory, &attributes).await })
    }

    fn xattr(&self, node: &Node, name: Bytes) -> TreeResult<'_, Bytes> {
        let used = Used::of(node);
        self.answer(async move { self.xattr(&used, &name).await })
    }

    fn xattrs(&self, node: &Node) -> TreeResult<'_, Vec<Bytes>> {
        let used = Used::of(node);
        self.answer(async move { self.xattrs(&used).await })
    }

    fn change_xattr(
        &self,
        node: &Node,
        name: Bytes,
        change: XattrChange,
        durable: bool,
    ) -> TreeResult<'_, ChangedAttributes> {
        let used = Used::of(node);
        self.answer(async move { self.change_xattr(&used, &name, change, durable).await })
    }

    fn seek(&self, node: &Node, from: u64, wanted: Seek) -> TreeResult<'_, Option<u64>> {
        let used = Used::of(node);
        self.answer(async move { self.core.seek(used.ino(), from, wanted).await })
    }

    fn share_blocks(&self, source: &Node, from: u64, target: &Node, to: Range<u64>) -> TreeResult<'_, ()> {
        let (source, target) = (Used::of(source), Used::of(target));
        let range = from..from + (to.end - to.start);
        let is_read_only = self.core.records().is_read_only();
        self.answer(async move {
            if is_read_only {
                return Err(VolumeError::ReadOnly);
            }
            self.core.share(source.ino(), range, target.ino(), to.start).await
        })
    }

    /// A store lacks no space.
    fn reserve(&self, _node: &Node, _range: Range<u64>) -> TreeResult<'_, ()> {
        let is_read_only = self.core.records().is_read_only();
        TreeResult::now(if is_read_only { Err(VolumeError::ReadOnly) } else { Ok(()) })
    }

    fn sync(&self, _node: &Node) -> TreeResult<'_, ()> {
        self.answer(self.sync())
    }

    fn sync_everything(&self) -> TreeResult<'_, ()> {
        self.answer(self.sync())
    }

    fn space(&self, _node: &Node) -> TreeResult<'_, Space> {
        self.answer(self.space())
    }

    fn path_limits(&self, _node: &Node) -> TreeResult<'_, PathLimits> {
        let limits = PathLimits {
            links_max: u32::MAX,
            name_max: NAME_BYTES_MAX as u32,
            no_trunc: true,
            case_insensitive: false,
            case_preserving: true,
        };
        TreeResult::now(Ok(limits))
    }
}
