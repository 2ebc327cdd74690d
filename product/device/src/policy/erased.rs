//! A policy whose types of memory the engine cannot name.
//!
//! Owns: the erased form of the trait, and its implementation for every policy.
//! Does not own: the questions' meaning (`policy`).
//! Invariants: memory goes only to the policy that made it.

use std::any::Any;

use afflux_pages::sync::OwnLines;

use super::view::View;
use crate::policy::{
    Admission, ChargeBounds, Completed, DevicePolicy, Dirtier, DirtyFiles, Figure, Flight, HangLimits, IdleWriteRule,
    KnobInForce, LentMemory, LimitPages, Needs, Next, Pace, Remembered, Rewrites,
};

/// Memory of a policy that the engine stores and cannot read.
pub type PolicyMemory = Box<dyn Any + Send>;

fn memory_as<T: 'static>(memory: &mut dyn Any) -> &mut T {
    memory.downcast_mut().unwrap_or_else(|| unreachable!("memory is handed to the policy that made it"))
}

/// The memory of a payer or a device: on its own cache lines, since writers change it at every decision.
fn own<T: 'static>(memory: &mut dyn Any) -> &mut T {
    &mut memory_as::<OwnLines<T>>(memory).0
}

/// Declares each question once, for the erased trait and for its implementation: the name, the arguments, the memories
/// with the function that lends each, and the answer.
macro_rules! questions {
    ($($question:ident($($argument:ident: $type:ty),*) [$($memory:ident by $lend:ident),*] -> $answer:ty;)*) => {
        /// A [`DevicePolicy`] without the types of its memory.
        pub trait AnyPolicy: Send + Sync + 'static {
            /// Memory of a new payer.
            fn new_payer(&self) -> Box<dyn Any + Send>;
            /// Memory of a new device, with the data kept of it: [`DevicePolicy::recall`].
            fn new_device(&self, remembered: &Remembered) -> Box<dyn Any + Send>;
            /// Memory of all devices together.
            fn new_shared(&self) -> Box<dyn Any + Send>;
            /// [`DevicePolicy::admit`], with memory that this policy made.
            fn admit(
                &self,
                view: &View,
                payer: &mut dyn Any,
                device: &mut dyn Any,
                shared: &mut dyn Any,
                pace: &mut Pace,
            ) -> Admission;
            $(
                #[doc = concat!("[`DevicePolicy::", stringify!($question), "`].")]
                fn $question(&self, $($argument: $type,)* $($memory: &mut dyn Any),*) -> $answer;
            )*
        }

        impl<L: DevicePolicy> AnyPolicy for L {
            fn new_payer(&self) -> Box<dyn Any + Send> {
                Box::new(OwnLines(L::Payer::default()))
            }

            fn new_device(&self, remembered: &Remembered) -> Box<dyn Any + Send> {
                Box::new(OwnLines(DevicePolicy::recall(self, remembered)))
            }

            fn new_shared(&self) -> Box<dyn Any + Send> {
                Box::new(L::Shared::default())
            }

            fn admit(
                &self,
                view: &View,
                payer: &mut dyn Any,
                device: &mut dyn Any,
                shared: &mut dyn Any,
                pace: &mut Pace,
            ) -> Admission {
                let memory = LentMemory { payer: own(payer), device: own(device), shared: memory_as(shared), pace };
                DevicePolicy::admit(self, view, memory)
            }

            $(
                fn $question(&self, $($argument: $type,)* $($memory: &mut dyn Any),*) -> $answer {
                    DevicePolicy::$question(self, $($argument,)* $($lend($memory)),*)
                }
            )*
        }
    };
}

questions! {
    name() [] -> &'static str;
    needs() [] -> Needs;
    pause_ns_max() [] -> u64;
    start(memory_pages: u64, cpus: u64) [] -> Pace;
    allowance_pages(dirtier: &Dirtier) [payer by own, device by own, shared by memory_as] -> u64;
    charge_bounds(view: &View) [device by own] -> ChargeBounds;
    flight(view: &View) [device by own] -> Flight;
    completed(view: &View, ends: &[Completed]) [device by own, shared by memory_as] -> ();
    is_over_background(view: &View) [device by own, shared by memory_as] -> bool;
    next(view: &View, files: &dyn DirtyFiles) [device by own, shared by memory_as] -> Next;
    next_if_pressed(view: &View, files: &dyn DirtyFiles) [device by own, shared by memory_as] -> Next;
    idle_write_rule(view: &View, before: IdleWriteRule, seen: &Rewrites) [] -> Option<IdleWriteRule>;
    slice_bytes(view: &View) [device by own, shared by memory_as] -> u64;
    limits(view: &View) [device by own, shared by memory_as] -> LimitPages;
    hang_limits(view: &View) [device by own] -> HangLimits;
    explain(view: &View) [device by own] -> Vec<Figure>;
    knobs_in_force(view: &View) [device by own] -> Vec<KnobInForce>;
    remember(view: &View) [device by own] -> Remembered;
}
