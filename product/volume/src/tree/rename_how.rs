//! What a rename does with the object that has the new name.
//!
//! Owns: the ways, and the flags of Linux's renameat2 that stand for them.
//! Does not own: the rename (`names::entries`, and the tree).
//! Invariants: a flag that is not known is refused, never ignored.

use crate::error::VolumeError;

/// What a rename does with the object that has the new name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RenameHow {
    /// It loses the name.
    #[default]
    Replace,
    /// The rename fails ([`VolumeError::Exists`]), also if both names are of one object.
    NoReplace,
    /// It gets the old name; without such an object the rename fails ([`VolumeError::NotFound`]).
    Exchange,
}

impl RenameHow {
    const NO_REPLACE: u32 = 1;
    const EXCHANGE: u32 = 2;

    /// The way of Linux's flags for renameat2. [`VolumeError::Invalid`] for any other flag, RENAME_WHITEOUT among them,
    /// and for both flags at once.
    pub fn of_flags(flags: u32) -> Result<Self, VolumeError> {
        match flags {
            0 => Ok(Self::Replace),
            Self::NO_REPLACE => Ok(Self::NoReplace),
            Self::EXCHANGE => Ok(Self::Exchange),
            _ => Err(VolumeError::Invalid { what: "a rename's flags: 0, RENAME_NOREPLACE or RENAME_EXCHANGE" }),
        }
    }
}
