//! The requests that have no final answer yet.
//!
//! A request that fails is sent again by the layer above. Until it succeeds it waits here, in flight or between two
//! tries.
//!
//! Owns: since when each request waits, why, when the store last answered, since when it takes no object.
//! Does not own: tries, pauses, the meaning of an answer.
//! Invariants: the list is bounded; the oldest requests stay in it. A request that nobody sends again goes after
//! [`GIVEN_UP_NS`]. Requests of data, of records, of an opening and of a check are all in one list.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use object_store::path::Path;

const S: u64 = 1_000_000_000;
/// The layers above pause for five seconds at most.
const GIVEN_UP_NS: u64 = 15 * S;
/// Requests that are counted separately.
const WAITING_MAX: usize = 4_096;
/// A store is away if a request has failed for so long.
const FAILING_NS: u64 = 5 * S;
/// A store is away, too, if it gave no answer for so long while a request is in flight. A large request takes its time.
const SILENT_NS: u64 = 10 * S;

/// A PUT that runs for longer counts as hanging.
const HANGING_NS: u64 = 20 * S;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitKind {
    Put,
    Get,
    List,
    Delete,
}

/// A failure that the layers above repeat until it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// When it began, by the volume's clock.
    pub since_ns: u64,
    /// The store's words about the last failure.
    pub why: String,
}

/// The requests that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestWaits {
    /// Count of requests that wait.
    pub requests: u64,
    /// For how long the oldest one.
    pub oldest_ns: u64,
    /// Why that one was not answered yet, if a try failed.
    pub why: Option<String>,
}

#[derive(Debug)]
pub(crate) struct WaitingRequests {
    now_ns: fn() -> u64,
    list: Mutex<BTreeMap<(WaitKind, Path), One>>,
    /// The time of the store's last answer.
    answered_ns: AtomicU64,
    puts: Mutex<Puts>,
}

/// The outcomes of PUTs.
#[derive(Debug)]
struct Puts {
    /// When the last one succeeded, or the connection was made.
    taken_ns: u64,
    /// The first failure since then.
    refusal: Option<Trouble>,
    /// The last one.
    failed_ns: u64,
}

#[derive(Debug)]
struct One {
    since_ns: u64,
    in_flight: u64,
    failed_ns: u64,
    why: Option<String>,
}

impl WaitingRequests {
    pub(crate) fn new(now_ns: fn() -> u64) -> Arc<Self> {
        let puts = Mutex::new(Puts { taken_ns: now_ns(), refusal: None, failed_ns: 0 });
        Arc::new(Self { now_ns, list: Mutex::default(), answered_ns: AtomicU64::new(now_ns()), puts })
    }

