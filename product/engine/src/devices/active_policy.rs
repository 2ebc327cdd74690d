//! The policy in force, and its memory.
//!
//! Owns: the policy, its memory of all devices together, the locks around its memories.
//! Does not own: the questions (`afflux_device::policy`), when they are asked (`throttle`, `writeback`, `devices`).
//! Invariants: a policy is asked when a payer's allowance is used up, never on a hit. Its memory of a device is locked
//! before its memory of all.

use std::any::Any;
use std::sync::{Arc, Mutex};

use afflux_device::policy::{
    AnyPolicy, ChargeBounds, Flight, IdleWriteRule, Needs, Pace, PolicyMemory, Remembered, Rewrites, View,
};
use afflux_pages::rare::Number;
use afflux_pages::sync::OwnLines;
use afflux_pages::wait::lock;

/// The policy in force, with its memory of all devices together.
pub(crate) struct ActivePolicy {
    policy: Arc<dyn AnyPolicy>,
    needs: Needs,
    /// On its own cache lines, apart from the fields that every write reads. `None` if the policy has no such memory.
    shared: Option<OwnLines<Mutex<PolicyMemory>>>,
    /// Counts accesses to that memory.
    pub(crate) looks: Number,
}

impl ActivePolicy {
    /// Puts a policy in force.
    pub(crate) fn new(policy: Arc<dyn AnyPolicy>) -> Self {
        let (needs, shared) = (policy.needs(), policy.new_shared());
        let shared = (!shared.is::<()>()).then(|| OwnLines(Mutex::new(shared)));
        Self { policy, needs, shared, looks: Number::default() }
    }

    /// The questions that it wants.
    pub(crate) fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Name of the policy, as `--policy` takes it.
    pub(crate) fn name(&self) -> &'static str {
        self.policy.name()
    }

    /// The longest pause that it may ask for.
    pub(crate) fn pause_ns_max(&self) -> u64 {
        self.policy.pause_ns_max()
    }

    pub(crate) fn new_payer(&self) -> PolicyMemory {
        self.policy.new_payer()
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

    /// Asks for a device's charge bounds and its limits in flight: reads nothing that devices share.
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
    pub(crate) fn idle_write_rule(&self, view: &View, before: IdleWriteRule, seen: &Rewrites) -> Option<IdleWriteRule> {
        self.policy.idle_write_rule(view, before, seen)
    }

    /// The pace before the first decision.
    pub(crate) fn start(&self, memory_pages: u64, cpus: u64) -> Pace {
        self.policy.start(memory_pages, cpus)
    }
}

/// The policy's memory of one device.
pub(crate) struct LockedMemory(Mutex<PolicyMemory>);
