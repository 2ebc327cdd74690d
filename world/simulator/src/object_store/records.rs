//! Records as an ordered map with a log of numbered entries in the store.
//!
//! Owns: fences, batches that share an entry, entries whose outcome is unknown.
//! Does not own: compaction of the log: an opening reads all of it.
//! Invariants: an entry is made at the next free number only, and none is removed. So no entry of a fenced writer
//! follows the fence.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use afflux_engine::{Nanos, Platform};
use afflux_object::{
    Batch, Durability, Key, Manifest, ObjectError, Objects, PutOutcome, Record, RecordDatabase, RecordsError, Sequence,
    Value,
};
use futures_util::future::try_join_all;

use super::entry::Entry;
use super::store::ObjectStore;
use crate::world::SimPlatform;

/// Batches that come within this time share an entry.
const FLUSH_INTERVAL_NS: u64 = Nanos::MILLISECOND;
/// How often a writer looks whether another has fenced it.
const POLL_NS: u64 = 5 * Nanos::SECOND;
const RETRY_NS: u64 = 200 * Nanos::MILLISECOND;
/// Entries that an opening reads at once.
const READS_AT_ONCE: usize = 32;

type Map = BTreeMap<Key, Value>;

#[derive(Default)]
struct State {
    applied: Map,
    durable: Map,
    queue: Vec<Batch>,
    last: Sequence,
    durable_through: Sequence,
    unfenced_at_ns: u64,
    is_fenced: bool,
    /// The number of the next entry.
    next_entry: u64,
    /// The task that makes entries, and tasks that wait for batches.
    wakers: Vec<Waker>,
}

struct Log {
    platform: Arc<SimPlatform>,
    store: ObjectStore,
    epoch: u32,
    writer: u64,
    state: Mutex<State>,
}

/// Open records. A clone is the same database.
#[derive(Clone)]
pub struct ObjectRecords(Arc<Log>);

impl std::fmt::Debug for ObjectRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjectRecords of epoch {}", self.0.epoch)
    }
}

fn name(number: u64) -> String {
    format!("log/{number:010}")
}

fn closed(error: &ObjectError) -> RecordsError {
    RecordsError::Closed(format!("{error:?}"))
}

/// Where the log of a store ends, and its entries.
struct LogReader<'a> {
    platform: &'a SimPlatform,
    store: &'a ObjectStore,
}

impl LogReader<'_> {
    async fn again<T, F: Future<Output = Result<T, ObjectError>>>(
        &self,
        mut request: impl FnMut() -> F,
    ) -> Result<T, ObjectError> {
        loop {
            match request().await {
                Err(ObjectError::Busy | ObjectError::Unknown) => {
                    self.platform.sleep_until(self.platform.now().after(RETRY_NS)).await;
                }
                answer => return answer,
            }
        }
    }

    async fn entry(&self, number: u64) -> Result<Entry, RecordsError> {
        let name = name(number);
        let bytes = self.again(|| self.store.get(&name, 0..u64::MAX)).await.map_err(|error| closed(&error))?;
        Entry::decode(&bytes.joined()).ok_or_else(|| RecordsError::Closed(format!("{name} is no entry")))
    }

    async fn entries(&self) -> Result<Vec<Entry>, RecordsError> {
        let names = self.again(|| self.store.list("log/")).await.map_err(|error| closed(&error))?;
        let numbers: Vec<u64> = (0..names.len() as u64).collect();
        let mut entries = Vec::with_capacity(numbers.len());
        for some in numbers.chunks(READS_AT_ONCE) {
            entries.extend(try_join_all(some.iter().map(|number| self.entry(*number))).await?);
        }
        Ok(entries)
    }

    /// Makes an entry; false if another is there.
    async fn make(&self, number: u64, entry: &Entry) -> Result<bool, RecordsError> {
        let (name, bytes) = (name(number), entry.encode());
        match self.again(|| self.store.create(&name, bytes.clone())).await {
            Ok(PutOutcome::New) => Ok(true),
            // An earlier try of this entry may have had its effect.
            Ok(PutOutcome::Present) => Ok(self.entry(number).await? == *entry),
            Err(error) => Err(closed(&error)),
        }
    }
}

impl ObjectRecords {
    /// Opens the records of a store, which fences all earlier writers.
    ///
    /// # Errors
    /// If the log holds something else than entries.
    pub async fn open(platform: &Arc<SimPlatform>, store: &ObjectStore) -> Result<Self, RecordsError> {
        let (reader, writer) = (LogReader { platform, store }, platform.random_u64());
        loop {
            let at_ns = platform.now().0;
            let entries = reader.entries().await?;
            let epoch = 1 + entries.iter().map(|entry| entry.epoch).max().unwrap_or(0);
            let number = entries.len() as u64;
            if !reader.make(number, &Entry { epoch, writer, last: None, batches: Vec::new() }).await? {
                continue;
            }
            let mut state = State { unfenced_at_ns: at_ns, next_entry: number + 1, ..State::default() };
            let batches = entries.iter().flat_map(|entry| &entry.batches);
            batches.flatten().for_each(|change| change.apply_to(&mut state.durable));
            state.applied = state.durable.clone();
            let log =
                Log { platform: Arc::clone(platform), store: store.clone(), epoch, writer, state: Mutex::new(state) };
            let records = Self(Arc::new(log));
            platform.spawn("fence poll", records.clone().poll());
            platform.spawn("log", records.clone().write_all());
            return Ok(records);
        }
    }

