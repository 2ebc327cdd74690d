//! Listing a directory's entries, a piece at a time.
//!
//! Owns: the contents of one answer, and the source of its entries.
//! Does not own: the order and the cookies (`tree::listing`), reading directories (the tree), which pieces of
//! directories are cached between calls (`objects::directory_cache`).
//! Invariants: any cookie works, even if its piece is not cached. A read of a directory does not delay changes of it.

use std::sync::Arc;

use afflux_engine::Platform;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::objects::handle::FileHandle;
use crate::objects::inode::Inode;
use crate::objects::rights::Use;
use crate::tree::attributes::Attributes;
use crate::tree::caller::Caller;
use crate::tree::directory::{Location, Named, Node};
use crate::tree::listing::{
    LAST_COOKIE, Listed, ListedEntry, ListedPiece, PARENT_COOKIE, SELF_COOKIE, WINDOW_ENTRIES_MAX, Window,
};
use crate::volume::Volume;

/// Most entries in one answer.
const ANSWER_ENTRIES_MAX: usize = 8_192;
/// Most entries in one answer with attributes.
const ANSWER_OBJECTS_MAX: usize = 1_024;
/// Most entries that one call of the tree asks about.
const NAMES_MAX: usize = 256;

/// An entry of a directory.
pub struct DirectoryEntry {
    /// The entry's name.
    pub name: Bytes,
    /// The number of the entry's object.
    pub fileid: u64,
    /// The position after this entry: below 2^31, the same in every run of the server.
    pub cookie: u64,
    /// The object, if requested and still present.
    pub object: Option<(FileHandle, Attributes)>,
}

/// A piece of a directory's listing.
pub struct Listing {
    /// The entries, in the order of their cookies.
    pub entries: Vec<DirectoryEntry>,
    /// Whether this is the end of the directory.
    pub end: bool,
    /// The directory's attributes.
    pub directory: Attributes,
}

impl<P: Platform> Volume<P> {
    /// The entries after `cookie` (0: from the start, "." and ".." first), at most `entries_max` (at least one).
    /// Cookies are below 2^31 and grow. A cookie stays valid while entries come and go, and over restarts. An entry
    /// that was there all the time is listed once.
    pub async fn list_by(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        cookie: u64,
        entries_max: usize,
        with_attributes: bool,
    ) -> Result<Listing, VolumeError> {
        directory.require_directory()?;
        if cookie > LAST_COOKIE {
            return Err(VolumeError::BadCookie);
        }
        self.permit(directory, caller, Use::Read).await?;
        let most = if with_attributes { ANSWER_OBJECTS_MAX } else { ANSWER_ENTRIES_MAX };
        let entries_max = entries_max.clamp(1, most);
        // Names need read permission on the directory, their objects search permission.
        let with_attributes = with_attributes && self.permit(directory, caller, Use::Search).await.is_ok();
        let mut entries = Vec::new();
        if cookie < SELF_COOKIE {
            entries.push(self.dot(directory, b".", SELF_COOKIE, with_attributes).await?);
        }
        if cookie < PARENT_COOKIE && entries.len() < entries_max {
            entries.push(self.dot(directory, b"..", PARENT_COOKIE, with_attributes).await?);
        }
        let mut end = false;
        let (mut from, mut anew, dots) = (cookie.max(PARENT_COOKIE), cookie < PARENT_COOKIE, entries.len());
        // All entries of a doubtful piece may be gone.
        while !end && entries.len() == dots && dots < entries_max {
            let piece = self.piece(caller, directory, from, entries_max - dots, anew).await?;
            anew = false;
            // Without progress (names made to hash alike fill the window) it must not loop.
            end = piece.last || piece.entries.is_empty();
            from = piece.entries.last().map_or(from, |last| last.cookie);
            entries.extend(self.with_objects(caller, directory, piece, with_attributes).await?);
        }
        Ok(Listing { entries, end, directory: self.attributes(directory).await? })
    }

    async fn dot(
        &self,
        directory: &Arc<Inode<P>>,
        name: &'static [u8],
        cookie: u64,
        with_attributes: bool,
    ) -> Result<DirectoryEntry, VolumeError> {
        let (inode, attributes) = match self.lookup(directory, name).await {
            Ok(found) => found,
            // If the caller may not look up the parent, the number is the directory's own.
            Err(VolumeError::Denied) => (Arc::clone(directory), self.attributes(directory).await?),
            Err(error) => return Err(error),
        };
        let object = with_attributes.then_some((inode.handle, attributes));
        Ok(DirectoryEntry { name: Bytes::from_static(name), fileid: inode.fileid(), cookie, object })
    }

