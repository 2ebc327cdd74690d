//! The store: requests in virtual time.
//!
//! Owns: the time of each request, its fate by seed, outages, the figures.
//! Does not own: the objects (`contents`).
//! Invariants: an answered PUT has taken effect. An unanswered one takes effect at once, later or never.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

use afflux_engine::{Nanos, Platform};
use afflux_object::{Arrivals, ByteParts, ObjectError, Objects, PutOutcome};

use super::contents::{ObjectChange, ObjectContents};
use super::wire::Wire;
use crate::random::Random;
use crate::world::{SimPlatform, World};

/// The most bytes of an answer that come at a time.
const PIECE_BYTES: u64 = 256 << 10;
/// The longest time after which an unanswered change takes effect.
const LATE_NS_MAX: u64 = 30 * Nanos::SECOND;

/// The fates of requests, each in 1,000.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreFaults {
    /// Answered with 503, without an effect.
    pub busy: u64,
    /// No answer, and no effect.
    pub lost: u64,
    /// No answer, after the effect.
    pub unanswered: u64,
    /// No answer; the effect comes later.
    pub late: u64,
}

/// Options of a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The time of a request without bytes.
    pub round_trip_ns: u64,
    /// The time differs from call to call by up to so many thousandths of it.
    pub spread_per_mille: u64,
    /// Bytes a second of one call.
    pub call_bytes_per_second: u64,
    /// Bytes a second of all calls together.
    pub bytes_per_second: u64,
    /// Requests at once above which the store answers 503.
    pub requests_max: u32,
    /// The time after which a client gives a request up.
    pub timeout_ns: u64,
    /// The fates of requests.
    pub faults: StoreFaults,
}

impl Default for StoreOptions {
    /// 30 ms, 100 MB/s a call, 1 GB/s in all, any number of requests, no faults.
    fn default() -> Self {
        Self {
            round_trip_ns: 30 * Nanos::MILLISECOND,
            spread_per_mille: 0,
            call_bytes_per_second: 100_000_000,
            bytes_per_second: 1_000_000_000,
            requests_max: u32::MAX,
            timeout_ns: 2 * Nanos::SECOND,
            faults: StoreFaults::default(),
        }
    }
}

/// Counts of requests, also of those that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// PUTs of segments.
    pub puts: u64,
    /// PUTs of other objects.
    pub log_puts: u64,
    /// GETs.
    pub gets: u64,
    /// Lists and deletions.
    pub others: u64,
    /// Answers 503.
    pub busy: u64,
    /// The most requests at once.
    pub requests_max: u32,
}

struct State {
    options: StoreOptions,
    random: Random,
    wire: Wire,
    /// The instant of the next call of `pass`.
    pass_at_ns: Option<u64>,
    away_until_ns: u64,
    in_flight: u32,
    figures: StoreFigures,
}

struct Inside {
    platform: Arc<SimPlatform>,
    contents: ObjectContents,
    state: Mutex<State>,
}

/// A store as the clients of one world see it. A clone is the same store.
#[derive(Clone)]
pub struct ObjectStore(Arc<Inside>);

impl std::fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ObjectStore")
    }
}

/// A request in flight.
struct InFlight(ObjectStore);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
    }
}

enum Fate {
    Answered,
    Busy,
    /// No answer; the effect comes after this time, if at all.
    Unanswered(Option<u64>),
}

