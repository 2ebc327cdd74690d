//! When a request is served and when it ends: the models of devices behind one seam.
//!
//! The disk's shell owns bytes, faults and the contract with the engine. It tells a timing what was
//! asked for and where on the medium that is, runs it at the instants it names, and is told which
//! requests started (their memory may be looked at from now on) and which ended (their effect
//! happens now).
//!
//! Owns: the seam, the choice of model, the units of work that pass through it.
//! Does not own: the models (a file each), bytes and faults (`disk`), places on the medium (`layout`).
//! Invariants: each accepted request starts at most once and ends exactly once, unless it is cleared;
//! the same calls give the same answers; nothing here looks at a clock.

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
    /// How many bytes, at least 1.
    pub(crate) len: u64,
}

/// What a request wants of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Bytes off the medium.
    Read,
    /// Bytes onto it.
    Write,
    /// What is in the volatile cache onto the medium.
    Flush,
    /// The same, for a file that got blocks or size since the last flush: a journal has to say so.
    Commit,
    /// Nothing of the medium: a change of names or sizes in the host's memory.
    Memory,
}

/// What happened to a request, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Its transfer begins.
    Started(u64),
    /// It is done.
    Ended(u64),
}

/// What a model has done so far, for figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Head movements, or flash blocks that had to be merged.
    pub(crate) seeks: u64,
    /// Requests that were merged into another.
    pub(crate) merges: u64,
    /// Commands that went to the device, after merging.
    pub(crate) commands: u64,
    /// Their bytes.
    pub(crate) command_bytes: u64,
    /// How often a write command was of another file than the one before.
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
    /// Takes request `id` of `file`, which wants `work` done on `spans`. [`Timing::run`] is to be
    /// called at this instant or later, once for any number of requests: those accepted before it are
    /// seen together, as a kernel's plug sees them.
    pub(crate) fn accept(&mut self, now_ns: u64, id: u64, file: u64, work: Work, spans: &[Span]) {
        match self {
            Self::AnyOrder(model) => model.accept(now_ns, id, spans),
            Self::Set(model) => model.accept(now_ns, id, file, work, spans),
        }
    }

    /// Goes on until `now_ns`, adds what happened to `events`, and says when to call next.
    pub(crate) fn run(&mut self, now_ns: u64, random: &mut Random, events: &mut Vec<Event>) -> Option<u64> {
        match self {
            Self::AnyOrder(model) => model.run(now_ns, random, events),
            Self::Set(model) => model.run(now_ns, random, events),
        }
    }

    /// Forgets all requests: power was lost.
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

/// The sooner of two instants, of those that there are.
fn sooner(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// How long `bytes` take at a rate, in whole nanoseconds, rounded down.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
