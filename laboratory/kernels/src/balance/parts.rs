//! The forms of the loop of 2009 and their parts, so that one can be changed at a time.
//!
//! Owns: the names of the forms and the parts, and the parts of each form.
//! Does not own: the effect of a part (the law).
//! Invariants: a named form without changes is the form as posted.

/// The form of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Rc1,
    Final,
    July,
    Seed,
    August,
    September,
    Merged,
    V2_6_32,
}

/// A part of the law of 2009, which a form has or lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Part {
    /// A device's share is cut to the headroom of all devices plus its own pages.
    Clip = 1 << 0,
    /// A writer that dirtied much lately has up to an eighth less of the share.
    TaskShare = 1 << 1,
    /// The device's own dirty pages are read and compared with its share. Without this part only the limit of all
    /// devices stops a writer, and a writer never writes back itself.
    DeviceTest = 1 << 2,
    /// At or above the limit of all devices, no writer leaves because its device is below the share.
    LimitOfAll = 1 << 3,
    /// A device with exactly its share is over it.
    AtShare = 1 << 4,
    /// After writing, limits and the device's counters are read once more.
    LookAfterWriting = 1 << 5,
    /// After a whole chunk, the loop begins again instead of ending.
    RoundAfterWriting = 1 << 6,
    /// Above the limit of all devices, even a writer that has written a chunk stays.
    HoldsOverLimit = 1 << 7,
    /// A device that is over is flagged, and its writers are checked after 8 pages.
    Flag = 1 << 8,
    /// Only one of the exits clears the flag.
    FlagStays = 1 << 9,
    /// At the end of a call the dirty counters are read once more.
    TailReads = 1 << 10,
    /// Background writeback is not requested while it runs on the device.
    QuietWhileFlushing = 1 << 11,
    /// A writer writes only while the device's own dirty pages exceed its share (since 2.6.31-rc2).
    ShareTest = 1 << 12,
}

/// A set of [`Part`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts(u16);

impl Parts {
    pub(super) const fn has(self, part: Part) -> bool {
        self.0 & part as u16 != 0
    }

    /// Sets the part, or clears it.
    pub(super) const fn set(self, part: Part, on: bool) -> Self {
        Self(if on { self.0 | part as u16 } else { self.0 & !(part as u16) })
    }

    const fn with(self, part: Part) -> Self {
        self.set(part, true)
    }

    pub(super) const fn of(form: Form) -> Self {
        let all = Self(0).with(Part::TaskShare).with(Part::DeviceTest).with(Part::Flag);
        let all = all.with(Part::QuietWhileFlushing).with(Part::ShareTest);
        match form {
            Form::Rc1 => Self::of(Form::Final).set(Part::ShareTest, false),
            Form::Final | Form::V2_6_32 => all.with(Part::Clip).with(Part::LookAfterWriting).with(Part::TailReads),
            Form::July => all.with(Part::FlagStays),
            Form::Seed => all,
            Form::August => all.with(Part::LimitOfAll).with(Part::RoundAfterWriting).with(Part::HoldsOverLimit),
            Form::September => all.with(Part::LimitOfAll).with(Part::AtShare).with(Part::RoundAfterWriting),
            Form::Merged => all.with(Part::LimitOfAll).with(Part::AtShare),
        }
    }
}
