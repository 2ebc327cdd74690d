//! Reading objects and entries: inodes with their bodies, by runs of neighbours; directories, by ranges of positions.
//!
//! Owns: the choice between records and memory, the ranges of positions that one scan reads.
//! Does not own: the order of names (`Window::position`).
//! Invariants: a view is no older than its call. If a body leaves memory during the read of its record, the view has
//! the body from memory. One scan of a directory reads some thousands of entries at most. Names are spread evenly over
//! positions.

use std::collections::BTreeMap;
use std::sync::Arc;

use afflux_volume::{Found, Identified, Kind, Named, Node, Stat, VolumeError, Window};
use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::error::DAMAGED;
use crate::file::BodyInMemory;
use crate::format::FormatError;
use crate::format::records::Body;
use crate::format::tree::{Content, Entry, InodeRecord};
use crate::seams::{Durability, Record, RecordDatabase, next_page};
use crate::tree::cache::Slot;
use crate::tree::held_nodes::HeldNode;
use crate::tree::permission::{Owned, User};
use crate::tree::state::{DataCore, ObjectTree};

/// Objects whose numbers differ by no more are read together. Files made together have neighbouring numbers.
const GAP: u64 = 32;
/// The most numbers that one scan spans.
const RUN: u64 = 1_024;
/// The most records that one scan reads.
const ROWS: usize = 512;

/// An object for a call, and the user of the call.
#[derive(Clone)]
pub(super) struct Used {
    pub(super) held: Arc<HeldNode>,
    node: Node,
}

impl Used {
    /// # Panics
    /// If the node belongs to another tree.
    pub(super) fn of(node: &Node) -> Self {
        let Some(held) = node.shared() else { panic!("a node of another tree") };
        Self { held, node: node.clone() }
    }

    pub(super) fn ino(&self) -> u64 {
        self.held.ino()
    }

    pub(super) fn user(&self) -> User<'_> {
        self.node.user().map(|user| &**user)
    }
}

/// An object as a call read it. It holds the object's slot.
pub(super) struct ReadView {
    pub(super) slot: Arc<Slot>,
    pub(super) inode: InodeRecord,
    pub(super) body: Body,
}

impl ReadView {
    /// The object now.
    pub(super) fn current(&self) -> InodeRecord {
        self.slot.inode().unwrap_or_else(|| self.inode.clone())
    }

    /// The object now, unless it was changed since it was read.
    pub(super) fn unchanged(&self) -> Option<InodeRecord> {
        Some(self.current()).filter(|inode| inode.changes == self.inode.changes)
    }
}

impl InodeRecord {
    pub(super) fn owned(&self) -> Owned<'_> {
        let access = self.acls.access.as_deref();
        Owned { kind: self.kind(), mode: self.mode, uid: self.uid, gid: self.gid, access }
    }

    /// The parent and the number of entries of a directory that has a name.
    pub(super) fn as_directory(&self) -> Result<(u64, u64), VolumeError> {
        match self.content {
            Content::Directory { .. } if self.links == 0 => Err(VolumeError::Stale),
            Content::Directory { parent, entries } => Ok((parent, entries)),
            _ => Err(VolumeError::NotDirectory),
        }
    }
}

/// The records of an object.
enum Row {
    Inode(InodeRecord),
    Body(Body),
}

impl Row {
    fn decode(key: &[u8], value: &[u8]) -> Result<Option<(u64, Self)>, FormatError> {
        let Some((ino, rest)) = key.get(1..).and_then(|key| key.split_first_chunk()) else { return Ok(None) };
        let row = match rest {
            b"" => Self::Inode(InodeRecord::decode(value)?),
            b"b" => Self::Body(Body::decode(value)?),
            _ => return Ok(None),
        };
        Ok(Some((u64::from_be_bytes(*ino), row)))
    }
}

/// Ascending numbers, in runs that are read together.
fn runs(numbers: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    let mut rest = numbers;
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let mut last = first;
        let is_near = |last: u64, next: u64| next - last <= GAP && next - first < RUN;
        while let [next, after @ ..] = rest
            && is_near(last, *next)
        {
            (last, rest) = (*next, after);
        }
        Some((first, last))
    })
}

impl<D: DataCore> ObjectTree<D> {
    /// Each object, or nothing if there is none of this number.
    pub(super) async fn views(&self, numbers: &[u64]) -> Result<Vec<Option<ReadView>>, VolumeError> {
        let before = |ino: &u64| (*ino, (self.cache.slot(*ino), self.core.body_in_memory(*ino)));
        let known: BTreeMap<u64, _> = numbers.iter().map(before).collect();
        let stored = self.read_unknown(&known).await?;
        let mut views = Vec::with_capacity(numbers.len());
        for ino in numbers {
            let (slot, before) = &known[ino];
            let Some(inode) = slot.inode() else {
                views.push(None);
                continue;
            };
            let body = match (self.core.body_in_memory(*ino), *before) {
                _ if inode.kind() != Kind::Regular => Body::default(),
                // A body may leave memory meanwhile. Then it counts as it was before.
                (BodyInMemory::Newest(body), _) | (BodyInMemory::AsStored, BodyInMemory::Newest(body)) => body,
                (BodyInMemory::AsStored, BodyInMemory::AsStored) => stored.get(ino).copied().unwrap_or_default(),
                _ => self.core.body(*ino).await?,
            };
            views.push(Some(ReadView { inode, slot: Arc::clone(slot), body }));
        }
        Ok(views)
    }

