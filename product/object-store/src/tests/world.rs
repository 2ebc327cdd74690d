//! The world of a run: virtual time, random choices, effects in flight, the trace.
//!
//! Owns: the fate of each request.
//! Does not own: the objects (`store`), the processes.
//! Invariants: an effect in flight happens even if its process is frozen or dead. Time is that of the thread of the
//! test.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::observer::Observer;

pub(super) const MS: u64 = 1_000_000;
/// Time moves on in such steps.
pub(super) const TICK_NS: u64 = 5 * MS;
const TIMEOUT_NS: u64 = 2_000 * MS;
const LATE_NS_MAX: u64 = 30_000 * MS;

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
}

pub(super) fn now_ns() -> u64 {
    NOW_NS.get()
}

/// The generator SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// A rule that a control breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// A COMMIT counts as answered before it is durable.
    AnswerAfterDurable,
    /// The store makes an object a second time.
    CreateOnce,
    /// The store forgets an answered PUT now and then.
    KeepObjects,
}

/// The times of a request, from now on.
pub(super) struct Fate {
    /// Absent if there is no effect.
    pub(super) effect_ns: Option<u64>,
    pub(super) answer_ns: u64,
    pub(super) is_answered: bool,
}

type Effect = Box<dyn FnOnce() + Send>;

pub(super) struct World {
    pub(super) random: Random,
    pub(super) broken: Option<Broken>,
    /// Every request takes so long, and none fails.
    pub(super) calm_ns: Option<u64>,
    pub(super) outage_until_ns: u64,
    pub(super) observer: Observer,
    pub(super) requests: u64,
    /// PUTs of the compactor's state.
    pub(super) compactions: u64,
    trace: DefaultHasher,
    effects: BTreeMap<(u64, u64), Effect>,
}

/// The world as its store and its processes share it.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    /// A world at its beginning.
    pub(super) fn new(seed: u64, broken: Option<Broken>) -> Self {
        NOW_NS.set(0);
        let world = World {
            random: Random(seed),
            broken,
            calm_ns: None,
            outage_until_ns: 0,
            observer: Observer::default(),
            requests: 0,
            compactions: 0,
            trace: DefaultHasher::new(),
            effects: BTreeMap::new(),
        };
        Self(Arc::new(Mutex::new(world)))
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves time on by a tick. Effects happen in their order.
    pub(super) fn advance(&self) {
        let now_ns = now_ns() + TICK_NS;
        NOW_NS.set(now_ns);
        loop {
            let next = {
                let mut world = self.world();
                let is_due = world.effects.first_key_value().is_some_and(|((at_ns, _), _)| *at_ns <= now_ns);
                is_due.then(|| world.effects.pop_first()).flatten()
            };
            let Some((_, effect)) = next else { return };
            effect();
        }
    }
}

impl World {
    /// Notes a request, and draws its fate.
    pub(super) fn request(&mut self, process: u64, kind: &str, name: &str) -> Fate {
        self.requests += 1;
        self.compactions += u64::from(kind == "put" && name.contains("/compactions/"));
        let fate = self.fate();
        (now_ns(), process, kind, name, fate.effect_ns, fate.answer_ns).hash(&mut self.trace);
        fate
    }

    fn fate(&mut self) -> Fate {
        if let Some(answer_ns) = self.calm_ns {
            return Fate { effect_ns: Some(answer_ns / 2), answer_ns, is_answered: true };
        }
        let latency_ns = 10 * MS + self.random.below(50 * MS);
        let (effect_ns, answer_ns, is_answered) = match self.random.below(1_000) {
            // A store that is away, or too busy.
            _ if now_ns() < self.outage_until_ns => (None, latency_ns, false),
            0..5 => (None, latency_ns, false),
            5..8 => (None, TIMEOUT_NS, false),
            8..11 => (Some(latency_ns), TIMEOUT_NS, false),
            11..13 => (Some(self.random.below(LATE_NS_MAX)), TIMEOUT_NS, false),
            _ => (Some(latency_ns / 2), latency_ns, true),
        };
        Fate { effect_ns, answer_ns, is_answered }
    }

    pub(super) fn schedule(&mut self, after_ns: u64, effect: impl FnOnce() + Send + 'static) {
        self.effects.insert((now_ns() + after_ns, self.requests), Box::new(effect));
    }

    /// A number for all requests so far.
    pub(super) fn trace(&self) -> u64 {
        self.trace.finish()
    }
}
