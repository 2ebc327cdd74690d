//! What the forms of the loop of 2009 are made of, so that one part can be changed at a time.
//!
//! Owns: the parts' names, which form has which.
//! Does not own: what a part does (the law).
//! Invariants: a named form without changes is the form as posted.

use super::Form;

/// A part of the law of 2009: a form has it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Part {
    /// A device's share is cut to the headroom that all devices leave plus what it has itself.
    Clip = 1 << 0,
    /// A writer that dirtied much lately has up to an eighth less of the share.
    TaskShare = 1 << 1,
    /// The device's own dirty pages are looked at and held against its share. Without it a writer is
    /// held by the limit of all devices only, and never writes back itself.
    DeviceTest = 1 << 2,
    /// At or over the limit of all devices nobody leaves for being below the share.
    LimitOfAll = 1 << 3,
    /// Who has exactly the share is over it.
    AtShare = 1 << 4,
    /// After writing, limits and the device's counters are read once more.
    LookAfterWriting = 1 << 5,
    /// After a whole chunk, the loop begins again instead of ending.
    RoundAfterWriting = 1 << 6,
    /// Over the limit of all devices not even who has written a chunk leaves.
    HoldsOverLimit = 1 << 7,
    /// Who is over has writers to the device asked about after 8 pages.
    Flag = 1 << 8,
    /// The flag is cleared at one of the exits only.
    FlagStays = 1 << 9,
    /// On the way out the dirty counters are read once more.
    TailReads = 1 << 10,
    /// Background writeback is not asked for while it runs on the device.
    QuietWhileFlushing = 1 << 11,
}

/// A set of [`Part`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts(u16);

impl Parts {
    pub(super) const fn has(self, part: Part) -> bool {
        self.0 & part as u16 != 0
    }

    /// With the part, or without it.
    pub(super) const fn set(self, part: Part, on: bool) -> Self {
        Self(if on { self.0 | part as u16 } else { self.0 & !(part as u16) })
    }

    const fn with(self, part: Part) -> Self {
        self.set(part, true)
    }

    pub(super) const fn of(form: Form) -> Self {
        let all = Self(0).with(Part::TaskShare).with(Part::DeviceTest).with(Part::Flag).with(Part::QuietWhileFlushing);
        match form {
            Form::Rc1 | Form::Final | Form::V2_6_32 => {
                all.with(Part::Clip).with(Part::LookAfterWriting).with(Part::TailReads)
            }
            Form::July => all.with(Part::FlagStays),
            Form::Seed => all,
            Form::August => all.with(Part::LimitOfAll).with(Part::RoundAfterWriting).with(Part::HoldsOverLimit),
            Form::September => all.with(Part::LimitOfAll).with(Part::AtShare).with(Part::RoundAfterWriting),
            Form::Merged => all.with(Part::LimitOfAll).with(Part::AtShare),
        }
    }
}
