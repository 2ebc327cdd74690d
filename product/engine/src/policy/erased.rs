//! A policy whose types of memory the engine cannot name.
//!
//! Owns: the erased form of the trait, and its implementation for every policy.
//! Does not own: the questions' meaning (`seam`).
//! Invariants: memory goes only to the policy that made it.

use std::any::Any;

use super::figures::{Figure, Remembered};
use super::seam::{
    Admission, Completed, DevicePolicy, DirtyFiles, Flight, HangLimits, IdleWriteRule, LimitPages, Memory, Needs, Next,
    Pace, Rewrites, Room,
};
use super::view::View;
use crate::sync::OwnLines;

/// Memory of a policy that the engine keeps and cannot look into.
pub(crate) type PolicyMemory = Box<dyn Any + Send>;

/// A [`DevicePolicy`] without the types of its memory.
pub trait AnyPolicy: Send + Sync + 'static {
    /// [`DevicePolicy::name`].
    fn name(&self) -> &'static str;
    /// [`DevicePolicy::needs`].
    fn needs(&self) -> Needs;
    /// [`DevicePolicy::pause_ns_max`].
    fn pause_ns_max(&self) -> u64;
    /// [`DevicePolicy::start`].
    fn start(&self, memory_pages: u64, cpus: u64) -> Pace;
    /// Memory of a new payer.
    fn new_payer(&self) -> Box<dyn Any + Send>;
    /// Memory of a new device, with the data kept of it: [`DevicePolicy::recall`].
    fn new_device(&self, remembered: &Remembered) -> Box<dyn Any + Send>;
    /// Memory of all devices together.
    fn new_shared(&self) -> Box<dyn Any + Send>;
    /// [`DevicePolicy::room`].
    fn room(&self, view: &View, device: &mut dyn Any) -> Room;
    /// [`DevicePolicy::flight`].
    fn flight(&self, view: &View, device: &mut dyn Any) -> Flight;
    /// [`DevicePolicy::admit`], with memory that this policy made.
    fn admit(
        &self,
        view: &View,
        payer: &mut dyn Any,
        device: &mut dyn Any,
        shared: &mut dyn Any,
        pace: &mut Pace,
    ) -> Admission;
    /// [`DevicePolicy::completed`].
    fn completed(&self, view: &View, done: &Completed, device: &mut dyn Any, shared: &mut dyn Any);
    /// [`DevicePolicy::over_background`].
    fn over_background(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> bool;
    /// [`DevicePolicy::next`].
    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut dyn Any, shared: &mut dyn Any) -> Next;
    /// [`DevicePolicy::next_if_pressed`].
    fn next_if_pressed(&self, view: &View, files: &dyn DirtyFiles, device: &mut dyn Any, shared: &mut dyn Any) -> Next;
    /// [`DevicePolicy::idle_write_rule`].
    fn idle_write_rule(&self, view: &View, before: IdleWriteRule, seen: &Rewrites) -> Option<IdleWriteRule>;
    /// [`DevicePolicy::slice_bytes`].
    fn slice_bytes(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> u64;
    /// [`DevicePolicy::limits`].
    fn limits(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> LimitPages;
    /// [`DevicePolicy::hang_limits`].
    fn hang_limits(&self, view: &View, device: &mut dyn Any) -> HangLimits;
    /// [`DevicePolicy::explain`].
    fn explain(&self, view: &View, device: &mut dyn Any) -> Vec<Figure>;
    /// [`DevicePolicy::remember`].
    fn remember(&self, view: &View, device: &mut dyn Any) -> Remembered;
}

fn kept<T: 'static>(memory: &mut dyn Any) -> &mut T {
    memory.downcast_mut().unwrap_or_else(|| unreachable!("memory is handed to the policy that made it"))
}

/// The memory of a payer or a device: on its own cache lines, since writers change it at every decision.
fn own<T: 'static>(memory: &mut dyn Any) -> &mut T {
    &mut kept::<OwnLines<T>>(memory).0
}

impl<L: DevicePolicy> AnyPolicy for L {
    fn name(&self) -> &'static str {
        DevicePolicy::name(self)
    }

    fn needs(&self) -> Needs {
        DevicePolicy::needs(self)
    }

    fn pause_ns_max(&self) -> u64 {
        DevicePolicy::pause_ns_max(self)
    }

    fn start(&self, memory_pages: u64, cpus: u64) -> Pace {
        DevicePolicy::start(self, memory_pages, cpus)
    }

    fn new_payer(&self) -> Box<dyn Any + Send> {
        Box::new(OwnLines(L::Payer::default()))
    }

    fn new_device(&self, remembered: &Remembered) -> Box<dyn Any + Send> {
        Box::new(OwnLines(DevicePolicy::recall(self, remembered)))
    }

    fn new_shared(&self) -> Box<dyn Any + Send> {
        Box::new(L::Shared::default())
    }

    fn room(&self, view: &View, device: &mut dyn Any) -> Room {
        DevicePolicy::room(self, view, own(device))
    }

    fn flight(&self, view: &View, device: &mut dyn Any) -> Flight {
        DevicePolicy::flight(self, view, own(device))
    }

    fn admit(
        &self,
        view: &View,
        payer: &mut dyn Any,
        device: &mut dyn Any,
        shared: &mut dyn Any,
        pace: &mut Pace,
    ) -> Admission {
        let memory = Memory { payer: own(payer), device: own(device), shared: kept(shared), pace };
        DevicePolicy::admit(self, view, memory)
    }

    fn completed(&self, view: &View, done: &Completed, device: &mut dyn Any, shared: &mut dyn Any) {
        DevicePolicy::completed(self, view, done, own(device), kept(shared));
    }

    fn over_background(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> bool {
        DevicePolicy::over_background(self, view, own(device), kept(shared))
    }

    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut dyn Any, shared: &mut dyn Any) -> Next {
        DevicePolicy::next(self, view, files, own(device), kept(shared))
    }

    fn next_if_pressed(&self, view: &View, files: &dyn DirtyFiles, device: &mut dyn Any, shared: &mut dyn Any) -> Next {
        DevicePolicy::next_if_pressed(self, view, files, own(device), kept(shared))
    }

    fn idle_write_rule(&self, view: &View, before: IdleWriteRule, seen: &Rewrites) -> Option<IdleWriteRule> {
        DevicePolicy::idle_write_rule(self, view, before, seen)
    }

    fn slice_bytes(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> u64 {
        DevicePolicy::slice_bytes(self, view, own(device), kept(shared))
    }

    fn limits(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> LimitPages {
        DevicePolicy::limits(self, view, own(device), kept(shared))
    }

    fn hang_limits(&self, view: &View, device: &mut dyn Any) -> HangLimits {
        DevicePolicy::hang_limits(self, view, own(device))
    }

    fn explain(&self, view: &View, device: &mut dyn Any) -> Vec<Figure> {
        DevicePolicy::explain(self, view, own(device))
    }

    fn remember(&self, view: &View, device: &mut dyn Any) -> Remembered {
        DevicePolicy::remember(self, view, own(device))
    }
}
