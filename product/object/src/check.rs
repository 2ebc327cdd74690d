//! The check of a whole volume.
//!
//! Owns: the report, the comparison of segments with their records.
//! Does not own: names, inodes, bodies and the bytes of extents (`objects`), repair.
//! Invariants: it changes nothing. Damage in one segment or record hides none in another. A segment that the store does
//! not give is reported, and is no damage. It is exact only while nobody writes. Its memory is some 50 bytes for each
//! object, 24 for each run of a segment, and two for each line of a compressed run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{ObjectVolumeError, refused};
use crate::format::FormatError;
use crate::format::compression::StoredLines;
use crate::format::extent::{SegmentId, SegmentRange};
use crate::format::records::{Lineage, SegmentBytes, SegmentRecord, VolumeHeader};
use crate::format::segment::{OBJECT_BYTES_MAX, check_lines, directory, lines, part, stored_lines};
use crate::open::get;
use crate::retry::until_answered;
use crate::seams::{Clock, Durability, Key, ObjectError, Objects, PagedScan, RecordDatabase, Value};

mod objects;

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// Inode number of the file.
    pub ino: u64,
    /// The first byte.
    pub start: u64,
    /// The end of the bytes.
    pub end: u64,
}

/// Records of an object that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectFault {
    /// Names lead to nothing. The root counts as named.
    #[error("its inode is missing")]
    NoInode,
    /// Bytes, attributes, entries or a mark belong to nothing.
    #[error("no inode has these records")]
    NoObject,
    /// A name and the inode record different kinds.
    #[error("a name says that it is of another kind")]
    Kind,
    /// A wrong number of names.
    #[error("its inode counts {counted} names, and {found} lead to it")]
    Links {
        /// By the inode.
        counted: u64,
        /// By the names.
        found: u64,
    },
    /// A wrong number of entries.
    #[error("its inode counts {counted} entries, and it has {found}")]
    Entries {
        /// By the inode.
        counted: u64,
        /// By the names.
        found: u64,
    },
    /// Entries of an object that has none.
    #[error("it has entries, and is no directory with a name")]
    NoDirectory,
    /// A directory whose inode has another parent than its name.
    #[error("its inode is in another directory than its name")]
    Parent,
    /// A directory that is not below the root.
    #[error("no way leads to it from the root")]
    Lost,
    /// It has no name, and no mark for the removal. Nobody would ever remove it.
    #[error("it has neither a name nor a mark for its removal")]
    Unmarked,
    /// It has a name, and a mark for the removal.
    #[error("it has a name and a mark for its removal")]
    Marked,
    /// Bytes of an object that has none.
    #[error("it has bytes, and is no file")]
    NoFile,
    /// Attributes that no call finds.
    #[error("its inode says that it has no extended attributes, and there are some")]
    Attributes,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Segments with a record.
    pub segments: u64,
    /// Extents of all files.
    pub extents: u64,
    /// Missing and damaged segments, with the bytes that cannot be read.
    pub damaged: BTreeMap<SegmentId, (ObjectVolumeError, Vec<FileRange>)>,
    /// Segments that the store did not give, and why. Whether they are damaged is unknown.
    pub unread: BTreeMap<SegmentId, String>,
    /// Segments in the store without a record.
    pub orphans: Vec<SegmentId>,
    /// Segments whose live bytes are counted as the first number, and are the second.
    pub miscounted: BTreeMap<SegmentId, (u64, u64)>,
    /// Files whose extents do not fit to size or used bytes.
    pub misfits: Vec<u64>,
    /// Count of inodes that were read.
    pub inodes: u64,
    /// Count of directory entries that were read.
    pub names: u64,
    /// Objects whose records contradict each other.
    pub faults: Vec<(u64, ObjectFault)>,
    /// Records that no version writes, by their keys.
    pub malformed: BTreeMap<Key, FormatError>,
    /// The number of objects with a name, as it is counted and as it is, if these differ.
    pub miscounted_objects: Option<(u64, u64)>,
}

impl CheckReport {
    /// Nothing is wrong. Orphans are no fault: a sweep removes them.
    pub fn is_sound(&self) -> bool {
        !self.is_damaged() && self.unread.is_empty()
    }

    /// The part that could be read has a fault.
    pub fn is_damaged(&self) -> bool {
        let is_whole = self.damaged.is_empty() && self.miscounted.is_empty() && self.misfits.is_empty();
        !(is_whole && self.faults.is_empty() && self.malformed.is_empty() && self.miscounted_objects.is_none())
    }
}

/// Reads a whole volume and compares it with its records.
///
/// # Errors
/// If the records are unreadable, or the store refuses several segments one after another. Damaged segments and records
/// are no error.
pub async fn check<O: Objects, R: RecordDatabase, C: Clock>(
    objects: &O,
    records: &R,
    clock: &C,
) -> Result<CheckReport, ObjectVolumeError> {
    let mut check =
        Check { objects, records, clock, report: CheckReport::default(), live: BTreeMap::new(), runs: BTreeMap::new() };
    check.head().await?;
    let names = until_answered(clock, || objects.list(SegmentId::FOLDER)).await.map_err(refused)?;
    let mut stored: BTreeSet<_> = names.iter().filter_map(|name| SegmentId::parse(name).ok()).collect();
    check.segments(&mut stored).await?;
    check.report.orphans = stored.into_iter().collect();
    let names = check.names().await?;
    check.inodes(names).await?;
    let differ = check.live.into_iter().filter(|(_, (counted, live))| counted != live);
    check.report.miscounted = differ.collect();
    Ok(check.report)
}

