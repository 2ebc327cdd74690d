//! How often a law reads shared counters on each path through a call.
//!
//! A call's path is its decisions in a row: `C` lets the writer go on, `W` has it write pages back itself,
//! `P` has it wait. A path may be taken with different reads (the merged form looks at the device only above
//! the half-way mark), so reads belong to the key.
//!
//! Before its first decision the law is told that the device has had all completions of a long time, as a
//! desktop's only disk has: its share is then the whole limit.
//!
//! Owns: the tally, that history. Does not own: the law, which it passes everything on to.
//! Invariants: one writer at a time: a call's passes follow each other.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::throttle::{AnyLaw, Decision, LimitPages, Pace, Reads, Throttle, View};
use linux_policies::Policy;

/// A path and what was read on it: shared by all devices, of these dirty counters, the device's.
pub(super) type Path = (String, [u64; 3]);

/// Of the device whose completions are the machine's past: many periods of any limit here, in steps of less
/// than half of the shortest.
const PAST_STEPS: u64 = 1 << 14;
const PAST_STEP_PAGES: u64 = 1 << 12;

/// What happened first in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    began_ns: u64,
    /// Pages of the device that were dirty or under writeback when a writer first had to wait.
    pub(super) pause_pages: Option<u64>,
    /// When background writeback was first asked for, from the run's beginning.
    pub(super) background_ns: Option<u64>,
}

/// How many calls took which path.
#[derive(Default)]
pub(super) struct Tally {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    has_past: bool,
    marks: Marks,
    open: Path,
    ended: BTreeMap<Path, u64>,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that have ended, by path.
    pub(super) fn paths(&self) -> BTreeMap<Path, u64> {
        self.lock().ended.clone()
    }

    /// A run begins.
    pub(super) fn begin(&self, now_ns: u64) {
        self.lock().marks = Marks { began_ns: now_ns, ..Marks::default() };
    }

    /// What happened since then.
    pub(super) fn marks(&self) -> Marks {
        self.lock().marks
    }

    /// Whether the law has still to be told the past; it has been from now on.
    fn takes_past(&self) -> bool {
        !std::mem::replace(&mut self.lock().has_past, true)
    }

    fn pass(&self, view: &View, pace: &Pace, decision: Decision) {
        let mut calls = self.lock();
        if view.task.pass == 0 {
            calls.open = Path::default();
        }
        let began_ns = calls.marks.began_ns;
        if pace.start_background {
            calls.marks.background_ns.get_or_insert(view.now.0 - began_ns);
        }
        if let Decision::Pause(_) = decision {
            let device = view.device();
            calls.marks.pause_pages.get_or_insert(device.reclaimable + device.writeback);
        }
        let Reads { global, dirty, device } = view.reads();
        for (sum, more) in calls.open.1.iter_mut().zip([global, dirty, device]) {
            *sum += more;
        }
        calls.open.0.push(match decision {
            Decision::Continue => 'C',
            Decision::WriteBack { .. } => 'W',
            Decision::Pause(_) => 'P',
        });
        if decision == Decision::Continue {
            let path = std::mem::take(&mut calls.open);
            *calls.ended.entry(path).or_default() += 1;
        }
    }
}

/// A law whose decisions are tallied.
struct Tallied {
    law: Arc<dyn AnyLaw>,
    tally: Arc<Tally>,
}

/// Has the policy's decisions tallied.
pub(super) fn tallied(mut policy: Policy) -> (Policy, Arc<Tally>) {
    let tally = Arc::new(Tally::default());
    if let Throttle::Law(law) = policy.policies.throttle {
        policy.policies.throttle = Throttle::Law(Arc::new(Tallied { law, tally: Arc::clone(&tally) }));
    }
    (policy, tally)
}

impl AnyLaw for Tallied {
    fn name(&self) -> &'static str {
        self.law.name()
    }

    fn pause_ns_max(&self) -> u64 {
        self.law.pause_ns_max()
    }

    fn start(&self, memory_pages: u64, cpus: u64) -> Pace {
        self.law.start(memory_pages, cpus)
    }

    fn new_task(&self) -> Box<dyn Any + Send> {
        self.law.new_task()
    }

    fn new_device(&self) -> Box<dyn Any + Send> {
        self.law.new_device()
    }

    fn new_shared(&self) -> Box<dyn Any + Send> {
        self.law.new_shared()
    }

    fn decide(
        &self,
        view: &View,
        task: &mut dyn Any,
        device: &mut dyn Any,
        shared: &mut dyn Any,
        pace: &mut Pace,
    ) -> Decision {
        if self.tally.takes_past() {
            (0..PAST_STEPS).for_each(|_| self.law.wrote(view, PAST_STEP_PAGES, device, shared));
        }
        let decision = self.law.decide(view, task, device, shared, pace);
        self.tally.pass(view, pace, decision);
        decision
    }

    fn wrote(&self, view: &View, pages: u64, device: &mut dyn Any, shared: &mut dyn Any) {
        self.law.wrote(view, pages, device, shared);
    }

    fn over_background(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> bool {
        self.law.over_background(view, device, shared)
    }

    fn slice_pages(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> u64 {
        self.law.slice_pages(view, device, shared)
    }

    fn limits(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> LimitPages {
        self.law.limits(view, device, shared)
    }
}
