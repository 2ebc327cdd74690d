//! Share reservations of one file: its uses by opens, and the uses that opens deny to others.
//!
//! Owns: the rule by which two opens exclude each other.
//! Does not own: opens (front ends), rights of users (the host).
//! Invariants: no two opens of a file have uses that one of them denies.

use super::ranges::HolderId;

/// Uses of a file, and the uses that others may not make of it: sums of [`Share::READ`] and [`Share::WRITE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The open's own uses.
    pub access: u8,
    /// The uses that others may not make.
    pub deny: u8,
}

impl Share {
    /// Reading.
    pub const READ: u8 = 1;
    /// Writing.
    pub const WRITE: u8 = 2;

    /// Whether two opens cannot have these at once.
    pub fn is_excluding(self, other: Self) -> bool {
        self.access & other.deny != 0 || self.deny & other.access != 0
    }
}

/// Why an open does not get a share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShareRefusal {
    /// Another open denies a use, or makes a use that this one would deny.
    Denied,
    /// The holder of such an open ends: the caller asks again after its end.
    Ending(HolderId),
    /// Clients of an earlier server may still reclaim opens that deny this use.
    Grace,
}

/// The shares of a file: a holder, its number for the open, and the share.
#[derive(Default)]
pub(super) struct Shares(Vec<(HolderId, u64, Share)>);

impl Shares {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(HolderId, u64, Share)> {
        self.0.iter()
    }

    /// The holder of an open that is in the way. An open is not in its own way.
    pub(super) fn conflict(&self, open: Option<(HolderId, u64)>, wanted: Share) -> Option<HolderId> {
        let is_other = |it: &&(HolderId, u64, Share)| Some((it.0, it.1)) != open;
        self.0.iter().filter(is_other).find(|it| it.2.is_excluding(wanted)).map(|it| it.0)
    }

    /// Sets the share of an open. Returns the share that it had.
    pub(super) fn set(&mut self, (holder, open): (HolderId, u64), share: Share) -> Option<Share> {
        match self.0.iter_mut().find(|it| (it.0, it.1) == (holder, open)) {
            Some(own) => Some(std::mem::replace(&mut own.2, share)),
            None => {
                if self.0.is_empty() {
                    // Most files have one.
                    self.0.reserve_exact(1);
                }
                self.0.push((holder, open, share));
                None
            }
        }
    }

    /// Ends the share of an open.
    pub(super) fn end(&mut self, (holder, open): (HolderId, u64)) -> Option<Share> {
        let at = self.0.iter().position(|it| (it.0, it.1) == (holder, open))?;
        Some(self.0.swap_remove(at).2)
    }
}