impl ObjectStore {
    /// The store with these objects. Each change of an earlier world that is still under way takes effect now, later
    /// or never, by the seed.
    pub fn new(world: &World, contents: &ObjectContents, options: StoreOptions) -> Self {
        let mut random = world.shared().fork_random();
        let platform = Arc::clone(world.platform());
        for number in contents.under_way() {
            match random.below(3) {
                0 => contents.lose(number),
                1 => contents.apply(number),
                _ => {
                    let contents = contents.clone();
                    let at = platform.now().after(random.below(LATE_NS_MAX));
                    platform.call_at(at, move || contents.apply(number));
                }
            }
        }
        let wire = Wire::new(options.call_bytes_per_second, options.bytes_per_second);
        let state = State {
            options,
            random,
            wire,
            pass_at_ns: None,
            away_until_ns: 0,
            in_flight: 0,
            figures: StoreFigures::default(),
        };
        Self(Arc::new(Inside { platform, contents: contents.clone(), state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts so far.
    pub fn figures(&self) -> StoreFigures {
        self.state().figures
    }

    /// From now on for so long no request gets an answer.
    pub fn be_away(&self, ns: u64) {
        let until_ns = self.now_ns().saturating_add(ns);
        self.state().away_until_ns = until_ns;
    }

    fn now_ns(&self) -> u64 {
        self.0.platform.now().0
    }

    async fn sleep_ns(&self, ns: u64) {
        let platform = &self.0.platform;
        platform.sleep_until(platform.now().after(ns)).await;
    }

    fn begin(&self) -> (InFlight, Fate, u64, u64) {
        let now_ns = self.now_ns();
        let mut state = self.state();
        state.in_flight += 1;
        state.figures.requests_max = state.figures.requests_max.max(state.in_flight);
        let StoreOptions { round_trip_ns, spread_per_mille, requests_max, timeout_ns, faults, .. } = state.options;
        let spread_ns = round_trip_ns * spread_per_mille / 1000;
        let round_trip_ns = round_trip_ns - spread_ns + state.random.below(2 * spread_ns + 1);
        let StoreFaults { busy, lost, unanswered, late } = faults;
        let fate = match state.random.below(1000) {
            _ if now_ns < state.away_until_ns => Fate::Unanswered(None),
            _ if state.in_flight > requests_max => Fate::Busy,
            drawn if drawn < busy => Fate::Busy,
            drawn if drawn < busy + lost => Fate::Unanswered(None),
            drawn if drawn < busy + lost + unanswered => Fate::Unanswered(Some(round_trip_ns)),
            drawn if drawn < busy + lost + unanswered + late => Fate::Unanswered(Some(state.random.below(LATE_NS_MAX))),
            _ => Fate::Answered,
        };
        state.figures.busy += u64::from(matches!(fate, Fate::Busy));
        drop(state);
        (InFlight(self.clone()), fate, round_trip_ns, timeout_ns)
    }

    /// Sends a change with `bytes` bytes. Its effect happens when they have arrived.
    async fn change(&self, change: ObjectChange, bytes: u64) -> Result<PutOutcome, ObjectError> {
        let (_in_flight, fate, round_trip_ns, timeout_ns) = self.begin();
        match fate {
            Fate::Busy => {
                self.sleep_ns(round_trip_ns).await;
                Err(ObjectError::Busy)
            }
            Fate::Unanswered(effect_ns) => {
                if let Some(ns) = effect_ns {
                    let (contents, number) = (self.0.contents.clone(), self.0.contents.send(change));
                    let at = self.0.platform.now().after(ns);
                    self.0.platform.call_at(at, move || contents.apply(number));
                }
                self.sleep_ns(timeout_ns).await;
                Err(ObjectError::Unknown)
            }
            Fate::Answered => {
                let number = self.0.contents.send(change);
                self.sleep_ns(round_trip_ns / 2).await;
                self.transfer(bytes).await;
                let created = self.0.contents.take_effect(number);
                self.answer(round_trip_ns - round_trip_ns / 2).await?;
                created.ok_or(ObjectError::Unknown)
            }
        }
    }

    /// Asks for something without changing it. `bytes` counts those of the answer.
    async fn ask<T>(
        &self,
        look: impl FnOnce(&ObjectContents) -> T + Send,
        bytes: impl FnOnce(&T) -> u64 + Send,
        arrivals: &Arrivals,
    ) -> Result<T, ObjectError>
    where
        T: Send,
    {
        let (_in_flight, fate, round_trip_ns, timeout_ns) = self.begin();
        match fate {
            Fate::Busy => {
                self.sleep_ns(round_trip_ns).await;
                Err(ObjectError::Busy)
            }
            Fate::Unanswered(_) => {
                self.sleep_ns(timeout_ns).await;
                Err(ObjectError::Unknown)
            }
            Fate::Answered => {
                self.sleep_ns(round_trip_ns / 2).await;
                let answer = look(&self.0.contents);
                self.answer(round_trip_ns - round_trip_ns / 2).await?;
                let mut left = bytes(&answer);
                while left > 0 {
                    let piece = left.min(PIECE_BYTES);
                    self.transfer(piece).await;
                    arrivals.note(piece);
                    left -= piece;
                }
                Ok(answer)
            }
        }
    }

    /// The transfer of an answer, which an outage loses.
    async fn answer(&self, ns: u64) -> Result<(), ObjectError> {
        let (away_until_ns, timeout_ns) = {
            let state = self.state();
            (state.away_until_ns, state.options.timeout_ns)
        };
        if self.now_ns() < away_until_ns {
            self.sleep_ns(timeout_ns).await;
            return Err(ObjectError::Unknown);
        }
        self.sleep_ns(ns).await;
        Ok(())
    }

    async fn transfer(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let now_ns = self.now_ns();
        let (transfer, ended) = self.state().wire.begin(now_ns, bytes);
        ended.into_iter().for_each(std::task::Waker::wake);
        self.pass();
        poll_fn(|cx| if self.state().wire.poll(transfer, cx.waker()) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Ends transfers that are over, and comes back at the next end.
    fn pass(&self) {
        let now_ns = self.now_ns();
        let (ended, next_ns) = {
            let mut state = self.state();
            let ended = state.wire.pass(now_ns);
            let next_ns = state.wire.next_end_ns();
            let is_new = next_ns.is_some() && (state.pass_at_ns <= Some(now_ns) || next_ns < state.pass_at_ns);
            if is_new {
                state.pass_at_ns = next_ns;
            }
            (ended, next_ns.filter(|_| is_new))
        };
        ended.into_iter().for_each(std::task::Waker::wake);
        if let Some(at_ns) = next_ns {
            let store = Arc::downgrade(&self.0);
            self.0.platform.call_at(Nanos(at_ns), move || {
                if let Some(store) = Weak::upgrade(&store) {
                    Self(store).pass();
                }
            });
        }
    }
}

impl Objects for ObjectStore {
    async fn create(&self, name: &str, parts: impl Into<ByteParts> + Send) -> Result<PutOutcome, ObjectError> {
        let bytes = parts.into().joined();
        {
            let figures = &mut self.state().figures;
            let count = if name.starts_with("data/") { &mut figures.puts } else { &mut figures.log_puts };
            *count += 1;
        }
        let length = bytes.len() as u64;
        self.change(ObjectChange::Create(name.to_owned(), bytes), length).await
    }

    async fn get_counted(&self, name: &str, range: Range<u64>, arrivals: &Arrivals) -> Result<ByteParts, ObjectError> {
        self.state().figures.gets += 1;
        let found = self.ask(
            |contents| {
                let bytes = contents.get(name)?;
                let end = range.end.min(bytes.len() as u64);
                Some(bytes.slice(range.start.min(end) as usize..end as usize))
            },
            |bytes| bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            arrivals,
        );
        Ok(found.await?.ok_or(ObjectError::Missing)?.into())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, ObjectError> {
        self.state().figures.others += 1;
        self.ask(|contents| contents.names(prefix), |_| 0, Arrivals::NONE).await
    }

    async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        self.state().figures.others += 1;
        self.change(ObjectChange::Delete(name.to_owned()), 0).await.map(drop)
    }
}
