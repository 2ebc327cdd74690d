//! Device models behind one seam: they decide when each request starts and ends.
//!
//! The disk's shell owns bytes, faults and the contract with the engine. It gives a timing each request with its places
//! on the medium, and runs the timing at the instants that it names. The timing reports which requests started (their
//! memory may be read from now on) and which ended (they take effect now).
//!
//! Owns: the seam, the choice of model, the units of work that pass through it.
//! Does not own: the models (one file each), bytes and faults (`disk`), places on the medium (`layout`).
//! Invariants: each accepted request starts at most once and ends exactly once, unless it is cleared; the same calls
//! give the same answers; nothing here reads a clock.

mod any_order;
mod card;
mod channels;
mod elevator;
mod mechanism;
mod numbered;
mod rotating;
mod set;
mod shingles;
mod store;
mod throttled;

pub(crate) use any_order::AnyOrder;
pub(crate) use card::CardParameters;
pub(crate) use channels::ChannelParameters;
pub(crate) use elevator::QueueParameters;
pub(crate) use mechanism::MechanismParameters;
pub(crate) use rotating::RotatingParameters;
pub(crate) use set::{DeviceSet, SetParameters};
pub(crate) use shingles::ShingleParameters;
pub(crate) use store::StoreParameters;
pub(crate) use throttled::ThrottleParameters;

use crate::random::Random;

/// A contiguous part of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    /// First byte.
    pub(crate) position: u64,
    /// Length in bytes, at least 1.
    pub(crate) len: u64,
}

/// The work that a request needs from the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MediumWork {
    /// Reads bytes from the medium.
    Read,
    /// Writes bytes to the medium.
    Write,
    /// Writes the contents of the volatile cache to the medium.
    Flush,
    /// The same for a file that got blocks or size since the last flush, which the journal must record.
    Commit,
    /// No work on the medium: a change of names or sizes in the host's memory.
    Memory,
}

/// An event of a request, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Its transfer begins.
    Started(u64),
    /// It is done.
    Ended(u64),
}

/// A model's figures so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Head movements, or merges of flash blocks.
    pub(crate) seeks: u64,
    /// Requests that were merged into another.
    pub(crate) merges: u64,
    /// Commands that went to the device, after merging.
    pub(crate) commands: u64,
    /// Their bytes.
    pub(crate) command_bytes: u64,
    /// Pairs of consecutive write commands that were of different files.
    pub(crate) file_switches: u64,
}

/// The model of one device.
pub(crate) enum Timing {
    /// A latency, a rate, and an order drawn from the seed.
    AnyOrder(AnyOrder),
    /// Queues with devices behind them.
    Set(Box<DeviceSet>),
}

impl Timing {
    /// Takes request `id` of `file`, which wants `work` done on `spans`. The caller then calls [`Timing::run`] at this
    /// instant or later, once for any number of requests. Requests accepted before that call are seen together, as by a
    /// kernel's plug.
    pub(crate) fn accept(&mut self, now_ns: u64, id: u64, file: u64, work: MediumWork, spans: &[Span]) {
        match self {
            Self::AnyOrder(model) => model.accept(now_ns, id, spans),
            Self::Set(model) => model.accept(now_ns, id, file, work, spans),
        }
    }

    /// Runs until `now_ns`, adds the events to `events`, and returns the instant of the next call.
    pub(crate) fn run(&mut self, now_ns: u64, random: &mut Random, events: &mut Vec<Event>) -> Option<u64> {
        match self {
            Self::AnyOrder(model) => model.run(now_ns, random, events),
            Self::Set(model) => model.run(now_ns, random, events),
        }
    }

    /// Drops all requests, at a power loss.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::AnyOrder(model) => model.clear(),
            Self::Set(model) => model.clear(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        match self {
            Self::AnyOrder(model) => model.counts(),
            Self::Set(model) => model.counts(),
        }
    }
}

/// The earlier of two instants, if there are any.
fn sooner(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The time of `bytes` at a rate, in whole nanoseconds, rounded down.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
