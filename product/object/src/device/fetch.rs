//! The GETs of a read.
//!
//! Owns: which lines one GET fetches: those of a segment that lie together, in parts of 4 MiB, all parts at once.
//! Does not own: the map of the file (`read`), checksums (`format::segment`).
//! Invariants: bytes are returned only after their checksums matched.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;

use super::line_cache::{LineCache, PART_BYTES};
use crate::error::ObjectVolumeError;
use crate::format::extent::{Extent, Place, Source};
use crate::format::segment;
use crate::format::segment_id::SegmentId;
use crate::open::ObjectVolume;
use crate::retry::until_answered;
use crate::seams::{Clock, ObjectError, Objects, Records};

/// The most bytes of a GET.
const GET_BYTES: u64 = 4 << 20;
/// A gap that is cheaper to fetch than a GET of its own.
const GAP_BYTES: u64 = 256 << 10;
/// A run below this size takes its neighbours along.
const SMALL_RUN_BYTES: u32 = 256 << 10;

/// Bytes of a segment that extents need.
struct Span {
    segment: SegmentId,
    bytes: Range<u64>,
    /// All runs in it are small.
    is_small: bool,
}

/// The spans of the extents in the order of segments.
fn spans(extents: &[Extent]) -> Vec<Span> {
    let places = extents.iter().filter_map(|extent| match &extent.source {
        Source::Segment(place) => Some((place, segment::lines(place, extent.bytes() as u32))),
        Source::Inline(_) => None,
    });
    let mut needed: Vec<(&Place, Range<u64>)> = places.collect();
    needed.sort_by_key(|(place, lines)| (place.segment, lines.start));
    let mut spans: Vec<Span> = Vec::new();
    for (place, lines) in needed {
        let is_small = place.run < SMALL_RUN_BYTES;
        match spans.last_mut() {
            Some(last) if last.segment == place.segment && lines.start <= last.bytes.end + GAP_BYTES => {
                last.bytes.end = last.bytes.end.max(lines.end);
                last.is_small &= is_small;
            }
            _ => spans.push(Span { segment: place.segment, bytes: lines, is_small }),
        }
    }
    spans
}

impl<O: Objects, R: Records, C: Clock> ObjectVolume<O, R, C> {
    /// The bytes of a range that these extents lie in; the rest are zeros.
    pub(crate) async fn fetch_extents(
        &self,
        cache: Option<&LineCache>,
        extents: &[Extent],
        range: Range<u64>,
    ) -> Result<Vec<u8>, ObjectVolumeError> {
        let spans = spans(extents);
        let fetched = try_join_all(spans.iter().map(|span| self.fetch_span(cache, span))).await?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        for extent in extents {
            let into = &mut bytes[(extent.start - range.start) as usize..(extent.end - range.start) as usize];
            match &extent.source {
                Source::Inline(inline) => into.copy_from_slice(inline),
                Source::Segment(place) => {
                    let lines = segment::lines(place, extent.bytes() as u32);
                    let holds = |span: &Span| span.segment == place.segment && span.bytes.contains(&lines.start);
                    let at = spans.iter().position(holds).ok_or(ObjectVolumeError::Missing(place.segment))?;
                    let from = ((lines.start - spans[at].bytes.start) as usize).min(fetched[at].len());
                    let to = ((lines.end - spans[at].bytes.start) as usize).min(fetched[at].len());
                    into.copy_from_slice(&segment::check_lines(place, extent.bytes() as u32, &fetched[at][from..to])?);
                }
            }
        }
        Ok(bytes)
    }

    async fn fetch_span(&self, cache: Option<&LineCache>, span: &Span) -> Result<Bytes, ObjectVolumeError> {
        let Range { start, end } = span.bytes;
        if let Some(cache) = cache.filter(|_| span.is_small && end - start <= PART_BYTES) {
            let numbers = start / PART_BYTES..end.div_ceil(PART_BYTES);
            let first = numbers.start * PART_BYTES;
            let parts = numbers.map(|number| {
                let bytes = number * PART_BYTES..(number + 1) * PART_BYTES;
                cache.part(span.segment, number, self.get(span.segment, bytes))
            });
            let bytes = joined(try_join_all(parts).await.map_err(|error| failed(span.segment, error))?);
            let length = bytes.len() as u64;
            return Ok(bytes.slice((start - first).min(length) as usize..(end - first).min(length) as usize));
        }
        let starts = (start..end).step_by(GET_BYTES as usize);
        let gets = starts.map(|from| self.get(span.segment, from..end.min(from + GET_BYTES)));
        Ok(joined(try_join_all(gets).await.map_err(|error| failed(span.segment, error))?))
    }

    async fn get(&self, segment: SegmentId, bytes: Range<u64>) -> Result<Bytes, ObjectError> {
        let name = segment.name();
        until_answered(&self.clock, || self.objects.get(&name, bytes.clone())).await
    }
}

fn joined(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut all = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| all.extend_from_slice(part));
    all.freeze()
}

fn failed(segment: SegmentId, error: ObjectError) -> ObjectVolumeError {
    match error {
        ObjectError::Refused(why) => ObjectVolumeError::Refused(why),
        _ => ObjectVolumeError::Missing(segment),
    }
}
