//! The comparison of inodes with names, bodies, extents and marks.
//!
//! Owns: the names that lead to each object, the entries of each directory; the lookup of the bytes of each extent, the
//! sums over a file's extents; the records of one object side by side, the rules between them.
//! Does not own: segments as a whole (`check`).
//! Invariants: an object is judged once, with all its records. A volume without names has bytes alone, and the rules of
//! bytes hold for it. The bytes of a segment that was read whole are not read again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use afflux_volume::Kind;

use crate::check::{Check, FileRange, ObjectFault};
use crate::error::ObjectVolumeError;
use crate::format::extent::{ExtentSource, SegmentRange, StoredExtent};
use crate::format::line::LINE_BYTES;
use crate::format::records::{Body, decode_cut};
use crate::format::segment::{check_lines, lines};
use crate::format::tree::{Content, Entry, FILES_KEY, InodeRecord, ROOT};
use crate::format::{FormatError, exactly};
use crate::open::get;
use crate::seams::{Clock, Durability, Key, Objects, PagedScan, Record, RecordDatabase};

/// The records of one kind, by their objects.
struct RecordsOfKind {
    scan: PagedScan,
    page: VecDeque<Record>,
}

impl RecordsOfKind {
    fn new(kind: u8) -> Self {
        let scan = PagedScan::new(vec![kind], vec![kind + 1], Durability::Remote);
        Self { scan, page: VecDeque::new() }
    }
}

/// The object of a record.
fn object_of(key: &[u8]) -> Option<u64> {
    key.get(1..).and_then(|rest| rest.first_chunk()).map(|ino| u64::from_be_bytes(*ino))
}

/// All records of one object.
#[derive(Default)]
struct ObjectRecords {
    ino: u64,
    inode: Option<InodeRecord>,
    body: Option<Body>,
    has_xattrs: bool,
    is_marked: bool,
    is_cut: bool,
    /// Some of its records are malformed, so the others prove nothing.
    is_malformed: bool,
    sums: ExtentSums,
    names: Option<NamesOf>,
    entries: u64,
}

/// What only all objects together show.
#[derive(Default)]
struct TreeFound {
    faults: Vec<(u64, ObjectFault)>,
    /// The parent of each directory with a name, by its inode.
    parents: BTreeMap<u64, u64>,
    /// Objects with a name, without the root.
    living: u64,
    has_root: bool,
}

impl<O: Objects, R: RecordDatabase, C: Clock> Check<'_, O, R, C> {
    pub(super) async fn inodes(&mut self, names: NamesFound) -> Result<(), ObjectVolumeError> {
        let mut kinds = [b'i', b'o', b't', b'x'].map(RecordsOfKind::new);
        let mut of_objects = names.of_objects.into_iter().peekable();
        let mut entries = names.entries.into_iter().peekable();
        let mut tree = TreeFound::default();
        loop {
            let of_names = of_objects.peek().map(|(ino, _)| *ino);
            let mut next = of_names.into_iter().chain(entries.peek().map(|(ino, _)| *ino)).min();
            for kind in &mut kinds {
                next = next.into_iter().chain(self.next_of(kind).await?).min();
            }
            let Some(ino) = next else { break };
            let mut object = ObjectRecords { ino, ..ObjectRecords::default() };
            for kind in &mut kinds {
                while self.next_of(kind).await? == Some(ino) {
                    if let Some((key, value)) = kind.page.pop_front() {
                        self.record(&mut object, &key, &value).await;
                    }
                }
            }
            object.names = of_objects.next_if(|(of, _)| *of == ino).map(|(_, names)| names);
            object.entries = entries.next_if(|(of, _)| *of == ino).map_or(0, |(_, entries)| entries);
            if !object.is_malformed && !object.has_fitting_bytes() {
                self.report.misfits.push(ino);
            }
            tree.judge(&object);
        }
        self.whole_tree(tree).await
    }

    /// The object of the next record of a kind. Records without an object are malformed.
    async fn next_of(&mut self, kind: &mut RecordsOfKind) -> Result<Option<u64>, ObjectVolumeError> {
        loop {
            while let Some((key, _)) = kind.page.front() {
                if let Some(ino) = object_of(key) {
                    return Ok(Some(ino));
                }
                self.well_formed(key, exactly("the key of an object", key, 9));
                kind.page.pop_front();
            }
            match kind.scan.next(self.records).await? {
                Some(page) => kind.page = page.into(),
                None => return Ok(None),
            }
        }
    }

    async fn record(&mut self, object: &mut ObjectRecords, key: &Key, value: &[u8]) {
        let noted = match (key[0], key.get(9), key.len()) {
            (b'x', ..) => match StoredExtent::decode(key, value) {
                Ok((ino, extent)) => {
                    object.sums.add(&extent);
                    self.extent(ino, &extent).await;
                    Ok(())
                }
                Err(error) => Err(error),
            },
            (b'i', Some(b'x'), 11..) => {
                object.has_xattrs = true;
                Ok(())
            }
            (b'i', Some(b'b'), 10) => Body::decode(value).map(|body| object.body = Some(body)),
            (b'i', ..) => self.inode(object, key, value),
            (b't', ..) => decode_cut(key, value).map(|_| object.is_cut = true),
            _ => InodeRecord::unnamed(key).map(|_| object.is_marked = true),
        };
        object.is_malformed |= self.well_formed(key, noted).is_none();
    }

    fn inode(&mut self, object: &mut ObjectRecords, key: &[u8], value: &[u8]) -> Result<(), FormatError> {
        exactly("the key of an inode", key, 9)?;
        self.report.inodes += 1;
        object.inode = Some(InodeRecord::decode(value)?);
        Ok(())
    }

    async fn whole_tree(&mut self, mut tree: TreeFound) -> Result<(), ObjectVolumeError> {
        let counted = get(self.records, FILES_KEY).await?;
        let has_names = self.report.inodes > 0 || self.report.names > 0 || counted.is_some();
        if !has_names {
            return Ok(());
        }
        if !tree.has_root {
            tree.faults.push((ROOT, ObjectFault::NoInode));
        }
        tree.find_lost();
        self.report.faults.append(&mut tree.faults);
        let counted = counted.unwrap_or_else(|| vec![0; 8]);
        let counted = exactly("the number of files", &counted, 8).map(|()| decode_count(&counted));
        if let Some(counted) = self.well_formed(FILES_KEY, counted)
            && counted != tree.living
        {
            self.report.miscounted_objects = Some((counted, tree.living));
        }
        Ok(())
    }
}