    /// The next names, from the cached listing or from the directory. A listing that begins anew wants a read that
    /// began after its call. Calls that wait meanwhile use one read together, so none waits for more than two reads.
    async fn piece(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        cookie: u64,
        entries_max: usize,
        anew: bool,
    ) -> Result<ListedPiece, VolumeError> {
        let older = if anew { directory.listed().reads() } else { 0 };
        let cached = || {
            let listing = directory.listed();
            listing
                .cached_after(older)
                .filter(|cached| cached.has_after(cookie))
                .map(|cached| cached.take(cookie, entries_max))
        };
        if let Some(piece) = cached() {
            return Ok(piece);
        }
        let _reading = directory.opening.lock().await;
        // Another caller may have read it meanwhile.
        if let Some(piece) = cached() {
            return Ok(piece);
        }
        let listed = self.read_listing(&directory.node.used_by(caller), directory, cookie).await?;
        let piece = listed.take(cookie, entries_max);
        if !(anew && piece.last) {
            self.pieces.keep(directory, listed);
        }
        Ok(piece)
    }

    /// A part of the directory after the cookie: all of it, unless it is huge. So the cached listing serves any other
    /// cookie.
    async fn read_listing(&self, node: &Node, directory: &Arc<Inode<P>>, cookie: u64) -> Result<Listed, VolumeError> {
        let home = directory.identity.fsid();
        let read = |window| {
            // The cached listing gets our changes from here on, whether or not this read sees them.
            directory.listed().begin();
            async {
                let mut window = self.tree.list(node, window).await?.0;
                window.assign_fileids(|elsewhere, fileid| self.file_ids.of(elsewhere.unwrap_or(home), fileid))?;
                Ok::<_, VolumeError>(window)
            }
        };
        if !directory.listed().is_large() {
            let window = read(Window::new(PARENT_COOKIE)).await?;
            if !window.is_cut() {
                return Ok(Listed::of(window));
            }
        }
        let large = self.pieces.large(directory.device);
        let _one_at_a_time = large.lock().await;
        let listed = Listed::of(read(Window::large(PARENT_COOKIE)).await?);
        directory.listed().note_large(listed.len() > WINDOW_ENTRIES_MAX);
        if listed.has_after(cookie) {
            return Ok(listed);
        }
        Ok(Listed::of(read(Window::large(cookie)).await?))
    }

    /// Entries with their objects. For a doubtful piece, only the entries that still exist.
    async fn with_objects(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        piece: ListedPiece,
        with_attributes: bool,
    ) -> Result<Vec<DirectoryEntry>, VolumeError> {
        let bare = |entry: &ListedEntry| DirectoryEntry {
            name: entry.name.clone(),
            fileid: entry.fileid,
            cookie: entry.cookie,
            object: None,
        };
        if !with_attributes && !piece.doubtful {
            return Ok(piece.entries.iter().map(bare).collect());
        }
        let (export, node) = (self.export_of(directory), directory.node.used_by(caller));
        let mut dressed = Vec::with_capacity(piece.entries.len());
        for batch in piece.entries.chunks(NAMES_MAX) {
            let names = batch.iter().map(|entry| entry.name.clone()).collect();
            let named = match self.tree.name_all(&node, names).await {
                Ok(named) => named,
                // The names are certain: they are listed without attributes.
                Err(_) if !piece.doubtful => vec![None; batch.len()],
                Err(error) => return Err(error),
            };
            for (entry, named) in batch.iter().zip(named) {
                let mut entry = bare(entry);
                let Some(named) = named else {
                    if !piece.doubtful {
                        dressed.push(entry);
                    }
                    continue;
                };
                let location = Location { parent: directory.identity, name: entry.name.clone() };
                // An entry whose object has gone since is listed without attributes.
                if with_attributes
                    && let Ok((handle, attributes)) = self.entry_attributes(named, export, location).await
                {
                    entry.fileid = attributes.fileid;
                    entry.object = Some((handle, attributes));
                }
                dressed.push(entry);
            }
        }
        Ok(dressed)
    }

    /// The handle and attributes of an object seen at a location. This does not bring the object into memory.
    async fn entry_attributes(
        &self,
        Named { identity, stat }: Named,
        export: u16,
        location: Location,
    ) -> Result<(FileHandle, Attributes), VolumeError> {
        let inode = match self.found_files.get(&identity) {
            // An earlier server has reported another size to clients than the host's.
            Some(_) => Some(self.resolve_identity(identity, export).await?),
            None => self.table.get(&identity),
        };
        let Some(inode) = inode else {
            let fileid = self.file_ids.of(identity.fsid(), stat.fileid)?;
            self.search.seen_at(&identity, location);
            return Ok((self.key.seal(&identity, export), Attributes::of_host(&identity, &stat, fileid)));
        };
        self.search.found_at(&inode, location);
        if inode.does_differ(&stat, self.now()) {
            // The host's answer may be older than a change of ours: it only raises suspicion.
            self.check(&inode).await?;
        }
        Ok((inode.handle, inode.attributes()))
    }
}
