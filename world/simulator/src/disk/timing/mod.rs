//! Device models behind one seam: they decide when each request starts and ends.
//!
//! The disk's shell owns bytes, faults and the contract with the engine. It gives a timing each request with its
//! positions on the medium, and runs the timing at the instants that it names. The timing reports which requests
//! started (their memory may be read from now on) and which ended (they take effect now).
//!
//! Owns: the seam's calls, the choice of model.
//! Does not own: the models (one file each), the units that pass through the seam (`seam`), bytes and faults (`disk`),
//! positions on the medium (`layout`).
//! Invariants: each accepted request starts at most once and ends exactly once, unless it is cleared; the same calls
//! give the same answers; nothing here reads a clock.

mod any_order;
mod card;
mod channels;
mod elevator;
mod finishing;
mod mechanism;
mod numbered;
mod rotating;
mod seam;
mod set;
mod shingles;
mod store;
mod throttled;
mod times;

pub(crate) use any_order::AnyOrder;
pub(crate) use card::CardParameters;
pub(crate) use channels::ChannelParameters;
pub(crate) use elevator::QueueParameters;
pub(crate) use mechanism::MechanismParameters;
pub(crate) use rotating::RotatingParameters;
pub(crate) use seam::{Counts, Event, MediumWork, Span};
pub(crate) use set::{DeviceSet, SetParameters};
pub(crate) use shingles::ShingleParameters;
pub(crate) use store::StoreParameters;
pub(crate) use throttled::ThrottleParameters;
pub(crate) use times::transfer_ns;

use crate::random::Random;

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

#[cfg(test)]
mod tests;
