//! How often a law reads shared counters on each path through a call.
//!
//! A call's path is the sequence of its decisions. `C` lets the writer go on, `W` makes it write pages back itself, and
//! `P` makes it wait. An `f` at the end means that the device's background writeback was under way, so the call did not
//! have to check whether to start it. A path may be taken with different reads (the merged form looks at the device
//! only above the half-way mark), so the reads belong to the key.
//!
//! Before its first decision, the law is told that the device has had all completions for a long time, like the only
//! disk of a desktop. Its share is then the whole limit.
//!
//! Owns: the tally, that history. Does not own: the law, which receives every call.
//! Invariants: one writer at a time: a call's passes follow each other.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::old_kernels::{Reads, WriterDecision};
use afflux_engine::policy::{
    Admission, AnyPolicy, Completed, DirtyFiles, Figure, Flight, HangLimits, IdleWriteRule, LimitPages, Needs, Next,
    Pace, Remembered, Rewrites, Room, View,
};
use afflux_linux_policies::Policy;

/// A path and its reads: of counters shared by all devices, of dirty counters among them, of the device's counters. The
/// last number counts reads of shared counters that are always 0 here, since the engine has no pages of their kind.
pub(super) type Path = (String, [u64; 4]);

/// Completions of the device that make up the past: many periods of any limit here, in steps of less than half of the
/// shortest.
const PAST_STEPS: u64 = 1 << 14;
const PAST_STEP_PAGES: u64 = 1 << 12;

/// The first events of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    began_ns: u64,
    /// Pages of the device that were dirty or under writeback at the first wait of a writer.
    pub(super) pause_pages: Option<u64>,
    /// The first request for background writeback, from the run's beginning.
    pub(super) background_ns: Option<u64>,
}

/// The number of calls on each path.
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

    /// Begins a run.
    pub(super) fn begin(&self, now_ns: u64) {
        self.lock().marks = Marks { began_ns: now_ns, ..Marks::default() };
    }

    /// The first events since [`Tally::begin`].
    pub(super) fn marks(&self) -> Marks {
        self.lock().marks
    }

    /// Whether the law still has to be told the past; marks it as told.
    fn takes_past(&self) -> bool {
        !std::mem::replace(&mut self.lock().has_past, true)
    }

    fn pass(&self, view: &View, pace: &Pace, decision: Admission) {
        let mut calls = self.lock();
        if view.payer.call.pass == 0 {
            calls.open = Path::default();
        }
        let began_ns = calls.marks.began_ns;
        if pace.old_kernel.start_background {
            calls.marks.background_ns.get_or_insert(view.now.0 - began_ns);
        }
        if let Admission::OldKernel(WriterDecision::Pause(_)) = decision {
            let device = view.device();
            calls.marks.pause_pages.get_or_insert(device.reclaimable + device.writeback);
        }
        let Reads { global, dirty, device } = view.reads();
        for (sum, more) in calls.open.1.iter_mut().zip([global, dirty, device, view.absent_reads()]) {
            *sum += more;
        }
        calls.open.0.push(match decision {
            Admission::Enter => 'C',
            Admission::OldKernel(WriterDecision::WriteBack { .. }) => 'W',
            Admission::OldKernel(WriterDecision::Pause(_)) | Admission::Pause(_) | Admission::Wait => 'P',
        });
        if decision == Admission::Enter {
            if view.device().flushing {
                calls.open.0.push('f');
            }
            let path = std::mem::take(&mut calls.open);
            *calls.ended.entry(path).or_default() += 1;
        }
    }
}

/// A policy whose decisions are tallied.
struct Tallied {
    policy: Arc<dyn AnyPolicy>,
    tally: Arc<Tally>,
}

/// Wraps a policy so that its decisions are tallied.
pub(super) fn tallied(mut policy: Policy) -> (Policy, Arc<Tally>) {
    let tally = Arc::new(Tally::default());
    let own = Arc::clone(&policy.policies.policy);
    policy.policies.policy = Arc::new(Tallied { policy: own, tally: Arc::clone(&tally) });
    (policy, tally)
}

impl AnyPolicy for Tallied {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn pause_ns_max(&self) -> u64 {
        self.policy.pause_ns_max()
    }

    fn start(&self, memory_pages: u64, cpus: u64) -> Pace {
        self.policy.start(memory_pages, cpus)
    }

    fn new_payer(&self) -> Box<dyn Any + Send> {
        self.policy.new_payer()
    }

    fn new_device(&self, remembered: &Remembered) -> Box<dyn Any + Send> {
        self.policy.new_device(remembered)
    }

    fn new_shared(&self) -> Box<dyn Any + Send> {
        self.policy.new_shared()
    }

    fn room(&self, view: &View, device: &mut dyn Any) -> Room {
        self.policy.room(view, device)
    }

    fn flight(&self, view: &View, device: &mut dyn Any) -> Flight {
        self.policy.flight(view, device)
    }

    fn admit(
        &self,
        view: &View,
        payer: &mut dyn Any,
        device: &mut dyn Any,
        shared: &mut dyn Any,
        pace: &mut Pace,
    ) -> Admission {
        if self.tally.takes_past() {
            let past = Completed { pages: PAST_STEP_PAGES, ..Completed::default() };
            (0..PAST_STEPS).for_each(|_| self.policy.completed(view, &past, device, shared));
        }
        let admission = self.policy.admit(view, payer, device, shared, pace);
        self.tally.pass(view, pace, admission);
        admission
    }

    fn completed(&self, view: &View, done: &Completed, device: &mut dyn Any, shared: &mut dyn Any) {
        self.policy.completed(view, done, device, shared);
    }

    fn over_background(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> bool {
        self.policy.over_background(view, device, shared)
    }

    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut dyn Any, shared: &mut dyn Any) -> Next {
        self.policy.next(view, files, device, shared)
    }

    fn next_if_pressed(&self, view: &View, files: &dyn DirtyFiles, device: &mut dyn Any, shared: &mut dyn Any) -> Next {
        self.policy.next_if_pressed(view, files, device, shared)
    }

    fn idle_write_rule(&self, view: &View, before: IdleWriteRule, seen: &Rewrites) -> Option<IdleWriteRule> {
        self.policy.idle_write_rule(view, before, seen)
    }

    fn slice_bytes(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> u64 {
        self.policy.slice_bytes(view, device, shared)
    }

    fn limits(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> LimitPages {
        self.policy.limits(view, device, shared)
    }

    fn hang_limits(&self, view: &View, device: &mut dyn Any) -> HangLimits {
        self.policy.hang_limits(view, device)
    }

    fn explain(&self, view: &View, device: &mut dyn Any) -> Vec<Figure> {
        self.policy.explain(view, device)
    }

    fn remember(&self, view: &View, device: &mut dyn Any) -> Remembered {
        self.policy.remember(view, device)
    }
}