fn decode_count(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl ObjectRecords {
    /// Whether the extents have as many bytes as the body records.
    fn has_fitting_bytes(&self) -> bool {
        let body = self.body.unwrap_or_default();
        let ends_within = self.sums.end <= body.size || self.is_cut || self.is_marked;
        body.used == self.sums.used && ends_within && !self.sums.overlap
    }

    fn faults(&self) -> Vec<ObjectFault> {
        let found = self.names.map_or(0, |names| names.count);
        let Some(inode) = &self.inode else {
            return vec![if found > 0 { ObjectFault::NoInode } else { ObjectFault::NoObject }];
        };
        let mut faults = Vec::new();
        let mut note = |is_wrong: bool, fault| faults.extend(is_wrong.then_some(fault));
        let is_living = inode.links > 0;
        let kind = self.names.map_or(Some(inode.kind()), |names| names.kind);
        note(kind != Some(inode.kind()), ObjectFault::Kind);
        // A directory has one name, and the root has none.
        let counted = match inode.content {
            Content::Directory { .. } => u64::from(is_living && self.ino != ROOT),
            _ => u64::from(inode.links),
        };
        note(counted != found, ObjectFault::Links { counted, found });
        note(!is_living && !self.is_marked, ObjectFault::Unmarked);
        note(is_living && self.is_marked, ObjectFault::Marked);
        note(self.has_xattrs && !inode.has_xattrs, ObjectFault::Attributes);
        let has_bytes = self.body.is_some() || self.is_cut || self.sums.used > 0;
        note(has_bytes && inode.kind() != Kind::Regular, ObjectFault::NoFile);
        match inode.content {
            Content::Directory { parent, entries } if is_living => {
                note(entries != self.entries, ObjectFault::Entries { counted: entries, found: self.entries });
                let above = self.names.map_or(ROOT, |names| names.parent);
                note(above != parent, ObjectFault::Parent);
            }
            _ => note(self.entries > 0, ObjectFault::NoDirectory),
        }
        faults
    }
}

impl TreeFound {
    fn judge(&mut self, object: &ObjectRecords) {
        let is_root = object.ino == ROOT;
        match &object.inode {
            Some(inode) if inode.links > 0 => {
                self.living += u64::from(!is_root);
                if let Content::Directory { parent, .. } = inode.content {
                    self.has_root |= is_root;
                    self.parents.insert(object.ino, parent);
                }
            }
            _ => {}
        }
        if !object.is_malformed {
            // The root's absence is reported once.
            let faults = object.faults().into_iter().filter(|_| !is_root || object.inode.is_some());
            self.faults.extend(faults.map(|fault| (object.ino, fault)));
        }
    }

    /// Notes the directories from which no path leads up to the root.
    fn find_lost(&mut self) {
        let (mut below_root, mut lost) = (BTreeSet::from([ROOT]), BTreeSet::new());
        for ino in self.parents.keys() {
            let (mut way, mut at) = (BTreeSet::new(), *ino);
            while !below_root.contains(&at) && !lost.contains(&at) && way.insert(at) {
                match self.parents.get(&at) {
                    Some(parent) => at = *parent,
                    None => break,
                }
            }
            let found = if below_root.contains(&at) { &mut below_root } else { &mut lost };
            found.extend(way);
        }
        self.faults.extend(lost.into_iter().map(|ino| (ino, ObjectFault::Lost)));
    }
}

/// The names of one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamesOf {
    pub(super) count: u64,
    /// The directory of one of them.
    pub(super) parent: u64,
    /// The kind that they record, if all record the same.
    pub(super) kind: Option<Kind>,
}

