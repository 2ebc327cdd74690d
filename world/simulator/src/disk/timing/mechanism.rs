//! The device behind a queue, which takes a bounded number of commands at a time.
//!
//! A flush waits until the earlier commands are done, and the device takes no others meanwhile, as in the kernel and
//! SATA. Then the device empties its volatile cache. Behind a throttle a flush is queued among the writes, and
//! other commands continue.
//!
//! Owns: the choice of device, the current flush.
//! Does not own: the models, their commands with a known end (`finishing`); the queue outside (`elevator`).
//! Invariants: at most `depth` commands are inside; each comes out once.

use super::card::{Card, CardParameters};
use super::channels::{ChannelParameters, Channels};
use super::elevator::Command;
use super::finishing::Finishing;
use super::rotating::{Rotating, RotatingParameters};
use super::store::{Store, StoreParameters};
use super::throttled::{ThrottleParameters, Throttled};
use super::times::sooner;
use crate::random::Random;

/// The kind of device, and its parameters.
#[derive(Clone, Debug)]
pub(crate) enum MechanismParameters {
    Rotating(RotatingParameters),
    Card(CardParameters),
    Channels(ChannelParameters),
    Store(StoreParameters),
    Throttled(ThrottleParameters),
}

enum Model {
    Rotating(Box<Rotating>),
    Card(Card),
    Channels(Channels),
    Store(Store),
    Throttled(Throttled),
}

enum Flush {
    None,
    /// Waits until the earlier commands are done.
    Waits,
    /// The file system's journal is being written; its commit block follows.
    Logs {
        at_ns: u64,
    },
    Ends {
        at_ns: u64,
    },
}

pub(super) struct Mechanism {
    model: Model,
    depth: usize,
    inside: usize,
    flush: Flush,
}

impl Mechanism {
    pub(super) fn new(parameters: &MechanismParameters, depth: usize) -> Self {
        let model = match parameters.clone() {
            MechanismParameters::Rotating(parameters) => Model::Rotating(Box::new(Rotating::new(parameters))),
            MechanismParameters::Card(parameters) => Model::Card(Card::new(parameters)),
            MechanismParameters::Channels(parameters) => Model::Channels(Channels::new(parameters)),
            MechanismParameters::Store(parameters) => Model::Store(Store::new(parameters)),
            MechanismParameters::Throttled(parameters) => Model::Throttled(Throttled::new(parameters)),
        };
        Self { model, depth, inside: 0, flush: Flush::None }
    }

    pub(super) fn has_free_slot(&self) -> bool {
        let goes_on = matches!(self.flush, Flush::None) || matches!(self.model, Model::Throttled(_));
        self.inside < self.depth && goes_on
    }

    pub(super) fn is_flushing(&self) -> bool {
        !matches!(self.flush, Flush::None)
    }

    pub(super) fn take(&mut self, now_ns: u64, command: Command, random: &mut Random) {
        self.inside += 1;
        match &mut self.model {
            Model::Rotating(model) => model.take(now_ns, command),
            Model::Card(model) => model.take(now_ns, command),
            Model::Channels(model) => model.take(now_ns, command),
            Model::Store(model) => model.take(now_ns, command, random),
            Model::Throttled(model) => model.take(now_ns, command),
        }
    }

    /// Begins a flush. If it `commits`, the journal is written first. No other flush may be under way.
    pub(super) fn flush(&mut self, now_ns: u64, commits: bool) {
        self.flush = match &mut self.model {
            Model::Throttled(model) => match if commits { model.log(now_ns) } else { None } {
                Some(at_ns) => Flush::Logs { at_ns },
                None => Flush::Ends { at_ns: model.flush(now_ns) },
            },
            _ => Flush::Waits,
        };
        self.try_flush(now_ns);
    }

    /// Begins the commit block once the journal is written.
    fn commit(&mut self, now_ns: u64) {
        if let (Flush::Logs { at_ns }, Model::Throttled(model)) = (&self.flush, &mut self.model)
            && *at_ns <= now_ns
        {
            self.flush = Flush::Ends { at_ns: model.commit(*at_ns) };
        }
    }

    fn try_flush(&mut self, now_ns: u64) {
        if self.inside > 0 || !matches!(self.flush, Flush::Waits) {
            return;
        }
        let at_ns = match &mut self.model {
            Model::Rotating(model) if !model.is_empty() => return,
            Model::Rotating(model) => model.flush_ns(now_ns),
            Model::Channels(model) => model.flush(now_ns),
            Model::Card(_) | Model::Store(_) | Model::Throttled(_) => now_ns,
        };
        self.flush = Flush::Ends { at_ns };
    }

    fn finishing(&mut self) -> &mut Finishing {
        match &mut self.model {
            Model::Rotating(model) => &mut model.finishing,
            Model::Card(model) => &mut model.finishing,
            Model::Channels(model) => &mut model.finishing,
            Model::Store(model) => &mut model.finishing,
            Model::Throttled(model) => &mut model.finishing,
        }
    }

    /// The instant of the next event.
    pub(super) fn next_ns(&mut self) -> Option<u64> {
        let inner_ns = if let Model::Rotating(model) = &self.model { model.next_ns() } else { None };
        let flush_ns = if let Flush::Ends { at_ns } | Flush::Logs { at_ns } = self.flush { Some(at_ns) } else { None };
        sooner(sooner(self.finishing().next_ns(), inner_ns), flush_ns)
    }

    /// Processes all events until `now_ns`. Adds finished commands to `done`; returns true if a flush has finished.
    pub(super) fn step(&mut self, now_ns: u64, done: &mut Vec<usize>) -> bool {
        if let Model::Rotating(model) = &mut self.model {
            model.step(now_ns);
        }
        while let Some(token) = self.finishing().pop_due(now_ns) {
            done.push(token);
            self.inside -= 1;
        }
        self.commit(now_ns);
        let flushed = matches!(self.flush, Flush::Ends { at_ns } if at_ns <= now_ns);
        if flushed {
            self.flush = Flush::None;
        }
        self.try_flush(now_ns);
        flushed
    }

    pub(super) fn seeks(&self) -> u64 {
        match &self.model {
            Model::Rotating(model) => model.seeks,
            Model::Card(model) => model.blocks_merged,
            Model::Channels(model) => model.blocks_erased,
            Model::Store(_) | Model::Throttled(_) => 0,
        }
    }
}
