//! Policies: decisions about a device's writers and its flusher, behind one seam.
//!
//! Owns: the questions and the answers, the view for decisions, the engine's own policy.
//! Does not own: the policy in force and its memory, carrying decisions out (the engine); the budget; kernels' policies
//! (`linux-policies`).
//! Invariants: a policy keeps no state of its own: the engine hands its memory to each question.

mod equal_parts;
mod erased;
mod figures;
mod pause_cause;
mod seam;
mod slice;
mod view;

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
