//! The quota of one connection: whether it may hold more, and how long a reply may be.
//!
//! Owns: the bytes of its calls in progress, the world's bound on all that it holds.
//! Does not own: the bytes of replies and of records that wait (front ends), the sum of its party (`parties`).
//! Invariants: a connection that holds nothing may begin a call, unless its party has left too many to go on without
//! their connections. If no reply fits, that call's reply is cut short.

use std::task::Waker;

use super::parties::{OutlivingBytes, PartyQuota};

/// The front end's bounds.
#[derive(Clone, Copy, Debug)]
pub struct ByteBounds {
    /// Most bytes in progress of a connection.
    pub connection_bytes: u64,
    /// Most bytes that all connections of a party hold together. Also the bound on the calls of all parties that
    /// outlive their connections.
    pub party_bytes: u64,
}

/// The quota of one connection.
pub struct ConnectionQuota {
    party: PartyQuota,
    /// Bytes of requests and expected replies of the calls in progress.
    charged: u64,
    /// The world's bound on the bytes that the connection may hold.
    world_bytes: u64,
}

impl ConnectionQuota {
    /// The quota of a connection that holds nothing yet.
    pub fn new(party: PartyQuota) -> Self {
        Self { party, charged: 0, world_bytes: u64::MAX }
    }

    /// A call begins, with so many bytes of its request and its expected reply.
    #[inline]
    pub fn charge(&mut self, bytes: u64) {
        self.charged += bytes;
    }

    /// A call has ended.
    #[inline]
    pub fn give_back(&mut self, bytes: u64) {
        self.charged -= bytes;
    }

    /// Bytes of the calls in progress.
    #[inline]
    pub fn charged(&self) -> u64 {
        self.charged
    }

    /// Sets the world's bound.
    #[inline]
    pub fn set_world_bytes(&mut self, bytes: u64) {
        self.world_bytes = bytes;
    }

    /// Whether the connection may hold more than these bytes.
    #[inline]
    pub fn may_hold_more(&self, bytes: u64, bounds: ByteBounds) -> bool {
        bytes <= bounds.connection_bytes && self.may_hold_beside_others(bytes, bounds)
    }

    #[inline]
    fn may_hold_beside_others(&self, bytes: u64, bounds: ByteBounds) -> bool {
        let may_hold = bytes == 0 || self.party.others() + bytes <= bounds.party_bytes;
        may_hold && self.party.may_begin(bounds.party_bytes)
    }

    /// The bytes of a reply of `wanted` bytes beside the `held` ones; none if its call has to wait. A reply that does
    /// not fit may be cut to the quota that is left, but not below `short`: the first one of a turn if `short` fits,
    /// and the only one always.
    #[inline]
    pub fn reply_bytes(&self, (wanted, short): (u32, u32), held: u64, is_first: bool, is_alone: bool) -> Option<u32> {
        let (left, short) = (self.world_bytes.saturating_sub(held), wanted.min(short));
        let may_hold = |bytes: u32| u64::from(bytes) <= left && held <= self.world_bytes;
        if may_hold(wanted) {
            Some(wanted)
        } else if is_first && may_hold(short) || is_alone {
            Some((left as u32).clamp(short, wanted))
        } else {
            None
        }
    }

    /// Publishes the bytes that the connection holds to the others of its party. A connection that lacks
    /// quota beside the others is woken when they hold less.
    #[inline]
    pub fn publish(&mut self, held: u64, bounds: ByteBounds, waker: &Waker) {
        self.party.hold(held);
        if !self.may_hold_beside_others(held, bounds) {
            self.party.wake_when_less(waker);
            // The others may have given back meanwhile.
            if self.may_hold_beside_others(held, bounds) {
                waker.wake_by_ref();
            }
        }
    }

    /// The connection ends, and calls that were charged with so many bytes go on.
    pub fn outlive(&mut self, bytes: u64) -> OutlivingBytes {
        self.party.outlive(bytes)
    }
}

#[cfg(test)]
mod tests;
