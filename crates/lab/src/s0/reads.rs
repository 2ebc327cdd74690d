//! How often a law reads shared counters on each path through a call.
//!
//! A call's path is its decisions in a row: `C` lets the writer go on, `W` has it write pages back itself,
//! `P` has it wait. A path may be taken with different reads (the merged form looks at the device only above
//! the half-way mark), so reads belong to the key.
//!
//! Owns: the tally. Does not own: the law, which it passes everything on to.
//! Invariants: one writer at a time: a call's passes follow each other.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::throttle::{AnyLaw, Decision, LimitPages, Pace, Reads, Throttle, View};
use linux_policies::Policy;

/// A path and what was read on it: shared by all devices, of these dirty counters, the device's.
pub(super) type Path = (String, [u64; 3]);

/// How many calls took which path.
#[derive(Default)]
pub(super) struct Tally {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
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

    fn pass(&self, first: bool, reads: Reads, decision: Decision) {
        let mut calls = self.lock();
        if first {
            calls.open = Path::default();
        }
        let Reads { global, dirty, device } = reads;
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
        let decision = self.law.decide(view, task, device, shared, pace);
        self.tally.pass(view.task.pass == 0, view.reads(), decision);
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
