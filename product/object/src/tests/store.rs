//! The store: objects in memory, requests that fail, come late or come twice.
//!
//! Owns: virtual time, the fate of each request, the effects under way.
//! Does not own: the meaning of objects.
//! Invariants: an effect under way happens even if its writer is frozen or dead.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;

use super::checker::Checker;
use super::log::Entry;
use super::random::Random;
use crate::{
    Arrivals, ByteParts, Checkpoint, Clock, Compression, DatedObject, DatedObjects, ObjectError, ObjectVersion,
    Objects, PutOutcome, ReplaceOutcome,
};

pub(super) const MS: u64 = 1_000_000;
const TIMEOUT_NS: u64 = 2_000 * MS;

/// By seed.
const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Zstd(1), Compression::Lz4];

/// Whether a task was woken since its last poll.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Effect = Box<dyn FnOnce(&mut World) + Send>;

pub(super) struct World {
    pub(super) now_ns: u64,
    pub(super) random: Random,
    pub(super) objects: BTreeMap<String, Bytes>,
    /// Objects that are overwritten.
    pub(super) dated: BTreeMap<String, DatedObject>,
    /// Counts their versions.
    versions: u64,
    pub(super) log: Vec<Entry>,
    pub(super) epoch: u32,
    /// The time of the newest fence.
    pub(super) fenced_at_ns: u64,
    pub(super) manifest: u64,
    pub(super) checkpoints: BTreeMap<u64, Checkpoint>,
    pub(super) checker: Checker,
    pub(super) outage_until_ns: u64,
    /// Files that were made to be removed.
    pub(super) short_lives: u64,
    /// No request fails any more.
    pub(super) is_calm: bool,
    /// The writer's keys allow no DELETE.
    pub(super) refuses_deletes: bool,
    effects: BTreeMap<(u64, u64), Effect>,
    timers: BTreeMap<u64, Vec<Waker>>,
    /// So many answers to GETs are damaged on their way.
    pub(super) damaged_gets: u32,
    /// Counts the requests.
    pub(super) requests: u64,
    /// How the next writer stores its runs.
    pub(super) compression: Compression,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            now_ns: 0,
            random: Random(seed),
            objects: BTreeMap::new(),
            dated: BTreeMap::new(),
            versions: 0,
            log: Vec::new(),
            fenced_at_ns: 0,
            epoch: 0,
            manifest: 1,
            checkpoints: BTreeMap::new(),
            checker: Checker::default(),
            outage_until_ns: 0,
            short_lives: 0,
            is_calm: false,
            refuses_deletes: false,
            damaged_gets: 0,
            effects: BTreeMap::new(),
            timers: BTreeMap::new(),
            requests: 0,
            compression: COMPRESSIONS[(seed % 3) as usize],
        }
    }

    /// Lets time pass to the next timer or effect. False if there is none.
    pub(super) fn advance(&mut self) -> bool {
        let now = self.now_ns;
        self.timers.retain(|at, _| *at > now);
        let (effect, timer) = (self.effects.keys().next().map(|(at, _)| *at), self.timers.keys().next().copied());
        let Some(next) = timer.into_iter().chain(effect).min() else { return false };
        self.now_ns = next.max(now);
        if let Some(first) = self.timers.first_entry().filter(|first| *first.key() <= self.now_ns) {
            first.remove().into_iter().for_each(Waker::wake);
        }
        while let Some(first) = self.effects.first_entry().filter(|first| first.key().0 <= self.now_ns) {
            first.remove()(self);
        }
        true
    }

    pub(super) fn violation(&mut self, text: String) {
        self.checker.violations.push(text);
    }

    fn latency_ns(&mut self) -> u64 {
        let slow = if !self.is_calm && self.random.one_in(100) { 9_000 } else { 40 };
        MS + self.random.below(slow * MS)
    }
}

#[derive(Clone)]
pub(super) struct Store(Arc<Mutex<World>>);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(World::new(seed))))
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    pub(super) async fn sleep_ns(&self, ns: u64) {
        let at = self.world().now_ns + ns;
        self.sleep_until_ns(at).await;
    }

    /// Runs a task to its end, in a store without faults.
    pub(super) fn finish<T>(&self, task: impl Future<Output = T>) -> T {
        self.world().is_calm = true;
        self.finish_with_faults(task)
    }

    /// Runs a task to its end.
    pub(super) fn finish_with_faults<T>(&self, task: impl Future<Output = T>) -> T {
        let (mut task, woken) = (pin!(task), Arc::new(Woken::default()));
        let waker = Waker::from(Arc::clone(&woken));
        loop {
            if let Poll::Ready(end) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
                return end;
            }
            // A task that only yielded goes on at the same time.
            let has_yielded = woken.0.swap(false, Ordering::Relaxed);
            assert!(has_yielded || self.world().advance(), "the task waits for nothing");
        }
    }

    /// Sends a request. Its effect happens once, never, or later than its answer.
    pub(super) async fn request<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> Result<T, ObjectError> {
        let result = Arc::new(Mutex::new(None));
        let (answer_ns, outcome) = {
            let mut world = self.world();
            let latency_ns = world.latency_ns();
            let fate = if world.is_calm { 99 } else { world.random.below(100) };
            let (effect_ns, answer_ns, outcome) = match fate {
                _ if world.now_ns < world.outage_until_ns && !world.is_calm => {
                    (None, latency_ns, Err(ObjectError::Busy))
                }
                0..5 => (None, latency_ns, Err(ObjectError::Busy)),
                5..8 => (None, TIMEOUT_NS, Err(ObjectError::Unknown)),
                8..11 => (Some(latency_ns), TIMEOUT_NS, Err(ObjectError::Unknown)),
                11..13 => (Some(world.random.below(30_000 * MS)), TIMEOUT_NS, Err(ObjectError::Unknown)),
                _ => (Some(latency_ns / 2), latency_ns, Ok(())),
            };
            world.requests += 1;
            if let Some(effect_ns) = effect_ns {
                let (key, result) = ((world.now_ns + effect_ns, world.requests), Arc::clone(&result));
                let effect = move |world: &mut World| *result.lock().unwrap() = Some(act(world));
                world.effects.insert(key, Box::new(effect));
            }
            (answer_ns, outcome)
        };
        self.sleep_ns(answer_ns).await;
        outcome?;
        let result = result.lock().unwrap().take();
        Ok(result.expect("an answered request had its effect"))
    }
}

