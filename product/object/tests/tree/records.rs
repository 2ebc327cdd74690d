//! Records as an ordered map in virtual time.
//!
//! Owns: the log of batches, the time at which they are durable, the count of calls.
//! Does not own: fences, which the crate's own tests have.
//! Invariants: batches become durable in their order. A scan sees one state, at some moment of its time.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use afflux_engine::{Nanos, Platform};
use afflux_object::{
    Batch, Durability, Key, Manifest, Record, RecordChange, RecordDatabase, RecordsError, Sequence, Value,
};
use afflux_simulator::SimPlatform;

pub(crate) type Map = BTreeMap<Key, Value>;

pub(crate) const ROUND_TRIP_NS: u64 = 30 * Nanos::MILLISECOND;

/// Calls of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) scans: u64,
    pub(crate) batches: u64,
}

/// Records that scans gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadRecords {
    pub(crate) bytes: usize,
}

/// What happens right after the records took a batch, while its call goes on.
type AfterApply = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    /// For the next batch. Scans take no time within it.
    after_apply: Option<AfterApply>,
    is_instant: bool,
    applied: Map,
    log: Vec<Batch>,
    durable: usize,
    waiting: Vec<Waker>,
    is_flushing: bool,
    calls: Calls,
    read: ReadRecords,
    is_fenced: bool,
}

#[derive(Clone)]
pub(crate) struct MapRecords {
    platform: Arc<SimPlatform>,
    epoch: u32,
    state: Arc<Mutex<State>>,
}

impl MapRecords {
    pub(crate) fn new(platform: &Arc<SimPlatform>) -> Self {
        Self { platform: Arc::clone(platform), epoch: 1, state: Arc::default() }
    }

    /// The next opening, after a crash that preserved so many batches.
    pub(crate) fn after_crash(&self, kept: usize) -> Self {
        let mut state = State { log: self.state().log[..kept].to_vec(), durable: kept, ..State::default() };
        let State { applied, log, .. } = &mut state;
        log.iter().flatten().for_each(|change| change.apply_to(applied));
        Self { platform: Arc::clone(&self.platform), epoch: self.epoch + 1, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn batches(&self) -> usize {
        self.state().log.len()
    }

    pub(crate) fn durable_batches(&self) -> usize {
        self.state().durable
    }

    /// The calls among the first batches. The reaper's batches only remove.
    pub(crate) fn calls_within(&self, batches: usize) -> usize {
        let is_call = |batch: &&Batch| batch.iter().any(|change| matches!(change, RecordChange::Put(..)));
        self.state().log[..batches].iter().filter(is_call).count()
    }

    pub(crate) fn map(&self) -> Map {
        self.state().applied.clone()
    }

    /// The calls since the last check.
    pub(crate) fn take_calls(&self) -> Calls {
        std::mem::take(&mut self.state().calls)
    }

    /// The records that were read since the last check.
    pub(crate) fn take_read(&self) -> ReadRecords {
        std::mem::take(&mut self.state().read)
    }

    /// Calls `act` right after the next batch. Scans within it take no time.
    pub(crate) fn after_next_batch(&self, act: impl FnOnce() + Send + 'static) {
        self.state().after_apply = Some(Box::new(act));
    }

    /// Another writer takes over.
    pub(crate) fn fence(&self) {
        self.state().is_fenced = true;
    }

    /// Makes the batches so far durable one round trip later. Batches that come meanwhile share the next one.
    fn flush(&self, state: &mut State) {
        if std::mem::replace(&mut state.is_flushing, true) {
            return;
        }
        let (records, upto) = (self.clone(), state.log.len());
        self.platform.call_at(self.platform.now().after(ROUND_TRIP_NS), move || {
            let mut state = records.state();
            (state.durable, state.is_flushing) = (upto, false);
            state.waiting.drain(..).for_each(Waker::wake);
            if state.log.len() > upto {
                records.flush(&mut state);
            }
        });
    }

    async fn pause(&self) {
        if self.state().is_instant {
            return;
        }
        let ns = self.platform.random_u64() % ROUND_TRIP_NS;
        self.platform.sleep_until(self.platform.now().after(ns)).await;
    }
}

impl RecordDatabase for MapRecords {
    fn epoch(&self) -> u32 {
        self.epoch
    }

    fn apply(&self, batch: Batch) -> Result<Sequence, RecordsError> {
        let mut state = self.state();
        if state.is_fenced {
            return Err(RecordsError::Fenced);
        }
        batch.iter().for_each(|change| change.apply_to(&mut state.applied));
        state.log.push(batch);
        state.calls.batches += 1;
        self.flush(&mut state);
        let (sequence, act) = (Sequence(state.log.len() as u64), state.after_apply.take());
        drop(state);
        if let Some(act) = act {
            self.state().is_instant = true;
            act();
            self.state().is_instant = false;
        }
        Ok(sequence)
    }

    fn durable_through(&self) -> Sequence {
        Sequence(self.durable_batches() as u64)
    }

    async fn durable(&self, sequence: Sequence) -> Result<(), RecordsError> {
        let poll = |cx: &mut std::task::Context<'_>| {
            let mut state = self.state();
            if state.durable as u64 >= sequence.0 {
                return Poll::Ready(Ok(()));
            }
            state.waiting.push(cx.waker().clone());
            Poll::Pending
        };
        poll_fn(poll).await
    }

    async fn scan_first(
        &self,
        from: Key,
        to: Key,
        _durability: Durability,
        most: usize,
    ) -> Result<Vec<Record>, RecordsError> {
        self.pause().await;
        let records = {
            let mut state = self.state();
            state.calls.scans += 1;
            let records = state.applied.range(from..to).map(|(key, value)| (key.clone(), value.clone()));
            let records: Vec<Record> = records.take(most).collect();
            state.read.bytes += records.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
            records
        };
        self.pause().await;
        Ok(records)
    }

    async fn manifest(&self) -> Result<Manifest, RecordsError> {
        Ok(Manifest { id: 1, checkpoints: Vec::new() })
    }

    fn unfenced_at_ns(&self) -> u64 {
        self.platform.now().0
    }

    async fn prove(&self) -> Result<(), RecordsError> {
        if self.state().is_fenced { Err(RecordsError::Fenced) } else { Ok(()) }
    }
}
