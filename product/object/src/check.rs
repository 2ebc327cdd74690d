//! The check of a whole volume.
//!
//! Owns: the comparison of objects, lines, records of segments, extents and bodies.
//! Does not own: repair.
//! Invariants: it changes nothing. Damage in one segment hides none in another. A segment that the store does not give
//! is reported, and is no damage. It is exact only while nobody writes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::error::{ObjectVolumeError, refused};
use crate::format::extent::{ExtentSource, SegmentPlace, StoredExtent};
use crate::format::records::{Body, SegmentBytes, SegmentRecord, file_key};
use crate::format::segment::{LINE_BYTES, OBJECT_BYTES_MAX, check_lines, directory, lines};
use crate::format::segment_id::SegmentId;
use crate::open::get;
use crate::pages::next_page;
use crate::retry::until_answered;
use crate::seams::{Clock, Durability, ObjectError, Objects, RecordDatabase};

const PAGE: usize = 4_096;

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The file.
    pub ino: u64,
    /// The first byte.
    pub start: u64,
    /// The end of the bytes.
    pub end: u64,
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
}

impl CheckReport {
    /// Nothing is wrong. Orphans are no fault: a sweep removes them.
    pub fn is_sound(&self) -> bool {
        !self.is_damaged() && self.unread.is_empty()
    }

    /// The part that could be read has a fault.
    pub fn is_damaged(&self) -> bool {
        !(self.damaged.is_empty() && self.miscounted.is_empty() && self.misfits.is_empty())
    }
}

/// Reads a whole volume and compares it with its records.
///
/// # Errors
/// If the records are unreadable or malformed, or the store refuses several segments one after another. Damaged
/// segments are no error.
pub async fn check<O: Objects, R: RecordDatabase, C: Clock>(
    objects: &O,
    records: &R,
    clock: &C,
) -> Result<CheckReport, ObjectVolumeError> {
    let mut check = Check { objects, records, clock, report: CheckReport::default(), live: BTreeMap::new() };
    let names = until_answered(clock, || objects.list(SegmentId::FOLDER)).await.map_err(refused)?;
    let mut stored: BTreeSet<_> = names.iter().filter_map(|name| SegmentId::parse(name).ok()).collect();
    check.segments(&mut stored).await?;
    check.report.orphans = stored.into_iter().collect();
    check.files().await?;
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
}

/// The pauses before further looks for a segment that a list has shown.
const PAUSES_NS: [u64; 3] = [500_000_000, 1_000_000_000, 2_000_000_000];
/// After so many refused segments in a row, the check ends: the store refuses all.
const REFUSED_MAX: u32 = 3;

/// The sums over one file's extents.
#[derive(Default)]
struct Sums {
    ino: u64,
    used: u64,
    end: u64,
}

impl<O: Objects, R: RecordDatabase, C: Clock> Check<'_, O, R, C> {
    async fn segments(&mut self, stored: &mut BTreeSet<SegmentId>) -> Result<(), ObjectVolumeError> {
        let (mut from, end) = SegmentRecord::Live.keys();
        let mut refused = 0;
        while from < end {
            let found = self.records.scan_first(from, end.clone(), Durability::Remote, PAGE).await?;
            from = next_page(&found, PAGE, &end);
            for (key, value) in found {
                let (segment, sum) = SegmentRecord::Live.decode(&key, &value)?;
                let live = SegmentBytes::of(sum).live;
                let is_there = stored.remove(&segment);
                self.live.insert(segment, (live, 0));
                self.report.segments += 1;
                // A dead segment may be deleted already.
                if !is_there && live == 0 {
                    continue;
                }
                match self.whole(segment, is_there).await {
                    Ok(()) => refused = 0,
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
    async fn whole(&self, segment: SegmentId, is_there: bool) -> Result<(), ObjectVolumeError> {
        let mut object = self.get(segment, 0..OBJECT_BYTES_MAX).await;
        for pause_ns in PAUSES_NS {
            if is_there && object == Err(ObjectVolumeError::Missing(segment)) {
                self.clock.sleep_until_ns(self.clock.now_ns().saturating_add(pause_ns)).await;
                object = self.get(segment, 0..OBJECT_BYTES_MAX).await;
            }
        }
        let object = object?;
        for entry in directory(segment, &object)? {
            let place = SegmentPlace { segment, offset: entry.offset, skipped: 0, run: entry.bytes };
            let lines = lines(&place, entry.bytes);
            check_lines(&place, entry.bytes, &object.slice(lines.start as usize..lines.end as usize))?;
        }
        Ok(())
    }

    async fn get(&self, segment: SegmentId, range: std::ops::Range<u64>) -> Result<Bytes, ObjectVolumeError> {
        let name = segment.name();
        match until_answered(self.clock, || self.objects.get(&name, range.clone())).await {
            Err(ObjectError::Missing) => Err(ObjectVolumeError::Missing(segment)),
            object => Ok(object.map_err(refused)?.joined()),
        }
    }

    async fn files(&mut self) -> Result<(), ObjectVolumeError> {
        let (mut from, end) = (vec![b'x'], vec![b'x' + 1]);
        let mut sums = Sums::default();
        while from < end {
            let found = self.records.scan_first(from, end.clone(), Durability::Remote, PAGE).await?;
            from = next_page(&found, PAGE, &end);
            for (key, value) in found {
                let (ino, extent) = StoredExtent::decode(&key, &value)?;
                if ino != sums.ino {
                    self.fits(std::mem::take(&mut sums)).await?;
                    sums.ino = ino;
                }
                if extent.start < sums.end {
                    self.report.misfits.push(ino);
                }
                sums.used += extent.bytes();
                sums.end = extent.end;
                self.extent(ino, &extent).await;
            }
        }
        self.fits(sums).await
    }

    async fn extent(&mut self, ino: u64, extent: &StoredExtent) {
        self.report.extents += 1;
        let ExtentSource::Segment(place) = &extent.source else { return };
        self.live.entry(place.segment).or_default().1 += extent.bytes();
        if !self.report.damaged.contains_key(&place.segment) {
            return;
        }
        let mut start = extent.start;
        while start < extent.end {
            let skipped = place.skipped + (start - extent.start) as u32;
            let end = extent.end.min(start + u64::from(LINE_BYTES - skipped % LINE_BYTES));
            let (line, bytes) = (SegmentPlace { skipped, ..*place }, (end - start) as u32);
            let fetched = self.get(place.segment, lines(&line, bytes)).await;
            let is_readable = fetched.is_ok_and(|fetched| check_lines(&line, bytes, &fetched).is_ok());
            if !is_readable && let Some((_, ranges)) = self.report.damaged.get_mut(&place.segment) {
                match ranges.last_mut().filter(|last| last.ino == ino && last.end == start) {
                    Some(last) => last.end = end,
                    None => ranges.push(FileRange { ino, start, end }),
                }
            }
            start = end;
        }
    }

    /// Compares a file's extents with its body.
    async fn fits(&mut self, sums: Sums) -> Result<(), ObjectVolumeError> {
        if sums.used == 0 {
            return Ok(());
        }
        let body = get(self.records, &Body::key(sums.ino)).await?;
        let body = body.map_or(Ok(Body::default()), |value| Body::decode(&value))?;
        let is_cut = get(self.records, &file_key(b't', sums.ino)).await?.is_some();
        let is_removed = get(self.records, &file_key(b'o', sums.ino)).await?.is_some();
        if body.used != sums.used || (body.size < sums.end && !is_cut && !is_removed) {
            self.report.misfits.push(sums.ino);
        }
        Ok(())
    }
}
