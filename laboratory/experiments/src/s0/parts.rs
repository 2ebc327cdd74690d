//! The law with one part changed at a time, and the machine with one circumstance changed.
//!
//! Owns: the list of changes and their sizes.
//! Does not own: the parts (`kernels`), a run (`mapped_writes`).
//! Invariants: each change is a single change to an unchanged form, which is run beside it.

use afflux_kernels::Part;

use super::mapped_writes::Variant;

/// A law with a change and its label.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub(super) label: &'static str,
    pub(super) variant: Variant,
}

/// The law before the patch, with which all others are compared.
pub(super) const BASE: &str = "linux-2.6.31";
/// The form of the published column.
pub(super) const PATCHED: &str = "s0-july";
/// The label of an unchanged law.
pub(super) const AS_IT_IS: &str = "as it is";
/// The change that leaves a busy writer the whole share.
pub(super) const NO_EIGHTH: &str = "no eighth off for the writer";
/// The change that leaves only the limit of all devices.
pub(crate) const LIMIT_OF_ALL_ONLY: &str = "device not tested against its share";

const fn base(label: &'static str, parts: &'static [(Part, bool)]) -> Change {
    Change { label, variant: Variant { name: BASE, parts } }
}

const fn august(label: &'static str, parts: &'static [(Part, bool)]) -> Change {
    Change { label, variant: Variant { name: "s0-august", parts } }
}

const fn september(label: &'static str, parts: &'static [(Part, bool)]) -> Change {
    Change { label, variant: Variant { name: "s0-september", parts } }
}

/// All changes, each with its form.
pub(super) const CHANGES: [Change; 16] = [
    base(AS_IT_IS, &[]),
    base("no clip to the headroom", &[(Part::Clip, false)]),
    base(NO_EIGHTH, &[(Part::TaskShare, false)]),
    base("nothing read after writing", &[(Part::LookAfterWriting, false)]),
    base("nobody leaves over the limit of all", &[(Part::LimitOfAll, true), (Part::HoldsOverLimit, true)]),
    base("at the share is over it", &[(Part::AtShare, true)]),
    base("flag never set", &[(Part::Flag, false)]),
    base("flag stays on three exits", &[(Part::FlagStays, true)]),
    base("background from the values read", &[(Part::TailReads, false)]),
    base("background asked for while it runs", &[(Part::QuietWhileFlushing, false)]),
    august(AS_IT_IS, &[]),
    august(NO_EIGHTH, &[(Part::TaskShare, false)]),
    august(LIMIT_OF_ALL_ONLY, &[(Part::DeviceTest, false)]),
    september(AS_IT_IS, &[]),
    september(LIMIT_OF_ALL_ONLY, &[(Part::DeviceTest, false)]),
    Change { label: LIMIT_OF_ALL_ONLY, variant: Variant { name: "s0-seed", parts: &[(Part::DeviceTest, false)] } },
];

/// August's form as it runs if the variable holds 0 that it tests before assigning.
pub(super) const UNASSIGNED: Change = CHANGES[12];

/// The changes to run at sizes near the limit.
pub(super) const NEAR: [Change; 4] = [CHANGES[0], CHANGES[1], CHANGES[2], UNASSIGNED];

/// The sizes for all changes: below the limit, near it, above it.
pub(super) const SIZES_MIB: [u64; 3] = [500, 600, 700];

/// Sizes near the limit.
pub(super) fn near_mib() -> impl Iterator<Item = u64> {
    (550..=630).step_by(5)
}

/// MiB that other tasks have dirty; several, because the seed's thread does not state it.
pub(super) const OTHERS_MIB: [u64; 4] = [0, 16, 32, 64];
/// The laws to run beside other tasks' dirty pages.
pub(super) const BESIDE_OTHERS: [Change; 3] =
    [CHANGES[0], Change { label: AS_IT_IS, variant: Variant::named("s0-seed") }, CHANGES[10]];
