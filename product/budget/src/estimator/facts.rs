//! The mechanism's facts about a device when a request has completed.
//!
//! Owns: their form. Does not own: the clocks (the mechanism's); the conclusions.
//! Invariants: plain values. Clocks count from an arbitrary start and never go back. A clock runs while any request of
//! its kind is in flight, however many.

use crate::prices::DirectionWork;

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// A request that completed.
#[derive(Clone, Copy, Debug)]
pub struct CompletedRequest {
    /// Whether the request reads or writes.
    pub side: Side,
    /// 1, or 0 if it continued the request before it.
    pub runs: u64,
    /// Its bytes; none if it failed.
    pub bytes: u64,
    /// When it was submitted.
    pub submitted_ns: u64,
    /// Time before now in which nobody looked for completions.
    pub unwatched_ns: u64,
    /// The flusher had too little to write for a device whose calls are long and overlap.
    pub starved: bool,
}

/// The device at that moment; the completed request is no longer in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Instant of the event, on the platform's clock.
    pub now_ns: u64,
    /// Clock of reads and writes.
    pub transfers_ns: u64,
    /// Clock of reads.
    pub reads_ns: u64,
    /// Clock of writes.
    pub writes_ns: u64,
    /// Clock of flushes and other calls, while there are neither reads nor writes.
    pub calls_alone_ns: u64,
    /// The part of `transfers_ns` for which a call may have held reads and writes up.
    pub held_up_ns: u64,
    /// When the oldest of the reads and writes in flight was submitted.
    pub oldest_ns: Option<u64>,
    /// Bytes of writes in flight.
    pub write_bytes_in_flight: u64,
    /// Whether there are dirty pages that are not in flight.
    pub more_to_write: bool,
}

/// The time between two completions of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elapsed {
    /// Time with requests of the direction in flight.
    pub(super) own_ns: u64,
    /// Time with requests of both directions in flight.
    pub(super) both_ns: u64,
    /// Time with requests of either direction in flight.
    pub(super) either_ns: u64,
    pub(super) held_up_ns: u64,
    pub(super) calls_alone_ns: u64,
    /// Time with nothing in flight.
    pub(super) rested_ns: u64,
}

impl Facts {
    /// The time since `earlier`, which becomes these facts.
    pub(super) fn since(&self, earlier: &mut Self, side: Side) -> Elapsed {
        let of = |clock: fn(&Self) -> u64| clock(self).saturating_sub(clock(earlier));
        let (reads_ns, writes_ns) = (of(|facts| facts.reads_ns), of(|facts| facts.writes_ns));
        let either_ns = of(|facts| facts.transfers_ns);
        let calls_alone_ns = of(|facts| facts.calls_alone_ns);
        let passed = Elapsed {
            own_ns: if side == Side::Read { reads_ns } else { writes_ns },
            both_ns: (reads_ns + writes_ns).saturating_sub(either_ns),
            either_ns,
            held_up_ns: of(|facts| facts.held_up_ns),
            calls_alone_ns,
            rested_ns: of(|facts| facts.now_ns).saturating_sub(either_ns + calls_alone_ns),
        };
        // Two threads may report their completions in either order.
        if self.transfers_ns >= earlier.transfers_ns {
            *earlier = *self;
        }
        passed
    }
}

impl CompletedRequest {
    pub(super) fn work(&self) -> DirectionWork {
        DirectionWork { runs: self.runs, bytes: self.bytes }
    }
}
