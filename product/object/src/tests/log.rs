//! Records as an ordered map with a log of numbered entries in the store.
//!
//! Owns: fences, batches that share an entry, requests whose outcome is unknown.
//! Does not own: compaction of the log.
//! Invariants: an entry is made at the next free number only. An entry is never removed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::lock;

use super::store::{MS, Store, World};
use crate::{Batch, Clock, Durability, Key, Manifest, Record, RecordDatabase, RecordsError, Sequence, Value};

pub(super) type Map = BTreeMap<Key, Value>;

/// An object of the log.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) epoch: u32,
    /// Absent in a fence.
    pub(super) last: Option<Sequence>,
    pub(super) batches: Vec<Batch>,
}

/// The result of making an entry.
enum Made {
    New,
    /// An earlier try of the same entry had its effect.
    Before,
    Taken,
}

impl World {
    fn make_entry(&mut self, number: usize, entry: &Entry) -> Made {
        match self.log.get(number) {
            Some(there) if there.epoch == entry.epoch && there.last == entry.last => Made::Before,
            Some(_) => Made::Taken,
            None => {
                self.log.push(entry.clone());
                self.checker.appended(entry, &self.objects, self.now_ns);
                Made::New
            }
        }
    }
}

#[derive(Debug, Default)]
struct State {
    applied: Map,
    durable: Map,
    queue: Vec<Batch>,
    last: Sequence,
    durable_through: Sequence,
    unfenced_at_ns: u64,
    fenced_at_ns: u64,
    is_fenced: bool,
}

#[derive(Debug)]
pub(super) struct Log {
    store: Store,
    epoch: u32,
    state: Mutex<State>,
    /// The next number. Its holder makes an entry.
    turn: lock::Mutex<usize>,
}

impl Log {
    pub(super) async fn open(store: Store) -> Result<Arc<Self>, RecordsError> {
        let epoch = Self::again(&store, || {
            store.request(|world| {
                world.epoch += 1;
                world.epoch
            })
        })
        .await;
        loop {
            let at_ns = store.now_ns();
            let entries = Self::again(&store, || store.request(|world| world.log.clone())).await;
            if entries.iter().any(|entry| entry.last.is_none() && entry.epoch > epoch) {
                return Err(RecordsError::Fenced);
            }
            let (number, fence) = (entries.len(), Entry { epoch, last: None, batches: Vec::new() });
            let made = Self::again(&store, || {
                let fence = fence.clone();
                store.request(move |world| world.make_entry(number, &fence))
            });
            if matches!(made.await, Made::Taken) {
                continue;
            }
            let fenced_at_ns = store.now_ns();
            store.world().fenced_at_ns = fenced_at_ns;
            let mut state = State { unfenced_at_ns: at_ns, fenced_at_ns, ..State::default() };
            let batches = entries.iter().flat_map(|entry| &entry.batches);
            batches.flatten().for_each(|change| change.apply_to(&mut state.durable));
            state.applied = state.durable.clone();
            return Ok(Arc::new(Self { store, epoch, state: Mutex::new(state), turn: lock::Mutex::new(number + 1) }));
        }
    }

    async fn again<T, F: Future<Output = Result<T, crate::ObjectError>>>(
        store: &Store,
        mut request: impl FnMut() -> F,
    ) -> T {
        loop {
            match request().await {
                Ok(answer) => return answer,
                Err(_) => store.sleep_ns(200 * MS).await,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Makes an entry of some or all batches that wait.
    async fn write(&self, number: &mut usize) {
        let (batches, last) = {
            let mut state = self.state();
            let mut count = state.queue.len() as u64;
            let mut world = self.store.world();
            if !world.is_calm && world.random.one_in(2) {
                count = 1 + world.random.below(count);
            }
            (state.queue.drain(..count as usize).collect(), Sequence(state.durable_through.0 + count))
        };
        let entry = Entry { epoch: self.epoch, last: Some(last), batches };
        let mut sent_ns = 0;
        let made = Self::again(&self.store, || {
            sent_ns = self.store.now_ns();
            let (number, entry) = (*number, entry.clone());
            self.store.request(move |world| world.make_entry(number, &entry))
        })
        .await;
        let mut state = self.state();
        match made {
            Made::Taken => state.is_fenced = true,
            Made::New | Made::Before => {
                if matches!(made, Made::New) {
                    state.unfenced_at_ns = state.unfenced_at_ns.max(sent_ns);
                }
                *number += 1;
                entry.batches.iter().flatten().for_each(|change| change.apply_to(&mut state.durable));
                state.durable_through = last;
            }
        }
    }
}

impl RecordDatabase for Arc<Log> {
    fn epoch(&self) -> u32 {
        self.epoch
    }

    fn apply(&self, batch: Batch) -> Result<Sequence, RecordsError> {
        let mut state = self.state();
        if state.is_fenced {
            return Err(RecordsError::Fenced);
        }
        batch.iter().for_each(|change| change.apply_to(&mut state.applied));
        state.queue.push(batch);
        state.last.0 += 1;
        Ok(state.last)
    }

    fn durable_through(&self) -> Sequence {
        self.state().durable_through
    }

    async fn durable(&self, sequence: Sequence) -> Result<(), RecordsError> {
        while self.durable_through() < sequence {
            let mut number = self.turn.lock().await;
            if self.state().is_fenced {
                return Err(RecordsError::Fenced);
            }
            if self.durable_through() < sequence {
                self.write(&mut number).await;
            }
        }
        Ok(())
    }

    async fn scan_first(
        &self,
        from: Key,
        to: Key,
        durability: Durability,
        most: usize,
    ) -> Result<Vec<Record>, RecordsError> {
        // The scan may see batches that are applied after its call.
        let ns = self.store.world().random.below(100 * MS);
        self.store.sleep_ns(ns).await;
        let records = {
            let state = self.state();
            let map = if durability == Durability::Remote { &state.durable } else { &state.applied };
            map.range(from..to).map(|(key, value)| (key.clone(), value.clone())).take(most).collect()
        };
        let ns = self.store.world().random.below(100 * MS);
        self.store.sleep_ns(ns).await;
        Ok(records)
    }

    async fn manifest(&self) -> Result<Manifest, RecordsError> {
        let read = |world: &mut World| {
            let checkpoints = world.checkpoints.values().copied().collect();
            (world.epoch, Manifest { id: world.manifest, checkpoints })
        };
        let mut sent_ns = 0;
        let (epoch, manifest) = Log::again(&self.store, || {
            sent_ns = self.store.now_ns();
            self.store.request(read)
        })
        .await;
        let mut state = self.state();
        if epoch > self.epoch {
            return Err(RecordsError::Fenced);
        }
        state.unfenced_at_ns = state.unfenced_at_ns.max(sent_ns);
        Ok(manifest)
    }

    fn unfenced_at_ns(&self) -> u64 {
        self.state().unfenced_at_ns
    }

    fn fenced_at_ns(&self) -> Option<u64> {
        Some(self.state().fenced_at_ns)
    }

    async fn prove(&self) -> Result<(), RecordsError> {
        self.manifest().await.map(drop)
    }
}
