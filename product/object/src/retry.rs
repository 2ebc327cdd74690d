//! Requests to the store until they have an answer.
//!
//! Owns: the pauses between tries. An outage ends no operation: the caller waits.
//! Does not own: conditional requests of the records.
//! Invariants: a request is repeated only if a second effect changes nothing.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::lock::Mutex;

use crate::error::{ObjectVolumeError, refused};
use crate::format::extent::SegmentId;
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
    /// The object, once it was sent.
    image: Option<ByteParts>,
    /// A try had no answer, so the object may be there.
    is_maybe_there: bool,
    is_there: bool,
}

impl Upload {
    pub(crate) fn new(segment: SegmentId, runs: Vec<SegmentRun>) -> Arc<Self> {
        Arc::new(Self {
            segment,
            state: Mutex::new(RetryState { runs, image: None, is_maybe_there: false, is_there: false }),
        })
    }

    /// Sends the segment unless it is there.
    pub(crate) async fn finish<O: Objects, C: Clock>(&self, objects: &O, clock: &C) -> Result<(), ObjectVolumeError> {
        let mut state = self.state.lock().await;
        let name = self.segment.name();
        let mut pauses = Pauses::default();
        while !state.is_there {
            let image = state.image(self.segment)?;
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
        Ok(())
    }
}

impl RetryState {
    fn image(&mut self, segment: SegmentId) -> Result<ByteParts, ObjectVolumeError> {
        if let Some(image) = &self.image {
            return Ok(image.clone());
        }
        let mut writer = SegmentWriter::new(segment);
        for run in std::mem::take(&mut self.runs) {
            writer.push(run.ino, run.start, run.bytes)?;
        }
        Ok(self.image.insert(writer.finish()).clone())
    }
}

/// A segment whose PUT was not answered.
#[derive(Debug)]
pub(crate) struct OnWay {
    pub(crate) upload: Arc<Upload>,
    pub(crate) bytes: u64,
    /// It closed before it was full.
    pub(crate) is_small: bool,
    /// The writes with bytes in it: file and number.
    pub(crate) writes: Vec<(u64, u64)>,
}