struct Check<'a, O, R, C> {
    objects: &'a O,
    records: &'a R,
    clock: &'a C,
    report: CheckReport,
    /// Live bytes of segments: counted, and found.
    live: BTreeMap<SegmentId, (u64, u64)>,
    /// The runs of each segment that could be read whole, by their offsets. Any file may share their bytes.
    runs: BTreeMap<SegmentId, Vec<ReadRun>>,
}

/// The pauses before further lookups of a segment that a list has shown.
const PAUSES_NS: [u64; 3] = [500_000_000, 1_000_000_000, 2_000_000_000];
/// After so many refused segments in a row, the check ends: the store refuses all.
const REFUSED_MAX: u32 = 3;

/// A run that could be read.
struct ReadRun {
    offset: u32,
    bytes: u32,
    stored: Option<Arc<StoredLines>>,
}

impl ReadRun {
    /// Whether the extent's record has the same lines as the directory.
    fn has(&self, place: &SegmentRange, bytes: u32) -> bool {
        let codec = |stored: &Option<Arc<StoredLines>>| stored.as_ref().map(|stored| stored.codec);
        let in_directory = SegmentRange { stored: self.stored.clone(), ..place.clone() };
        self.bytes == place.run
            && codec(&self.stored) == codec(&place.stored)
            && stored_lines(&in_directory, bytes).eq(stored_lines(place, bytes))
    }
}

impl<O: Objects, R: RecordDatabase, C: Clock> Check<'_, O, R, C> {
    /// Notes a malformed record. Returns the other ones.
    fn well_formed<T>(&mut self, key: &[u8], decoded: Result<T, FormatError>) -> Option<T> {
        decoded.map_err(|error| self.report.malformed.insert(key.to_vec(), error)).ok()
    }

    /// The records of the volume as a whole.
    async fn head(&mut self) -> Result<(), ObjectVolumeError> {
        let is_header = |value: Value| VolumeHeader::decode(&value).map(drop);
        let is_lineage = |value: Value| Lineage::decode(&value).map(drop);
        let header = get(self.records, VolumeHeader::KEY).await?.ok_or(ObjectVolumeError::NoVolume)?;
        self.well_formed(VolumeHeader::KEY, is_header(header));
        let lineage = get(self.records, Lineage::KEY).await?.unwrap_or_default();
        self.well_formed(Lineage::KEY, is_lineage(lineage));
        Ok(())
    }

    async fn segments(&mut self, stored: &mut BTreeSet<SegmentId>) -> Result<(), ObjectVolumeError> {
        let (from, end) = SegmentRecord::Live.keys();
        let mut scan = PagedScan::new(from, end, Durability::Remote);
        let mut refused = 0;
        while let Some(found) = scan.next(self.records).await? {
            for (key, value) in found {
                let decoded = SegmentRecord::Live.decode(&key, &value);
                let Some((segment, sum)) = self.well_formed(&key, decoded) else { continue };
                let live = SegmentBytes::of(sum).live;
                let is_there = stored.remove(&segment);
                self.live.insert(segment, (live, 0));
                self.report.segments += 1;
                // A dead segment may be deleted already.
                if !is_there && live == 0 {
                    continue;
                }
                match self.whole(segment, is_there).await {
                    Ok(runs) => (refused, _) = (0, self.runs.insert(segment, runs)),
                    Err(error @ (ObjectVolumeError::Damaged(_) | ObjectVolumeError::Missing(_))) => {
                        refused = 0;
                        self.report.damaged.insert(segment, (error, Vec::new()));
                    }
                    Err(error) => {
                        refused += 1;
                        if refused == REFUSED_MAX {
                            return Err(error);
                        }
                        self.report.unread.insert(segment, error.to_string());
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a segment whole. One that a list has shown is looked for again: a gateway may not find what is there.
    /// Returns its runs.
    async fn whole(&self, segment: SegmentId, is_there: bool) -> Result<Vec<ReadRun>, ObjectVolumeError> {
        let mut object = self.get(segment, 0..OBJECT_BYTES_MAX).await;
        for pause_ns in PAUSES_NS {
            if is_there && object == Err(ObjectVolumeError::Missing(segment)) {
                self.clock.sleep_until_ns(self.clock.now_ns().saturating_add(pause_ns)).await;
                object = self.get(segment, 0..OBJECT_BYTES_MAX).await;
            }
        }
        let (object, mut runs) = (object?, Vec::new());
        for entry in directory(segment, &object)? {
            let place = entry.place(segment);
            check_lines(&place, entry.bytes, &part(&object, &lines(&place, entry.bytes)))?;
            runs.push(ReadRun { offset: entry.offset, bytes: entry.bytes, stored: entry.stored });
        }
        runs.sort_unstable_by_key(|run| run.offset);
        Ok(runs)
    }

    async fn get(&self, segment: SegmentId, range: std::ops::Range<u64>) -> Result<Bytes, ObjectVolumeError> {
        let name = segment.name();
        match until_answered(self.clock, || self.objects.get(&name, range.clone())).await {
            Err(ObjectError::Missing) => Err(ObjectVolumeError::Missing(segment)),
            object => Ok(object.map_err(refused)?.joined()),
        }
    }
}