    fn puts(&self) -> MutexGuard<'_, Puts> {
        self.puts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list(&self) -> MutexGuard<'_, BTreeMap<(WaitKind, Path), One>> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = (self.now_ns)();
        list.retain(|_, one| one.in_flight > 0 || now_ns.saturating_sub(one.failed_ns) < GIVEN_UP_NS);
        list
    }

    /// A request is sent.
    pub(crate) fn begin(self: &Arc<Self>, kind: WaitKind, path: &Path) -> Sent {
        let (mut list, now_ns) = (self.list(), (self.now_ns)());
        let key = (kind, path.clone());
        let is_listed = list.len() < WAITING_MAX || list.contains_key(&key);
        let mut since_ns = now_ns;
        if is_listed {
            let new = || One { since_ns: now_ns, in_flight: 0, failed_ns: 0, why: None };
            let one = list.entry(key.clone()).or_insert_with(new);
            one.in_flight += 1;
            since_ns = one.since_ns;
        }
        Sent { waiting: Arc::clone(self), kind, key: is_listed.then_some(key), since_ns }
    }

    /// The store answered.
    pub(crate) fn hears(&self) {
        self.answered_ns.store((self.now_ns)(), Ordering::Relaxed);
    }

    /// How long ago the store answered, or the connection was made.
    pub(crate) fn silent_ns(&self) -> u64 {
        (self.now_ns)().saturating_sub(self.answered_ns.load(Ordering::Relaxed))
    }

    /// The oldest failure that is not over.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        let list = self.list();
        let failing = list.values().filter_map(|one| Some((one.since_ns, one.why.as_ref()?)));
        failing.min().map(|(since_ns, why)| Trouble { since_ns, why: why.clone() })
    }

    /// For how long the store has taken no object, because it refuses PUTs or does not end them. 0 while a PUT is in
    /// flight that has not failed yet.
    pub(crate) fn untaken_ns(&self) -> u64 {
        let (list, now_ns) = (self.list(), (self.now_ns)());
        let unfailed = list.iter().filter(|((kind, _), one)| *kind == WaitKind::Put && one.why.is_none());
        let oldest_ns = unfailed.map(|(_, one)| one.since_ns).min();
        let puts = self.puts();
        let since_ns = match (oldest_ns, &puts.refusal) {
            (Some(oldest_ns), _) if now_ns.saturating_sub(oldest_ns) < HANGING_NS => return 0,
            (Some(oldest_ns), _) => oldest_ns.max(puts.taken_ns),
            // A failure of long ago predicts nothing about the next PUT.
            (None, Some(refusal)) if now_ns.saturating_sub(puts.failed_ns) < GIVEN_UP_NS => refusal.since_ns,
            (None, _) => return 0,
        };
        now_ns.saturating_sub(since_ns)
    }

    /// The first failure of a PUT since the last one that succeeded.
    pub(crate) fn refusal(&self) -> Option<Trouble> {
        self.puts().refusal.clone()
    }

    pub(crate) fn waits(&self) -> RequestWaits {
        let (list, now_ns) = (self.list(), (self.now_ns)());
        let oldest = list.values().min_by_key(|one| one.since_ns);
        RequestWaits {
            requests: list.len() as u64,
            oldest_ns: oldest.map_or(0, |one| now_ns.saturating_sub(one.since_ns)),
            why: oldest.and_then(|one| one.why.clone()),
        }
    }

    /// For how long the store has been away; 0 while it is there.
    pub(crate) fn away_ns(&self) -> u64 {
        let failing_ns = self.trouble().map_or(0, |trouble| (self.now_ns)().saturating_sub(trouble.since_ns));
        let silent_ns = self.waits().oldest_ns.min(self.silent_ns());
        match (failing_ns >= FAILING_NS, silent_ns >= SILENT_NS) {
            (true, _) => failing_ns,
            (false, true) => silent_ns,
            (false, false) => 0,
        }
    }
}

/// A request in flight. It is no longer when the value is dropped.
#[derive(Debug)]
pub(crate) struct Sent {
    waiting: Arc<WaitingRequests>,
    kind: WaitKind,
    key: Option<(WaitKind, Path)>,
    since_ns: u64,
}

impl Sent {
    /// For how long the request has waited, with its earlier tries.
    pub(crate) fn waited_ns(&self) -> u64 {
        (self.waiting.now_ns)().saturating_sub(self.since_ns)
    }

    /// The store did what the request wanted.
    pub(crate) fn succeeds(&self) {
        if self.kind == WaitKind::Put {
            *self.waiting.puts() = Puts { taken_ns: (self.waiting.now_ns)(), refusal: None, failed_ns: 0 };
        }
    }

    /// The store did not do it: the request is sent again, or that was its last try.
    pub(crate) fn note_refusal(&self, why: &str) {
        if self.kind == WaitKind::Put {
            let (mut puts, now_ns) = (self.waiting.puts(), (self.waiting.now_ns)());
            puts.failed_ns = now_ns;
            puts.refusal.get_or_insert_with(|| Trouble { since_ns: now_ns, why: why.to_owned() });
        }
    }

    /// The request failed, and will be sent again.
    pub(crate) fn fails(&self, why: String) {
        let Some(key) = &self.key else { return };
        let mut list = self.waiting.list();
        if let Some(one) = list.get_mut(key) {
            (one.failed_ns, one.why) = ((self.waiting.now_ns)(), Some(why));
        }
    }

    /// The request has its answer.
    pub(crate) fn ends(&self) {
        let Some(key) = &self.key else { return };
        let mut list = self.waiting.list();
        if let Some(one) = list.get_mut(key) {
            one.why = None;
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let mut list = self.waiting.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = list.get_mut(&key) {
            one.in_flight -= 1;
            if one.in_flight == 0 && one.why.is_none() {
                list.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
