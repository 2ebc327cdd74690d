//! The origin of the values of a device's bdi: its own, ours, or another program's.
//!
//! Owns: when a value is written, put back, or left alone.
//! Does not own: the values' meaning, reading and writing them.
//! Invariants: values that differ from our last ones are another program's, and we never touch them again.

use serde::{Deserialize, Serialize};

/// The values of a bdi.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// Value of the bdi's `strict_limit`.
    pub strict: bool,
    /// `max_ratio_fine`: millionths of the machine's dirty limit.
    pub ratio_ppm: u32,
}

impl Values {
    /// The kernel's defaults.
    pub const KERNELS: Self = Self { strict: false, ratio_ppm: 1_000_000 };
}

/// The next step for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnershipStep {
    /// Nothing.
    Keep,
    /// Write these values.
    Write(Values),
    /// Another program has set these values, and owns them from now on.
    Foreign(Values),
}

/// A device and its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    original: Values,
    ours: Option<Values>,
    foreign: Option<Values>,
}

impl Ownership {
    /// The ownership of a device with these values. Values that are not the defaults belong to others, unless the user
    /// named the device.
    pub fn new(found: Values, by_name: bool) -> Self {
        let foreign = (found != Values::KERNELS && !by_name).then_some(found);
        Self { original: found, ours: None, foreign }
    }

    /// The values to put back in the end.
    pub fn original(&self) -> Values {
        self.original
    }

    /// The last values that we wrote, unless they were put back.
    pub fn ours(&self) -> Option<Values> {
        self.ours
    }

    /// The values that others have set.
    pub fn foreign(&self) -> Option<Values> {
        self.foreign
    }

    /// The next step for a device that has the values `found` and should get the limit `share_ppm`, or none.
    pub fn step(&mut self, found: Values, share_ppm: Option<u32>) -> OwnershipStep {
        if self.foreign.is_some() {
            return OwnershipStep::Keep;
        }
        if found != self.ours.unwrap_or(self.original) {
            self.foreign = Some(found);
            return OwnershipStep::Foreign(found);
        }
        let wanted = share_ppm.map_or(self.original, |ratio_ppm| Values { strict: true, ratio_ppm });
        if wanted == found {
            return OwnershipStep::Keep;
        }
        self.ours = share_ppm.map(|_| wanted);
        OwnershipStep::Write(wanted)
    }

    /// The values could not be changed: the device stays as it is.
    pub fn refused(&mut self, found: Values) {
        self.ours = None;
        self.foreign = Some(found);
    }
}

#[cfg(test)]
mod tests;
