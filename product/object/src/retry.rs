//! Requests to the store until they have an answer.
//!
//! Owns: the pauses between tries; making the object of a segment, on the task that sends it. An outage ends no
//! operation: the caller waits.
//! Does not own: conditional requests of the records.
//! Invariants: a request is repeated only if a second effect changes nothing. Between lines that are compressed other
//! tasks of the thread run.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::lock::Mutex;

use crate::error::{ObjectVolumeError, refused};
use crate::format::compression::{Coder, Compression, RunCompressor};
use crate::format::extent::{SegmentId, SegmentRange};
use crate::format::segment::SegmentWriter;
use crate::seams::{ByteParts, Clock, ObjectError, Objects, PutOutcome};

const FIRST_PAUSE_NS: u64 = 100_000_000;
const LONGEST_PAUSE_NS: u64 = 5_000_000_000;

/// Repeats a request until it has an answer, also 'missing' or 'refused'. `Objects` decides when a repeated refusal
/// becomes 'refused'.
pub(crate) async fn until_answered<C: Clock, T, F>(clock: &C, mut request: impl FnMut() -> F) -> Result<T, ObjectError>
where
    F: Future<Output = Result<T, ObjectError>>,
{
    let mut pauses = Pauses::default();
    loop {
        match request().await {
            Err(ObjectError::Busy | ObjectError::Unknown | ObjectError::Denied) => pauses.pause(clock).await,
            answer => return answer,
        }
    }
}

/// Pauses that double from one try to the next.
struct Pauses {
    next_ns: u64,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next_ns: FIRST_PAUSE_NS }
    }
}

impl Pauses {
    async fn pause<C: Clock>(&mut self, clock: &C) {
        clock.sleep_until_ns(clock.now_ns().saturating_add(self.next_ns)).await;
        self.next_ns = (self.next_ns * 2).min(LONGEST_PAUSE_NS);
    }
}

/// One run of a segment in flight.
#[derive(Clone, Debug)]
pub(crate) struct SegmentRun {
    pub(crate) ino: u64,
    pub(crate) start: u64,
    pub(crate) bytes: Bytes,
}

/// A segment in flight. Any operation that needs it carries the upload on, if the first one was dropped.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) segment: SegmentId,
    state: Mutex<RetryState>,
}

#[derive(Debug)]
struct RetryState {
    runs: Vec<SegmentRun>,
    /// Where the first runs lie, then all of them.
    places: Vec<SegmentRange>,
    /// The object, once it was made.
    image: Option<ByteParts>,
    /// A try had no answer, so the object may be there.
    is_maybe_there: bool,
    is_there: bool,
}

impl Upload {
    pub(crate) fn new(segment: SegmentId, runs: Vec<SegmentRun>) -> Arc<Self> {
        Arc::new(Self {
            segment,
            state: Mutex::new(RetryState {
                runs,
                places: Vec::new(),
                image: None,
                is_maybe_there: false,
                is_there: false,
            }),
        })
    }

    /// Sends the segment unless it is there. Returns where its runs lie.
    pub(crate) async fn finish<O: Objects, C: Clock>(
        &self,
        objects: &O,
        clock: &C,
        compression: Compression,
    ) -> Result<Vec<SegmentRange>, ObjectVolumeError> {
        let mut state = self.state.lock().await;
        let name = self.segment.name();
        let mut pauses = Pauses::default();
        while !state.is_there {
            let image = state.image(self.segment, compression).await?;
            let was_maybe_there = state.is_maybe_there;
            state.is_maybe_there = true;
            match objects.create(&name, image).await {
                Ok(PutOutcome::Present) if !was_maybe_there => return Err(ObjectVolumeError::NotOurs(self.segment)),
                Ok(PutOutcome::New | PutOutcome::Present) => (state.is_there, state.image) = (true, None),
                Err(error @ (ObjectError::Refused(_) | ObjectError::Full(_))) => return Err(refused(error)),
                Err(error) => {
                    let has_no_effect = matches!(error, ObjectError::Busy | ObjectError::Denied);
                    state.is_maybe_there = was_maybe_there || !has_no_effect;
                    pauses.pause(clock).await;
                }
            }
        }
        Ok(state.places.clone())
    }
}

/// So many lines are compressed without a pause. It takes about a millisecond.
const LINES_TOGETHER: usize = 4;

impl RetryState {
    /// The object. A maker that was dropped begins anew.
    async fn image(&mut self, segment: SegmentId, compression: Compression) -> Result<ByteParts, ObjectVolumeError> {
        if let Some(image) = &self.image {
            return Ok(image.clone());
        }
        let (mut writer, mut coder) = (SegmentWriter::new(segment), Coder::new(compression));
        self.places.clear();
        for SegmentRun { ino, start, bytes } in &self.runs {
            let mut compressor = RunCompressor::new(compression, bytes.clone());
            let mut lines = 0;
            while compressor.as_mut().is_some_and(|compressor| compressor.step(&mut coder)) {
                lines += 1;
                if lines % LINES_TOGETHER == 0 {
                    yield_once().await;
                }
            }
            let compressed = compressor.and_then(RunCompressor::finish);
            let mut place = SegmentRange::unplaced(segment, bytes.len());
            place.stored = compressed.as_ref().map(|run| Arc::clone(&run.stored));
            place.offset = match compressed {
                Some(run) => writer.push_compressed(*ino, *start, bytes.len(), run)?,
                None => writer.push(*ino, *start, bytes.clone())?,
            };
            self.places.push(place);
        }
        self.runs = Vec::new();
        Ok(self.image.insert(writer.finish()).clone())
    }
}

/// Lets the other tasks of this thread run.
pub(crate) async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A segment whose PUT was not answered.
#[derive(Debug)]
pub(crate) struct OnWay {
    pub(crate) upload: Arc<Upload>,
    pub(crate) bytes: u64,
    /// It closed before it was full.
    pub(crate) is_small: bool,
    /// The writes with bytes in it.
    pub(crate) writes: Vec<WriteInSegment>,
}

/// A write whose bytes are a run of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteInSegment {
    pub(crate) ino: u64,
    pub(crate) write_id: u64,
    /// The number of the run.
    pub(crate) run: usize,
}
