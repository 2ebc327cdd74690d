//! Listing a directory's entries, a piece at a time.
//!
//! Owns: what one answer holds, and from where its entries are taken.
//! Does not own: the order and the cookies (`tree::window`), reading directories (the tree), which pieces of
//! directories are kept between calls (`objects::pieces`).
//! Invariants: any cookie works whether or not its piece is kept. Changes of a directory do not wait while it is read.

use std::sync::Arc;

use afflux_engine::Platform;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::objects::handle::FileHandle;
use crate::objects::inode::Inode;
use crate::objects::location::Location;
use crate::objects::rights::Use;
use crate::tree::attributes::Attributes;
use crate::tree::caller::Caller;
use crate::tree::directory::{Named, Node};
use crate::tree::listed::{Entry, Listed, Piece};
use crate::tree::window::{LAST_COOKIE, PARENT_COOKIE, SELF_COOKIE, Window};
use crate::volume::Volume;

/// Most entries in one answer.
const ANSWER_ENTRIES_MAX: usize = 8_192;
/// Most entries in one answer with attributes.
const ANSWER_OBJECTS_MAX: usize = 1_024;
/// Most entries looked at in one call of the tree.
const NAMES_MAX: usize = 256;

/// An entry of a directory.
pub struct DirectoryEntry {
    /// Its name.
    pub name: Bytes,
    /// The number of what it names.
    pub fileid: u64,
    /// Where a listing goes on after it: below 2^31, the same in every run of the server.
    pub cookie: u64,
    /// What it names, if that was asked for and it is still there.
    pub object: Option<(FileHandle, Attributes)>,
}

/// A piece of a directory's listing.
pub struct Listing {
    /// Its entries, in the order of their cookies.
    pub entries: Vec<DirectoryEntry>,
    /// Whether none follow.
    pub end: bool,
    /// The directory.
    pub directory: Attributes,
}

impl<P: Platform> Volume<P> {
    /// The entries after `cookie` (0: from the start, "." and ".." first), at most `entries_max` (at
    /// least one is taken). Cookies are below 2^31 and grow; one stays good while entries come and go,
    /// and over restarts. What was there all the time is listed once.
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
        // Names are told to who may read a directory, what they name to who may search it.
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
        // Of what is in doubt all may be gone.
        while !end && entries.len() == dots && dots < entries_max {
            let piece = self.piece(caller, directory, from, entries_max - dots, anew).await?;
            anew = false;
            // No progress (names made to hash alike fill the window) must not loop.
            end = piece.last || piece.entries.is_empty();
            from = piece.entries.last().map_or(from, |last| last.cookie);
            entries.extend(self.dressed(caller, directory, piece, with_attributes).await?);
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
            // Where the parent may not be looked at, the number is the directory's own.
            Err(VolumeError::Denied) => (Arc::clone(directory), self.attributes(directory).await?),
            Err(error) => return Err(error),
        };
        let object = with_attributes.then_some((inode.handle, attributes));
        Ok(DirectoryEntry { name: Bytes::from_static(name), fileid: inode.fileid(), cookie, object })
    }

    /// The next names, from what is kept of the directory or from the directory.
    async fn piece(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        cookie: u64,
        entries_max: usize,
        anew: bool,
    ) -> Result<Piece, VolumeError> {
        let kept = || {
            let listing = directory.listed();
            listing.kept().filter(|kept| kept.covers(cookie)).map(|kept| kept.take(cookie, entries_max))
        };
        if let Some(piece) = kept().filter(|_| !anew) {
            return Ok(piece);
        }
        let _reading = directory.opening.lock().await;
        // Somebody else may have read it meanwhile.
        if let Some(piece) = kept().filter(|_| !anew) {
            return Ok(piece);
        }
        let listed = self.read_listing(&directory.node.used_by(caller), directory, cookie).await?;
        let piece = listed.take(cookie, entries_max);
        if !(anew && piece.last) {
            self.pieces.keep(directory, listed);
        }
        Ok(piece)
    }

    /// A part of the directory that covers the cookie: all of it, unless it is huge. So what is kept of it serves
    /// any other cookie.
    async fn read_listing(&self, node: &Node, directory: &Arc<Inode<P>>, cookie: u64) -> Result<Listed, VolumeError> {
        let read = |window| {
            // The kept listing has our changes from here on, whether or not this reading meets them.
            directory.listed().begin();
            self.tree.list(node, window)
        };
        let window = read(Window::new(PARENT_COOKIE)).await?.0;
        if !window.is_cut() {
            return Ok(Listed::of(window));
        }
        let large = self.pieces.large(directory.device);
        let _one_at_a_time = large.lock().await;
        let listed = Listed::of(read(Window::large(PARENT_COOKIE)).await?.0);
        if listed.covers(cookie) {
            return Ok(listed);
        }
        Ok(Listed::of(read(Window::large(cookie)).await?.0))
    }

    /// Entries with what they name. Of a piece in doubt, those that are there.
    async fn dressed(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        piece: Piece,
        with_attributes: bool,
    ) -> Result<Vec<DirectoryEntry>, VolumeError> {
        let bare = |entry: &Entry| DirectoryEntry {
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
            let named = self.tree.name_all(&node, names).await?;
            for (entry, named) in batch.iter().zip(named) {
                let mut entry = bare(entry);
                let Some(named) = named else {
                    if !piece.doubtful {
                        dressed.push(entry);
                    }
                    continue;
                };
                let location = Location { parent: directory.identity, name: entry.name.clone() };
                // One that is gone since is listed without its attributes.
                if with_attributes && let Ok((handle, attributes)) = self.told_of(named, export, location).await {
                    entry.fileid = attributes.fileid;
                    entry.object = Some((handle, attributes));
                }
                dressed.push(entry);
            }
        }
        Ok(dressed)
    }

    /// What is told of an object that was seen at a place. It is not brought into memory for that.
    async fn told_of(
        &self,
        Named { identity, stat }: Named,
        export: u16,
        location: Location,
    ) -> Result<(FileHandle, Attributes), VolumeError> {
        let Some(inode) = self.table.get(&identity) else {
            self.sightings.seen_at(&identity, location);
            return Ok((self.key.seal(&identity, export), Attributes::of_host(&identity, &stat)));
        };
        self.sightings.found_at(&inode, location);
        if inode.differs(&stat, self.now()) {
            // What was seen may be older than a change of ours: it only raises suspicion.
            self.check(&inode).await?;
        }
        Ok((inode.handle, inode.attributes()))
    }
}
