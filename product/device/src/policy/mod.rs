//! Policies: decisions about a device's writers and its flusher, behind one seam.
//!
//! Owns: the seam, the view for decisions, the policy in force with its memory of all devices, the engine's own policy.
//! Does not own: carrying decisions out (`throttle`, `writeback`); kernels' policies (`linux-policies`).
//! Invariants: a policy is asked when a payer's allowance is used up, never on a hit. Its memory of a device is locked
//! before its memory of all.

mod account;
mod equal_parts;
mod erased;
mod figures;
mod pause_cause;
mod seam;
mod slice;
mod view;

use std::any::Any;
use std::sync::{Arc, Mutex};

use afflux_pages::rare::Number;
use afflux_pages::sync::OwnLines;
use afflux_pages::wait::lock;

pub use account::{Dirtied, MachineSize, Payer};
pub use equal_parts::{EQUAL_PARTS_FIGURES, EQUAL_PARTS_POLICY, EqualParts};
pub use erased::AnyPolicy;
pub use erased::PolicyMemory;
pub use figures::{Figure, FigureInfo, FigureValue, KnobInForce, Remembered};
pub use pause_cause::PauseCause;
pub use seam::{
    Admission, AtEnd, ChargeBounds, Completed, Cost, DevicePolicy, Direction, Dirtier, DirtyFiles, Flight, HangLimits,
    Idle, IdleWriteRule, IgnoredKnob, LentMemory, LimitPages, Needs, Next, Pace, Pause, Prices, Rewrites,
};
pub use slice::FlushSlice;
pub use view::{BusyTimes, DeviceCounts, KnobValues, POLICY_KNOBS_MAX, PayerCounts, PolicyKnobs, SharedCounts, View};

/// The policy in force, with its memory of all devices together.
pub struct ActivePolicy {
    policy: Arc<dyn AnyPolicy>,
    needs: Needs,
    /// On its own cache lines, apart from the fields that every write reads. `None` if the policy has no such memory.
    shared: Option<OwnLines<Mutex<PolicyMemory>>>,
    /// Looks at that memory.
    pub(crate) looks: Number,
}

impl ActivePolicy {
    /// Puts a policy in force.
    pub fn new(policy: Arc<dyn AnyPolicy>) -> Self {
        let (needs, shared) = (policy.needs(), policy.new_shared());
        let shared = (!shared.is::<()>()).then(|| OwnLines(Mutex::new(shared)));
        Self { policy, needs, shared, looks: Number::default() }
    }

    /// The questions that it wants.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Name of the policy, as `--policy` takes it.
    pub fn name(&self) -> &'static str {
        self.policy.name()
    }

    /// The longest pause that it may ask for.
    pub fn pause_ns_max(&self) -> u64 {
        self.policy.pause_ns_max()
    }

    pub(crate) fn new_device(&self, remembered: &Remembered) -> LockedMemory {
        LockedMemory(Mutex::new(self.policy.new_device(remembered)))
    }

    /// Asks about a device.
    pub(crate) fn ask<T>(
        &self,
        device: &LockedMemory,
        question: impl FnOnce(&dyn AnyPolicy, &mut dyn Any, &mut dyn Any) -> T,
    ) -> T {
        let own = &mut **lock(&device.0);
        let Some(shared) = &self.shared else { return question(&*self.policy, own, &mut ()) };
        self.looks.count_one();
        question(&*self.policy, own, &mut **lock(shared))
    }

    /// Asks for a device's room and its limits in flight: reads nothing that devices share.
    pub(crate) fn charge_bounds(&self, view: &View, device: &LockedMemory) -> (ChargeBounds, Flight) {
        let own = &mut **lock(&device.0);
        (self.policy.charge_bounds(view, own), self.policy.flight(view, own))
    }

    /// Asks whether callers may be refused while the device hangs, by the present knobs: reads nothing that devices
    /// share.
    pub(crate) fn may_refuse(&self, view: &View, device: &LockedMemory) -> bool {
        self.policy.hang_limits(view, &mut **lock(&device.0)).refused_ns < u64::MAX
    }

    /// Asks how to treat a file that was looked at: reads no memory.
    pub fn idle_write_rule(&self, view: &View, before: IdleWriteRule, seen: &Rewrites) -> Option<IdleWriteRule> {
        self.policy.idle_write_rule(view, before, seen)
    }

    /// The pace before the first decision.
    pub(crate) fn start(&self, memory_pages: u64, cpus: u64) -> Pace {
        self.policy.start(memory_pages, cpus)
    }
}

/// The policy's memory of one device.
pub struct LockedMemory(Mutex<PolicyMemory>);
