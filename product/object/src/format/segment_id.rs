//! The identity of a segment and the name of its object.
//!
//! Owns: both directions between them.
//! Does not own: who may make a segment.
//! Invariants: two identities have two names; a name that is read is the one that would be written.

use super::error::{FormatError, in_range};

/// The largest epoch: it has 24 bits.
pub const EPOCH_MAX: u32 = (1 << 24) - 1;
/// Most bytes of all runs of a segment.
pub const SEGMENT_BYTES_MAX: u32 = 8 << 20;
/// Most segments of an epoch: a number has 40 bits.
pub const SEGMENT_NUMBER_MAX: u64 = (1 << 40) - 1;

/// A segment: the epoch of its writer, and its number in that epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId {
    /// The epoch of the only writer that makes this segment.
    pub epoch: u32,
    /// Counts the segments of an epoch.
    pub number: u64,
}

impl SegmentId {
    /// All segments have names that begin so.
    pub const FOLDER: &'static str = "data/";

    /// A segment within the limits of the format.
    ///
    /// # Errors
    /// If the epoch or the number is out of range.
    pub fn new(epoch: u32, number: u64) -> Result<Self, FormatError> {
        in_range("the epoch of a segment", u64::from(epoch), 1, u64::from(EPOCH_MAX))?;
        in_range("the number of a segment", number, 0, SEGMENT_NUMBER_MAX)?;
        Ok(Self { epoch, number })
    }

    /// The name of its object. The number's last byte comes first, so that names spread over prefixes.
    pub fn name(self) -> String {
        format!("{}{:02x}/{:06x}-{:010x}", Self::FOLDER, self.number % 256, self.epoch, self.number)
    }

    /// The segment of an object's name.
    ///
    /// # Errors
    /// If no segment has this name.
    pub fn parse(name: &str) -> Result<Self, FormatError> {
        let digits = || {
            let (_, last) = name.rsplit_once('/')?;
            let (epoch, number) = last.split_once('-')?;
            Some((u32::from_str_radix(epoch, 16).ok()?, u64::from_str_radix(number, 16).ok()?))
        };
        let refused = || FormatError::Name { name: name.to_owned() };
        let (epoch, number) = digits().ok_or_else(refused)?;
        let id = Self::new(epoch, number)?;
        if id.name() == name { Ok(id) } else { Err(refused()) }
    }
}
