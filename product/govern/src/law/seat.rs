//! Whose values a device's bdi has: the ones that it had, ours, or somebody else's.
//!
//! Owns: when a value is written, put back, or left alone. Does not own: the values' meaning, reading and writing them.
//! Invariants: what differs from what was written last was changed by others, and is not touched again.

use serde::{Deserialize, Serialize};

/// What a bdi is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// `strict_limit`.
    pub strict: bool,
    /// `max_ratio_fine`: millionths of the machine's dirty limit.
    pub ratio_ppm: u32,
}

impl Values {
    /// What a device has that nobody touched.
    pub const KERNELS: Self = Self { strict: false, ratio_ppm: 1_000_000 };
}

/// What is to be done about a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// Write these.
    Write(Values),
    /// Others have set it to these; it is theirs from now on.
    Foreign(Values),
}

/// A device and its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    original: Values,
    ours: Option<Values>,
    foreign: Option<Values>,
}

impl Seat {
    /// Of a device that has these. One that others have set already is theirs, unless it was asked for by name.
    pub fn new(found: Values, by_name: bool) -> Self {
        let foreign = (found != Values::KERNELS && !by_name).then_some(found);
        Self { original: found, ours: None, foreign }
    }

    /// What to put back in the end.
    pub fn original(&self) -> Values {
        self.original
    }

    /// What was written last, unless it was put back.
    pub fn ours(&self) -> Option<Values> {
        self.ours
    }

    /// What others have set it to.
    pub fn foreign(&self) -> Option<Values> {
        self.foreign
    }

    /// What to do about a device that has these values now and should be held to that share, or to none.
    pub fn step(&mut self, found: Values, share_ppm: Option<u32>) -> Step {
        if self.foreign.is_some() {
            return Step::Keep;
        }
        if found != self.ours.unwrap_or(self.original) {
            self.foreign = Some(found);
            return Step::Foreign(found);
        }
        let wanted = share_ppm.map_or(self.original, |ratio_ppm| Values { strict: true, ratio_ppm });
        if wanted == found {
            return Step::Keep;
        }
        self.ours = share_ppm.map(|_| wanted);
        Step::Write(wanted)
    }

    /// What it has could not be changed: it is left as it is.
    pub fn refused(&mut self, found: Values) {
        self.ours = None;
        self.foreign = Some(found);
    }
}

#[cfg(test)]
mod tests;