/// What all names record.
#[derive(Debug, Default)]
pub(super) struct NamesFound {
    pub(super) of_objects: BTreeMap<u64, NamesOf>,
    /// The number of names in each directory.
    pub(super) entries: BTreeMap<u64, u64>,
}

impl<O: Objects, R: RecordDatabase, C: Clock> Check<'_, O, R, C> {
    pub(super) async fn names(&mut self) -> Result<NamesFound, ObjectVolumeError> {
        let mut names = NamesFound::default();
        let mut scan = PagedScan::new(vec![b'd'], vec![b'd' + 1], Durability::Remote);
        while let Some(found) = scan.next(self.records).await? {
            for (key, value) in found {
                if let Some(entry) = self.well_formed(&key, Entry::decode(&key, &value)) {
                    self.report.names += 1;
                    names.add(Entry::parent(&key), &entry);
                }
            }
        }
        Ok(names)
    }
}

impl NamesFound {
    fn add(&mut self, parent: u64, entry: &Entry) {
        *self.entries.entry(parent).or_default() += 1;
        let new = || NamesOf { count: 0, parent, kind: Some(entry.kind) };
        let names = self.of_objects.entry(entry.ino).or_insert_with(new);
        names.count += 1;
        names.kind = names.kind.filter(|kind| *kind == entry.kind);
    }
}

/// The sums over one file's extents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtentSums {
    pub(super) used: u64,
    pub(super) end: u64,
    pub(super) overlap: bool,
}

impl ExtentSums {
    pub(super) fn add(&mut self, extent: &StoredExtent) {
        self.overlap |= extent.start < self.end;
        self.used = self.used.saturating_add(extent.bytes());
        self.end = extent.end;
    }
}

impl<O: Objects, R: RecordDatabase, C: Clock> Check<'_, O, R, C> {
    pub(super) async fn extent(&mut self, ino: u64, extent: &StoredExtent) {
        self.report.extents += 1;
        let ExtentSource::Segment(place) = &extent.source else { return };
        self.live.entry(place.segment).or_default().1 += extent.bytes();
        let runs = self.runs.get(&place.segment);
        let run = runs.and_then(|runs| Some(&runs[runs.binary_search_by_key(&place.offset, |run| run.offset).ok()?]));
        let is_readable = run.is_some_and(|run| run.has(place, extent.bytes() as u32));
        if !is_readable && !self.report.unread.contains_key(&place.segment) {
            self.read_lines(ino, extent, place).await;
        }
    }

    /// Reads an extent line by line, and notes those that cannot be read.
    async fn read_lines(&mut self, ino: u64, extent: &StoredExtent, place: &SegmentRange) {
        let mut start = extent.start;
        while start < extent.end {
            let skipped = place.skipped + (start - extent.start) as u32;
            let end = extent.end.min(start + u64::from(LINE_BYTES - skipped % LINE_BYTES));
            if let Err(error) = self.line(&SegmentRange { skipped, ..place.clone() }, (end - start) as u32).await {
                self.note_unreadable(place, error, FileRange { ino, start, end });
            }
            start = end;
        }
    }

    async fn line(&self, line: &SegmentRange, bytes: u32) -> Result<(), ObjectVolumeError> {
        let fetched = self.get(line.segment, lines(line, bytes)).await?;
        check_lines(line, bytes, &fetched)?;
        Ok(())
    }

    fn note_unreadable(&mut self, place: &SegmentRange, error: ObjectVolumeError, range: FileRange) {
        if !matches!(error, ObjectVolumeError::Damaged(_) | ObjectVolumeError::Missing(_)) {
            self.report.unread.insert(place.segment, error.to_string());
            return;
        }
        let (_, ranges) = self.report.damaged.entry(place.segment).or_insert((error, Vec::new()));
        match ranges.last_mut().filter(|last| last.ino == range.ino && last.end == range.start) {
            Some(last) => last.end = range.end,
            None => ranges.push(range),
        }
    }
}
