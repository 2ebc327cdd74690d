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
    /// As [`RenameHow::Replace`] or [`RenameHow::NoReplace`]. The old name gets a whiteout: a character device 0/0, by
    /// which the upper layer of an overlayfs hides a name of the lower one.
    Whiteout {
        /// Whether the object with the new name may lose it.
        may_replace: bool,
    },
}

impl RenameHow {
    const NO_REPLACE: u32 = 1;
    const EXCHANGE: u32 = 2;
    const WHITEOUT: u32 = 4;
    const WHITEOUT_NO_REPLACE: u32 = Self::WHITEOUT | Self::NO_REPLACE;

    /// The way of Linux's flags for renameat2. [`VolumeError::Invalid`] for any other flag, and for flags that do not
    /// go together.
    pub fn of_flags(flags: u32) -> Result<Self, VolumeError> {
        match flags {
            0 => Ok(Self::Replace),
            Self::NO_REPLACE => Ok(Self::NoReplace),
            Self::EXCHANGE => Ok(Self::Exchange),
            Self::WHITEOUT => Ok(Self::Whiteout { may_replace: true }),
            Self::WHITEOUT_NO_REPLACE => Ok(Self::Whiteout { may_replace: false }),
            _ => Err(VolumeError::Invalid {
                what: "a rename's flags: 0, or RENAME_EXCHANGE, or RENAME_NOREPLACE and RENAME_WHITEOUT",
            }),
        }
    }

    /// Whether the object with the new name may lose it.
    pub fn may_replace(self) -> bool {
        matches!(self, Self::Replace | Self::Whiteout { may_replace: true })
    }

    /// Whether the old name leads to an object afterwards. A repetition of such a rename would move that one.
    pub fn has_old_name(self) -> bool {
        matches!(self, Self::Exchange | Self::Whiteout { .. })
    }
}
