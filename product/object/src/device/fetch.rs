//! The GETs of a read.
//!
//! Owns: which lines one GET fetches: those of a segment that lie together, in parts of 4 MiB, all parts at once.
//! Does not own: the map of the file (`read`), checksums (`format::segment`).
//! Invariants: bytes are copied out of the pieces that the store sent, once, and after their checksums matched.

use std::ops::Range;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::line_cache::{LineCache, PART_BYTES};
use crate::error::{ObjectVolumeError, refused};
use crate::format::extent::{ExtentSource, SegmentRange, StoredExtent};
use crate::format::pieces::Pieces;
use crate::format::segment;
use crate::format::segment_id::SegmentId;
use crate::open::ObjectVolume;
use crate::retry::until_answered;
use crate::seams::{Arrivals, ByteParts, Clock, ObjectError, Objects, RecordDatabase};

/// The most bytes of a GET.
const GET_BYTES: u64 = 4 << 20;
/// A gap that is cheaper to fetch than a GET of its own.
const GAP_BYTES: u64 = 256 << 10;
/// A run below this size takes its neighbours along.
const SMALL_RUN_BYTES: u32 = 256 << 10;
/// The bytes of a hole.
const ZEROS: [u8; 16 << 10] = [0; 16 << 10];

/// The way of a read's GETs.
#[derive(Clone, Copy)]
pub(crate) struct Via<'a> {
    /// For the lines around small extents.
    pub(crate) cache: Option<&'a LineCache>,
    /// Learns of the bytes as they come.
    pub(crate) arrivals: &'a Arrivals,
}

impl Via<'_> {
    /// GETs for this read alone.
    pub(crate) const PLAIN: Self = Self { cache: None, arrivals: Arrivals::NONE };
}

/// Bytes of a segment that extents need.
struct Span {
    segment: SegmentId,
    bytes: Range<u64>,
    /// All runs in it are small.
    is_small: bool,
}

/// The spans of the extents in the order of segments.
fn spans(extents: &[StoredExtent]) -> Vec<Span> {
    let places = extents.iter().filter_map(|extent| match &extent.source {
        ExtentSource::Segment(place) => Some((place, segment::lines(place, extent.bytes() as u32))),
        ExtentSource::Inline(_) => None,
    });
    let mut needed: Vec<(&SegmentRange, Range<u64>)> = places.collect();
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

/// The fetched bytes of a span.
struct Fetched {
    span: Span,
    pieces: Vec<Bytes>,
}

impl Fetched {
    /// The lines at this place, and all that is behind them.
    fn lines_from(&self, offset: u64) -> Pieces<'_> {
        Pieces::behind(&self.pieces, (offset - self.span.bytes.start) as usize)
    }
}

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Calls `copy` with the bytes of a range and their place in it. The extents lie in the range, and the rest is
    /// zeros.
    pub(crate) async fn fetch_extents(
        &self,
        via: Via<'_>,
        extents: &[StoredExtent],
        range: Range<u64>,
        copy: &mut (impl FnMut(usize, &[u8]) + Send),
    ) -> Result<(), ObjectVolumeError> {
        let fetched = try_join_all(spans(extents).into_iter().map(|span| self.fetch_span(via, span))).await?;
        let mut at = range.start;
        for extent in extents {
            zeros(&(at - range.start..extent.start - range.start), copy);
            at = extent.end;
            let into = (extent.start - range.start) as usize;
            match &extent.source {
                ExtentSource::Inline(inline) => copy(into, inline),
                ExtentSource::Segment(place) => {
                    let lines = segment::lines(place, extent.bytes() as u32);
                    let holds = |fetched: &&Fetched| {
                        fetched.span.segment == place.segment && fetched.span.bytes.contains(&lines.start)
                    };
                    let fetched = fetched.iter().find(holds).ok_or(ObjectVolumeError::Missing(place.segment))?;
                    let lines = fetched.lines_from(lines.start);
                    segment::copy_lines(place, extent.bytes() as u32, lines, |at, bytes| copy(into + at, bytes))?;
                }
            }
        }
        zeros(&(at - range.start..range.end - range.start), copy);
        Ok(())
    }

    async fn fetch_span(&self, via: Via<'_>, span: Span) -> Result<Fetched, ObjectVolumeError> {
        let pieces = match via.cache.filter(|_| span.is_small && span.bytes.end - span.bytes.start <= PART_BYTES) {
            Some(cache) => self.cached_pieces(cache, &span).await,
            None => self.pieces(&span, via.arrivals).await,
        };
        Ok(Fetched { pieces: pieces.map_err(|error| failed(span.segment, error))?, span })
    }

    async fn pieces(&self, span: &Span, arrivals: &Arrivals) -> Result<Vec<Bytes>, ObjectError> {
        let Range { start, end } = span.bytes;
        let starts = (start..end).step_by(GET_BYTES as usize);
        let gets = starts.map(|from| self.get(span.segment, from..end.min(from + GET_BYTES), arrivals));
        Ok(try_join_all(gets).await?.into_iter().flat_map(|parts| parts.0).collect())
    }

    async fn cached_pieces(&self, cache: &LineCache, span: &Span) -> Result<Vec<Bytes>, ObjectError> {
        let Range { start, end } = span.bytes;
        let numbers = start / PART_BYTES..end.div_ceil(PART_BYTES);
        let parts = numbers.clone().map(|number| {
            let bytes = number * PART_BYTES..(number + 1) * PART_BYTES;
            cache
                .part(span.segment, number, async { Ok(self.get(span.segment, bytes, Arrivals::NONE).await?.joined()) })
        });
        let mut pieces = try_join_all(parts).await?;
        if let Some(first) = pieces.first_mut() {
            *first = first.slice(((start % PART_BYTES) as usize).min(first.len())..);
        }
        Ok(pieces)
    }

    async fn get(&self, segment: SegmentId, bytes: Range<u64>, arrivals: &Arrivals) -> Result<ByteParts, ObjectError> {
        let name = segment.name();
        until_answered(&self.clock, || self.objects.get_counted(&name, bytes.clone(), arrivals)).await
    }
}

/// Copies zeros to a range.
fn zeros(range: &Range<u64>, copy: &mut impl FnMut(usize, &[u8])) {
    for at in range.clone().step_by(ZEROS.len()) {
        copy(at as usize, &ZEROS[..(range.end - at).min(ZEROS.len() as u64) as usize]);
    }
}

fn failed(segment: SegmentId, error: ObjectError) -> ObjectVolumeError {
    match error {
        ObjectError::Missing => ObjectVolumeError::Missing(segment),
        error => refused(error),
    }
}