    /// Reads the inodes that are not in memory into their slots. Returns the bodies that were read with them or alone.
    async fn read_unknown(
        &self,
        known: &BTreeMap<u64, (Arc<Slot>, BodyInMemory)>,
    ) -> Result<BTreeMap<u64, Body>, VolumeError> {
        let is_unknown = |slot: &Slot, body: BodyInMemory| match slot.inode() {
            Some(inode) => inode.kind() == Kind::Regular && body == BodyInMemory::AsStored,
            None => true,
        };
        let unknown = known.iter().filter(|(_, (slot, body))| is_unknown(slot, *body));
        let unknown: Vec<u64> = unknown.map(|(ino, _)| *ino).collect();
        let scans = runs(&unknown).map(|(first, last)| self.rows(first, last));
        let mut bodies = BTreeMap::new();
        for (key, value) in try_join_all(scans).await?.into_iter().flatten() {
            match Row::decode(&key, &value)? {
                // Only a slot that was there before the scan may learn from it.
                Some((ino, Row::Inode(inode))) => {
                    known.get(&ino).into_iter().for_each(|(slot, _)| slot.learn(inode.clone()));
                }
                Some((ino, Row::Body(body))) => drop(bodies.insert(ino, body)),
                None => (),
            }
        }
        Ok(bodies)
    }

    /// The records of the inodes and bodies of a run. Extended attributes lie between them: the next scan begins behind
    /// those of the object that the last one ended in.
    async fn rows(&self, first: u64, last: u64) -> Result<Vec<Record>, VolumeError> {
        let (mut from, end) = (InodeRecord::key(first), InodeRecord::end_key(last));
        let mut rows = Vec::new();
        while from < end {
            let most = ROWS.min(2 * (last - first + 1) as usize + 1);
            let found = self.core.records().scan_first(from, end.clone(), Durability::Applied, most).await?;
            from = next_page(&found, most, &end);
            if let Some(ino) = found.last().filter(|_| from < end).and_then(|(key, _)| InodeRecord::xattr_owner(key)) {
                from = from.max(InodeRecord::xattr_keys(ino).1);
            }
            rows.extend(found.into_iter().filter(|(key, _)| InodeRecord::xattr_owner(key).is_none()));
        }
        Ok(rows)
    }

    pub(super) async fn view(&self, ino: u64) -> Result<Option<ReadView>, VolumeError> {
        Ok(self.views(&[ino]).await?.pop().flatten())
    }

    /// An object that a node holds.
    pub(super) async fn held(&self, used: &Used) -> Result<ReadView, VolumeError> {
        self.view(used.ino()).await?.ok_or(VolumeError::Stale)
    }

    /// A directory that a node holds and that has a name.
    pub(super) async fn directory(&self, used: &Used) -> Result<(ReadView, u64), VolumeError> {
        let view = self.held(used).await?;
        let (_, entries) = view.inode.as_directory()?;
        Ok((view, entries))
    }

    pub(super) fn stat_of_view(&self, view: &ReadView) -> Stat {
        self.stat_of(view.slot.ino, &view.current(), view.body)
    }

    /// Holds an object, unless its last name is gone.
    fn hold(&self, view: &ReadView) -> Option<Found> {
        let held = {
            let _order = self.order();
            let inode = view.current();
            (inode.links > 0).then(|| (self.held_nodes.hold(view.slot.ino), inode))
        };
        held.map(|(held, inode)| self.found(held, &inode, view.body))
    }

    pub(super) async fn open_ino(&self, ino: u64) -> Result<Found, VolumeError> {
        let view = self.view(ino).await?.ok_or(VolumeError::Stale)?;
        self.hold(&view).ok_or(VolumeError::Stale)
    }

    pub(super) async fn lookup(&self, directory: &Used, name: &[u8]) -> Result<Found, VolumeError> {
        loop {
            let (parent, _) = self.directory(directory).await?;
            let entry = self.entry(directory.ino(), name).await?.ok_or(VolumeError::NotFound)?;
            let view = self.view(entry.ino).await?;
            if let Some(found) = view.as_ref().and_then(|view| self.hold(view)) {
                return Ok(found);
            }
            // The name was removed meanwhile, or it never led to an object.
            if parent.unchanged().is_some() {
                return Err(DAMAGED);
            }
        }
    }

    pub(super) async fn parent(&self, directory: &Used) -> Result<Found, VolumeError> {
        let (view, _) = self.directory(directory).await?;
        let (parent, _) = view.inode.as_directory()?;
        self.open_ino(parent).await
    }

    pub(super) async fn stats(&self, used: &[Used]) -> Result<Vec<Option<Stat>>, VolumeError> {
        let numbers: Vec<u64> = used.iter().map(Used::ino).collect();
        let views = self.views(&numbers).await?;
        Ok(views.iter().map(|view| view.as_ref().map(|view| self.stat_of_view(view))).collect())
    }

