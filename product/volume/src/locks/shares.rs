//! Share reservations of one file: its uses by opens, and the uses that opens deny to others.
//!
//! Owns: the rule by which two opens exclude each other.
//! Does not own: opens (front ends), rights of users (the host).
//! Invariants: no two opens of a file have uses that one of them denies. Many share reservations of a holder end in a
//! single move.

use std::ops::Range;

use super::owner::HolderId;
use crate::locks::index::step;

/// Uses of a file, and the uses that others may not make of it: sums of [`Share::READ`] and [`Share::WRITE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The open's own uses.
    pub access: u8,
    /// The uses that others may not make.
    pub deny: u8,
}

impl Share {
    /// Share access or deny: reading.
    pub const READ: u8 = 1;
    /// Share access or deny: writing.
    pub const WRITE: u8 = 2;

    /// Whether two opens cannot have these at once.
    pub fn is_excluding(self, other: Self) -> bool {
        self.access & other.deny != 0 || self.deny & other.access != 0
    }
}

/// Why an open does not get a share reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShareRefusal {
    /// Another open denies the wanted access, or has access that the caller wants to deny.
    Denied,
    /// The holder of such an open ends: the caller asks again after its end.
    Ending(HolderId),
    /// Clients of an earlier server may still reclaim opens that deny this use.
    Grace,
}

/// The number of opens with each use, and the number of denials of each use, in the order of the bits.
#[derive(Clone, Copy, Default)]
struct UseCounts([[usize; 2]; 2]);

impl UseCounts {
    fn change(&mut self, share: Share, change: impl Fn(&mut usize)) {
        for (counts, bits) in self.0.iter_mut().zip([share.access, share.deny]) {
            let meant = counts.iter_mut().zip([Share::READ, Share::WRITE]).filter(|(_, bit)| bits & bit != 0);
            meant.for_each(|(count, _)| change(count));
        }
    }

    /// The uses that opens make, and the denied uses.
    fn share(&self) -> Share {
        let bits =
            |counts: [usize; 2]| (u8::from(counts[0] > 0) * Share::READ) | (u8::from(counts[1] > 0) * Share::WRITE);
        Share { access: bits(self.0[0]), deny: bits(self.0[1]) }
    }
}

/// The share reservations of a file, by holder and the holder's number for the open.
#[derive(Default)]
pub(super) struct Shares {
    of_opens: Vec<((HolderId, u64), Share)>,
    counts: UseCounts,
}

impl Shares {
    pub(super) fn is_empty(&self) -> bool {
        self.of_opens.is_empty()
    }

    /// The uses that opens make, and the denied uses.
    pub(super) fn uses(&self) -> Share {
        self.counts.share()
    }

    fn find(&self, open: (HolderId, u64)) -> Result<usize, usize> {
        step();
        self.of_opens.binary_search_by_key(&open, |it| it.0)
    }

    fn of(&self, holder: HolderId) -> Range<usize> {
        let first = self.of_opens.partition_point(|it| it.0.0 < holder);
        first..self.of_opens.partition_point(|it| it.0.0 <= holder)
    }

    /// Whether a holder has any.
    pub(super) fn has_any_of(&self, holder: HolderId) -> bool {
        !self.of(holder).is_empty()
    }

    /// The holder of a conflicting open. An open does not conflict with itself.
    pub(super) fn conflict(&self, open: Option<(HolderId, u64)>, wanted: Share) -> Option<HolderId> {
        let mut counts = self.counts;
        if let Some(own) = open.and_then(|open| self.find(open).ok()) {
            counts.change(self.of_opens[own].1, |count| *count -= 1);
        }
        if !counts.share().is_excluding(wanted) {
            return None;
        }
        let is_other = |it: &&((HolderId, u64), Share)| Some(it.0) != open;
        let mut others = self.of_opens.iter().inspect(|_| step()).filter(is_other);
        others.find(|it| it.1.is_excluding(wanted)).map(|it| it.0.0)
    }

    /// Sets the share reservation of an open. Returns the one that it had.
    pub(super) fn set(&mut self, open: (HolderId, u64), share: Share) -> Option<Share> {
        self.counts.change(share, |count| *count += 1);
        match self.find(open) {
            Ok(at) => {
                let before = std::mem::replace(&mut self.of_opens[at].1, share);
                self.counts.change(before, |count| *count -= 1);
                Some(before)
            }
            Err(at) => {
                if self.of_opens.is_empty() {
                    // Most files have one.
                    self.of_opens.reserve_exact(1);
                }
                self.of_opens.insert(at, (open, share));
                None
            }
        }
    }

    /// Ends the share reservation of an open.
    pub(super) fn end(&mut self, open: (HolderId, u64)) -> Option<Share> {
        let at = self.find(open).ok()?;
        let (_, share) = self.of_opens.remove(at);
        self.counts.change(share, |count| *count -= 1);
        Some(share)
    }

    /// Ends `most` share reservations of a holder, or all that it has. Returns their number, and how many denied
    /// something.
    pub(super) fn release(&mut self, holder: HolderId, most: usize) -> (usize, u64) {
        let (mut own, mut denying) = (self.of(holder), 0);
        own.end = own.end.min(own.start + most);
        let ended = own.len();
        for (_, share) in self.of_opens.drain(own) {
            step();
            denying += u64::from(share.deny != 0);
            self.counts.change(share, |count| *count -= 1);
        }
        (ended, denying)
    }
}