impl Clock for Store {
    fn now_ns(&self) -> u64 {
        self.world().now_ns
    }

    fn wall_ns(&self) -> u64 {
        self.world().now_ns + 1
    }

    async fn sleep_until_ns(&self, at_ns: u64) {
        let wait = |context: &mut Context<'_>| {
            let mut world = self.world();
            if world.now_ns >= at_ns {
                return Poll::Ready(());
            }
            world.timers.entry(at_ns).or_default().push(context.waker().clone());
            Poll::Pending
        };
        poll_fn(wait).await;
    }
}

impl Objects for Store {
    async fn create(&self, name: &str, parts: impl Into<ByteParts> + Send) -> Result<PutOutcome, ObjectError> {
        let (name, bytes) = (name.to_owned(), parts.into().joined());
        let act = move |world: &mut World| match world.objects.contains_key(&name) {
            true => PutOutcome::Present,
            false => {
                world.objects.insert(name, bytes);
                PutOutcome::New
            }
        };
        self.request(act).await
    }

    async fn get_counted(&self, name: &str, range: Range<u64>, _arrivals: &Arrivals) -> Result<ByteParts, ObjectError> {
        let name = name.to_owned();
        let found = self.request(move |world| world.objects.get(&name).cloned()).await?;
        let bytes = found.ok_or(ObjectError::Missing)?;
        let mut bytes = bytes.slice(range.start as usize..(range.end as usize).min(bytes.len()));
        let is_damaged = {
            let mut world = self.world();
            let left = world.damaged_gets;
            world.damaged_gets = left.saturating_sub(1);
            left > 0
        };
        if is_damaged {
            let mut damaged = bytes.to_vec();
            damaged[0] ^= 1;
            bytes = damaged.into();
        }
        // In pieces that end anywhere, also in a checksum.
        let first = 1 + bytes.len() / 3;
        Ok(ByteParts(bytes.chunks(first).map(|piece| bytes.slice_ref(piece)).collect()))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, ObjectError> {
        let prefix = prefix.to_owned();
        let names =
            move |world: &mut World| world.objects.keys().filter(|name| name.starts_with(&prefix)).cloned().collect();
        self.request(names).await
    }

    async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        if self.world().refuses_deletes {
            return Err(ObjectError::Refused("AccessDenied".to_owned()));
        }
        let name = name.to_owned();
        let act = move |world: &mut World| {
            world.objects.remove(&name);
            world.dated.remove(&name);
            world.checker.deleted(&name, world.now_ns);
        };
        self.request(act).await
    }
}

impl World {
    /// The store's clock is an hour late.
    fn overwrite(&mut self, name: String, bytes: Bytes) {
        self.versions += 1;
        let version = ObjectVersion { tag: Some(self.versions.to_string()), id: None };
        self.dated.insert(name, DatedObject { bytes, at_ns: self.now_ns + 3_600_000 * MS, version });
    }
}

impl DatedObjects for Store {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        let name = name.to_owned();
        self.request(move |world| world.overwrite(name, bytes)).await
    }

    async fn replace(
        &self,
        name: &str,
        bytes: Bytes,
        version: Option<&ObjectVersion>,
    ) -> Result<ReplaceOutcome, ObjectError> {
        let (name, version) = (name.to_owned(), version.cloned());
        let act = move |world: &mut World| {
            if world.dated.get(&name).map(|there| &there.version) != version.as_ref() {
                return ReplaceOutcome::Changed;
            }
            world.overwrite(name, bytes);
            ReplaceOutcome::Replaced
        };
        self.request(act).await
    }

    async fn dated(&self, name: &str, bytes_max: u64) -> Result<DatedObject, ObjectError> {
        let name = name.to_owned();
        let found = self.request(move |world| world.dated.get(&name).cloned()).await?.ok_or(ObjectError::Missing)?;
        if found.bytes.len() as u64 > bytes_max {
            Err(ObjectError::Refused("it is too long".to_owned()))
        } else {
            Ok(found)
        }
    }
}