    /// The objects of numbers, without holding them.
    pub(super) async fn named(&self, numbers: &[u64]) -> Result<BTreeMap<u64, Named>, VolumeError> {
        let views = self.views(numbers).await?;
        let living = views.iter().flatten().filter(|view| view.current().links > 0);
        let named = living.map(|view| {
            let ino = view.slot.ino;
            (ino, Named { identity: self.identity(ino), stat: self.stat_of_view(view) })
        });
        Ok(named.collect())
    }
}

/// Positions are below this.
const POSITIONS: u64 = 1 << 31;
/// Entries that one scan reads, as far as names are spread evenly.
const SCAN_ENTRIES: u64 = 16_384;
/// One scan reads no more, however names are spread.
const SCANNED_MAX: usize = 2 * SCAN_ENTRIES as usize;
/// Names with so many entries between them, as far as names are spread evenly, are read together.
const GAP_ENTRIES: u64 = 16;

impl<D: DataCore> ObjectTree<D> {
    pub(super) async fn entry(&self, directory: u64, name: &[u8]) -> Result<Option<Entry>, VolumeError> {
        let key = Entry::key(directory, name);
        let mut end = key.clone();
        end.push(0);
        let found = self.scan(key, end).await?;
        Ok(found.first().map(|(key, value)| Entry::decode(key, value)).transpose()?)
    }

    /// Shows the entries from a position on, in the order of their positions, up to the last position that `show` still
    /// wants.
    async fn each_entry(
        &self,
        directory: u64,
        entries: u64,
        first: u64,
        mut show: impl FnMut(Entry) -> u64,
    ) -> Result<(), VolumeError> {
        let step =
            POSITIONS.checked_mul(SCAN_ENTRIES).and_then(|places| places.checked_div(entries)).unwrap_or(POSITIONS);
        let (mut from, mut last) = (first, POSITIONS - 1);
        while from <= last && entries > 0 {
            let to = from.saturating_add(step.max(1)).min(POSITIONS);
            let (mut key, end) = (Entry::position_key(directory, from), Entry::position_key(directory, to));
            while key < end {
                let records = self.core.records();
                let found = records.scan_first(key, end.clone(), Durability::Applied, SCANNED_MAX).await?;
                key = next_page(&found, SCANNED_MAX, &end);
                for (key, value) in found {
                    last = show(Entry::decode(&key, &value)?).min(POSITIONS - 1);
                }
            }
            from = to;
        }
        Ok(())
    }

    pub(super) async fn list(&self, directory: &Used, mut window: Window) -> Result<(Window, Stat), VolumeError> {
        let (_, entries) = self.directory(directory).await?;
        let first = window.first_position();
        let offer = |entry: Entry| {
            window.offer(&entry.name, entry.ino);
            window.last_position()
        };
        self.each_entry(directory.ino(), entries, first, offer).await?;
        window.complete();
        let (view, _) = self.directory(directory).await?;
        Ok((window, self.stat_of_view(&view)))
    }

    pub(super) async fn identities(&self, directory: &Used) -> Result<Vec<Identified>, VolumeError> {
        let (_, entries) = self.directory(directory).await?;
        let mut all = Vec::new();
        let keep = |entry: Entry| {
            let (identity, directory) = (self.identity(entry.ino), entry.kind == Kind::Directory);
            all.push(Identified { name: Bytes::from(entry.name), identity, directory });
            u64::MAX
        };
        self.each_entry(directory.ino(), entries, 0, keep).await?;
        Ok(all)
    }

    /// The object of each name. Names that follow each other in a listing are read together.
    pub(super) async fn name_all(&self, directory: &Used, names: &[Bytes]) -> Result<Vec<Option<Named>>, VolumeError> {
        let (_, entries) = self.directory(directory).await?;
        let mut placed: Vec<(u64, &Bytes)> = names.iter().map(|name| (Window::position(name), name)).collect();
        placed.sort_unstable();
        let is_near = |one: &(u64, &Bytes), next: &(u64, &Bytes)| {
            u128::from(next.0 - one.0) * u128::from(entries) <= u128::from(GAP_ENTRIES * POSITIONS)
        };
        let mut found = BTreeMap::new();
        for run in placed.chunk_by(is_near) {
            let ([(_, first), ..], [.., (_, last)]) = (run, run) else { continue };
            let (from, mut to) = (Entry::key(directory.ino(), first), Entry::key(directory.ino(), last));
            to.push(0);
            for (key, value) in self.scan(from, to).await? {
                let entry = Entry::decode(&key, &value)?;
                found.insert(entry.name, entry.ino);
            }
        }
        let numbers: Vec<u64> = names.iter().filter_map(|name| found.get(&name[..]).copied()).collect();
        let named = self.named(&numbers).await?;
        let of_name = |name: &Bytes| found.get(&name[..]).and_then(|ino| named.get(ino).copied());
        Ok(names.iter().map(of_name).collect())
    }
}

#[cfg(test)]
mod tests;
