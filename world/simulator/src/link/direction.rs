//! Arrival times of sent bytes.
//!
//! Bytes leave one after the other at the link's rate, in packets as full as possible; each packet takes its overhead
//! too. Sent bytes arrive after the delay. A lost packet is sent again and arrives later by the retransmission delay,
//! each time that it is lost. Bytes in transit during a cut are sent again one retransmission delay after the cut.
//!
//! Owns: one direction's schedule: the end of its busy time, the last packet's free bytes, the coming cuts.
//! Does not own: the bytes (`stream`).
//! Invariants: no interval passes more than the rate. Times are whole nanoseconds. The fraction of one is carried over
//! while the direction is busy, so that a long stream takes as long as its sum.

use afflux_engine::Nanos;

use super::options::LinkOptions;
use crate::random::Random;

/// Most times that a packet is lost: the 15 tries of Linux, `tcp_retries2`.
const TRIES_MAX: u32 = 15;

/// An interval in which nothing passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) from_ns: u64,
    /// [`u64::MAX`] is for ever.
    pub(super) until_ns: u64,
}

pub(super) struct Direction {
    free_ns: u64,
    /// The fraction of a nanosecond, in parts of the rate.
    carry: u128,
    /// Bytes that still fit into the last packet.
    free_bytes: u64,
    cuts: Vec<Cut>,
    pub(super) random: Random,
    /// Bytes of streams sent.
    pub(super) bytes: u64,
    /// Packets sent again because they were lost.
    pub(super) lost_packets: u64,
}

impl Direction {
    pub(super) fn new(random: Random) -> Self {
        Self { free_ns: 0, carry: 0, free_bytes: 0, cuts: Vec::new(), random, bytes: 0, lost_packets: 0 }
    }

    /// Sends bytes as early as possible; returns the arrival of the last of them, `None` if never.
    pub(super) fn pass(&mut self, now_ns: u64, len: u64, link: &LinkOptions) -> Option<u64> {
        if now_ns > self.free_ns {
            (self.free_ns, self.carry, self.free_bytes) = (now_ns, 0, 0);
        }
        self.bytes += len;
        let packet = u64::from(link.packet_bytes);
        let packets = len.saturating_sub(self.free_bytes).div_ceil(packet);
        self.free_bytes = self.free_bytes + packets * packet - len;
        let wire_bytes = len + packets * u64::from(link.overhead_bytes);
        loop {
            let begin_ns = self.free_ns;
            self.take(wire_bytes, link);
            let arrives_ns = self.free_ns.saturating_add(link.delay_ns);
            let met = self.cuts.iter().find(|cut| arrives_ns > cut.from_ns && begin_ns < cut.until_ns);
            let Some(cut) = met else {
                return Some(arrives_ns.saturating_add(self.lose(packets.max(1), link)));
            };
            if cut.until_ns == u64::MAX {
                self.free_ns = u64::MAX;
                return None;
            }
            (self.free_ns, self.carry) = (cut.until_ns.saturating_add(link.retransmit_ns), 0);
        }
    }

    fn take(&mut self, wire_bytes: u64, link: &LinkOptions) {
        let rate = u128::from(link.bits_per_second);
        let time = u128::from(wire_bytes) * 8 * u128::from(Nanos::SECOND) + self.carry;
        self.carry = time % rate;
        self.free_ns = self.free_ns.saturating_add((time / rate) as u64);
    }

    /// Draws the number of lost packets and sends them again; returns the delay of the last of them.
    fn lose(&mut self, packets: u64, link: &LinkOptions) -> u64 {
        let (mut packets, mut later_ns) = (packets, 0_u64);
        for _ in 0..TRIES_MAX {
            if link.loss_per_million == 0 {
                break;
            }
            packets =
                (0..packets).filter(|_| self.random.below(1_000_000) < link.loss_per_million.into()).count() as u64;
            if packets == 0 {
                break;
            }
            self.lost_packets += packets;
            later_ns = later_ns.saturating_add(link.retransmit_ns);
            self.take(packets * u64::from(link.packet_bytes + link.overhead_bytes), link);
        }
        later_ns
    }

    /// Adds an interval in which nothing passes. Returns the delay of the bytes that are in transit then.
    pub(super) fn cut(&mut self, cut: Cut, link: &LinkOptions) -> u64 {
        self.cuts.push(cut);
        let late_ns = cut.until_ns.saturating_add(link.retransmit_ns).saturating_sub(cut.from_ns);
        if self.free_ns > cut.from_ns {
            self.free_ns = self.free_ns.saturating_add(if cut.until_ns == u64::MAX { u64::MAX } else { late_ns });
        }
        late_ns
    }

    pub(super) fn forget_cuts(&mut self, now_ns: u64) {
        self.cuts.retain(|cut| cut.until_ns > now_ns);
    }
}