    async fn poll(self) {
        let platform = &self.0.platform;
        loop {
            platform.sleep_until(platform.now().after(POLL_NS)).await;
            if self.prove().await.is_err() {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> LogReader<'_> {
        LogReader { platform: &self.0.platform, store: &self.0.store }
    }

    fn wake_all(&self) {
        let wakers = std::mem::take(&mut self.state().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn fenced(&self) -> RecordsError {
        self.state().is_fenced = true;
        self.wake_all();
        RecordsError::Fenced
    }

    /// Waits until the state answers.
    async fn until<T>(&self, mut answer: impl FnMut(&State) -> Option<T>) -> T {
        poll_fn(|cx| {
            let mut state = self.state();
            match answer(&state) {
                Some(answer) => Poll::Ready(answer),
                None => {
                    state.wakers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Makes entries of the batches, until another writer has made one.
    async fn write_all(self) {
        loop {
            self.until(|state| (!state.queue.is_empty()).then_some(())).await;
            if self.write().await.is_err() {
                return;
            }
        }
    }

    /// Makes an entry of all batches that wait.
    async fn write(&self) -> Result<(), RecordsError> {
        let log = &self.0;
        log.platform.sleep_until(log.platform.now().after(FLUSH_INTERVAL_NS)).await;
        let (batches, last, number) = {
            let mut state = self.state();
            (std::mem::take(&mut state.queue), state.last, state.next_entry)
        };
        let sent_ns = log.platform.now().0;
        let entry = Entry { epoch: log.epoch, writer: log.writer, last: Some(last.0), batches };
        if !self.reader().make(number, &entry).await? {
            return Err(self.fenced());
        }
        {
            let mut state = self.state();
            state.next_entry += 1;
            state.unfenced_at_ns = state.unfenced_at_ns.max(sent_ns);
            entry.batches.iter().flatten().for_each(|change| change.apply_to(&mut state.durable));
            state.durable_through = last;
        }
        self.wake_all();
        Ok(())
    }
}

impl RecordDatabase for ObjectRecords {
    fn epoch(&self) -> u32 {
        self.0.epoch
    }

    fn apply(&self, batch: Batch) -> Result<Sequence, RecordsError> {
        let mut state = self.state();
        if state.is_fenced {
            return Err(RecordsError::Fenced);
        }
        batch.iter().for_each(|change| change.apply_to(&mut state.applied));
        state.queue.push(batch);
        state.last.0 += 1;
        let last = state.last;
        drop(state);
        self.wake_all();
        Ok(last)
    }

    fn durable_through(&self) -> Sequence {
        self.state().durable_through
    }

    async fn durable(&self, sequence: Sequence) -> Result<(), RecordsError> {
        self.until(|state| match () {
            () if state.durable_through >= sequence => Some(Ok(())),
            () if state.is_fenced => Some(Err(RecordsError::Fenced)),
            () => None,
        })
        .await
    }

    async fn scan_first(
        &self,
        from: Key,
        to: Key,
        durability: Durability,
        most: usize,
    ) -> Result<Vec<Record>, RecordsError> {
        let state = self.state();
        let map = if durability == Durability::Remote { &state.durable } else { &state.applied };
        Ok(map.range(from..to).map(|(key, value)| (key.clone(), value.clone())).take(most).collect())
    }

    async fn manifest(&self) -> Result<Manifest, RecordsError> {
        self.prove().await?;
        Ok(Manifest { id: 1, checkpoints: Vec::new() })
    }

    fn unfenced_at_ns(&self) -> u64 {
        self.state().unfenced_at_ns
    }

    /// Looks whether another writer made the next entry.
    async fn prove(&self) -> Result<(), RecordsError> {
        let number = self.state().next_entry;
        let sent_ns = self.0.platform.now().0;
        let (reader, name) = (self.reader(), name(number));
        match reader.again(|| self.0.store.get(&name, 0..u64::MAX)).await {
            Ok(_) if reader.entry(number).await?.writer != self.0.writer => Err(self.fenced()),
            Ok(_) | Err(ObjectError::Missing) => {
                let mut state = self.state();
                state.unfenced_at_ns = state.unfenced_at_ns.max(sent_ns);
                Ok(())
            }
            Err(error) => Err(closed(&error)),
        }
    }
}
