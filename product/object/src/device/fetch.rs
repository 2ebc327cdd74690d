//! The GETs of a read, the raw lines around small extents, and the queue of reads ahead at the store.
//!
//! Files made together lie together in a segment. A read of one file fetches the lines of its neighbours, too. Later
//! reads find these lines in the cache of lines.
//!
//! Calls that begin together share the bandwidth, so they also end together. If their reader alone began the next ones,
//! the store would idle for a round trip after each such end. Therefore more is read ahead than is in flight, and each
//! piece that comes frees quota for the next call. So calls begin as evenly as bytes come.
//!
//! Owns: which lines one GET fetches: those of a segment that lie together, in parts of 4 MiB, all parts at once. Also:
//! at most 64 parts of segments as the store holds them, of a MiB each, with one GET at a time for each part. Also: how
//! many bytes are read ahead at once, and the order of reads that wait.
//! Does not own: the map of the file (`read`), checksums (`format::segment`), how far ahead of a reader is read (the
//! engine).
//! Invariants: bytes are copied out of the pieces that the store sent, once, and after their checksums matched.
//! Segments do not change, so no part grows stale. Reads ahead begin in their order. A read for which a caller waits
//! does not wait with them. A read ahead that waits is not given up: it would lose its position in the queue.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_channel::oneshot::{self, Receiver, Sender};
use futures_util::future::try_join_all;
use futures_util::lock;

use crate::error::{ObjectVolumeError, refused};
use crate::format::compression::Decoder;
use crate::format::extent::{ExtentSource, SegmentId, SegmentRange, StoredExtent};
use crate::format::segment::{self, LineReader, Pieces};
use crate::open::ObjectVolume;
use crate::retry::{until_answered, yield_once};
use crate::seams::{Arrivals, ByteParts, Clock, ObjectError, Objects, RecordDatabase};

/// The most bytes of a GET.
const GET_BYTES: u64 = 4 << 20;
/// A gap that is cheaper to fetch than a GET of its own.
const GAP_BYTES: u64 = 256 << 10;
/// A run below this size takes its neighbours along.
const SMALL_RUN_BYTES: u32 = 256 << 10;
/// So many compressed lines are read without a pause.
const LINES_TOGETHER: usize = 8;
/// The bytes of a hole.
const ZEROS: [u8; 16 << 10] = [0; 16 << 10];

/// The cache and the observer of a read's GETs.
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
    /// The lines at this offset, and all that is behind them.
    fn lines_from(&self, offset: u64) -> Pieces<'_> {
        Pieces::behind(&self.pieces, (offset - self.span.bytes.start) as usize)
    }
}

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Calls `copy` with the bytes of a range and their offset in it. The extents lie in the range, and the rest is
    /// zeros.
    pub(crate) async fn fetch_extents(
        &self,
        via: Via<'_>,
        extents: &[StoredExtent],
        range: Range<u64>,
        copy: &mut (impl FnMut(usize, &[u8]) + Send),
    ) -> Result<(), ObjectVolumeError> {
        let fetched = try_join_all(spans(extents).into_iter().map(|span| self.fetch_span(via, span))).await?;
        let (mut at, mut decoder) = (range.start, Decoder::default());
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
                    let mut reader = LineReader::new(place, extent.bytes() as u32, lines);
                    let mut number = 0;
                    while reader.next(&mut decoder, |at, bytes| copy(into + at, bytes))? {
                        number += 1;
                        if number % LINES_TOGETHER == 0 && place.stored.is_some() {
                            yield_once().await;
                        }
                    }
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

/// Bytes of a part.
pub(crate) const PART_BYTES: u64 = 1 << 20;
/// Parts that are cached.
const PARTS: usize = 64;

/// A part of a segment: absent until the first reader has fetched it.
type Part = Arc<lock::Mutex<Option<Bytes>>>;

#[derive(Debug, Default)]
pub(crate) struct LineCache {
    /// The newest last.
    parts: Mutex<VecDeque<((SegmentId, u64), Part)>>,
}

impl LineCache {
    /// The part of a segment with this number, fetched if it is not here.
    pub(crate) async fn part<F>(&self, segment: SegmentId, number: u64, fetch: F) -> Result<Bytes, ObjectError>
    where
        F: Future<Output = Result<Bytes, ObjectError>>,
    {
        let part = self.entry((segment, number));
        let mut bytes = part.lock().await;
        if let Some(bytes) = &*bytes {
            return Ok(bytes.clone());
        }
        let fetched = fetch.await?;
        *bytes = Some(fetched.clone());
        Ok(fetched)
    }

    fn entry(&self, key: (SegmentId, u64)) -> Part {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let at = parts.iter().position(|(there, _)| *there == key);
        let entry = at.and_then(|at| parts.remove(at)).unwrap_or_else(|| (key, Part::default()));
        if parts.len() >= PARTS {
            parts.pop_front();
        }
        let part = Arc::clone(&entry.1);
        parts.push_back(entry);
        part
    }
}

/// The most bytes in flight: two of the three windows that are ahead of a stream.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct ReadsAhead(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    bytes: u64,
    waiting: VecDeque<(u64, Sender<()>)>,
}

/// A read ahead in flight.
pub(super) struct AheadRead(Arc<Remainder>);

struct Remainder {
    reads: Arc<ReadsAhead>,
    /// Bytes that have not come.
    bytes: AtomicU64,
}

impl AheadRead {
    /// Bytes that come free quota for others at once.
    pub(super) fn arrivals(&self) -> Arrivals {
        let left = Arc::clone(&self.0);
        Arrivals::to(move |bytes| left.come(bytes))
    }
}

impl Remainder {
    /// A repeated GET brings bytes again, which free no quota.
    fn come(&self, bytes: u64) {
        let less = |left: u64| Some(left - left.min(bytes));
        if let Ok(left) = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            self.reads.end(left.min(bytes));
        }
    }
}

impl Drop for AheadRead {
    fn drop(&mut self) {
        self.0.come(u64::MAX);
    }
}

impl ReadsAhead {
    /// Waits for the quota of a read of so many bytes.
    pub(super) async fn begin(self: &Arc<Self>, bytes: u64) -> AheadRead {
        if let Some(told) = self.begins(bytes) {
            // The sender lives until the read may begin.
            let _ = told.await;
        }
        AheadRead(Arc::new(Remainder { reads: Arc::clone(self), bytes: AtomicU64::new(bytes) }))
    }

    /// Begins a read if there is quota and no other waits. Otherwise the receiver is notified when it may begin.
    fn begins(&self, bytes: u64) -> Option<Receiver<()>> {
        let mut state = self.state();
        if state.waiting.is_empty() && state.try_take(bytes) {
            return None;
        }
        let (sender, told) = oneshot::channel();
        state.waiting.push_back((bytes, sender));
        Some(told)
    }

    /// So many bytes are no longer in flight. The next reads begin.
    fn end(&self, bytes: u64) {
        let mut state = self.state();
        state.bytes -= bytes;
        while let Some(&(next, _)) = state.waiting.front()
            && state.try_take(next)
        {
            if let Some((_, sender)) = state.waiting.pop_front() {
                let _ = sender.send(());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes quota for a read. A read alone always gets it.
    fn try_take(&mut self, bytes: u64) -> bool {
        let fits = self.bytes == 0 || self.bytes + bytes <= BYTES_MAX;
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}
