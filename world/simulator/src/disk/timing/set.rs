//! One device or a stripe set of several, each behind a queue of its own.
//!
//! A stripe set divides the medium into stripes: stripe `s` is on device `s % n`, as in LVM and MD level 0. A request
//! ends when all its parts have ended. A flush goes to all devices. Flushes submitted while one is under way share the
//! next, as in the kernel's flush machinery.
//!
//! Owns: the unfinished parts of requests, the waiting flushes.
//! Does not own: queues (`elevator`), devices (`mechanism`), files' positions (`layout`).
//! Invariants: each part is in one queue; a request without parts ends by itself.

use std::collections::VecDeque;

use super::elevator::{Elevator, QueueParameters};
use super::mechanism::{Mechanism, MechanismParameters};
use super::numbered::Numbered;
use super::seam::{Counts, Event, MediumWork, Span};
use super::times::sooner;
use crate::random::Random;

/// Time of a request without work on the medium: a system call in the host. Assumed.
const MEMORY_NS: u64 = 5_000;

#[derive(Clone, Debug)]
pub(crate) struct SetParameters {
    pub(crate) devices: u64,
    /// Unused with one device.
    pub(crate) stripe_bytes: u64,
    pub(crate) queue: QueueParameters,
    pub(crate) mechanism: MechanismParameters,
    /// Most commands inside each device at a time.
    pub(crate) device_depth: u64,
}

struct Progress {
    parts: u64,
    started: bool,
}

struct Member {
    elevator: Elevator,
    mechanism: Mechanism,
    /// Flushes that wait for the next one; below, those of the current one.
    flushes_waiting: Vec<u64>,
    flushes: Vec<u64>,
    /// At least one waiting flush has something for the journal.
    commits: bool,
    commands: u64,
    command_bytes: u64,
}

pub(crate) struct DeviceSet {
    parameters: SetParameters,
    members: Vec<Member>,
    requests: Numbered<Progress>,
    /// Requests without work on the medium, and the instants of their ends, in order.
    memory: VecDeque<(u64, u64)>,
    /// Retained for its memory.
    done: Vec<usize>,
    /// The figures from before the last power loss.
    past: Counts,
}

impl Member {
    /// Hands over commands while the device has free slots.
    fn dispatch(
        &mut self,
        now_ns: u64,
        random: &mut Random,
        requests: &mut Numbered<Progress>,
        events: &mut Vec<Event>,
    ) {
        if !self.flushes_waiting.is_empty() && !self.mechanism.is_flushing() {
            std::mem::swap(&mut self.flushes, &mut self.flushes_waiting);
            self.mechanism.flush(now_ns, std::mem::take(&mut self.commits));
        }
        while self.mechanism.has_free_slot() {
            let Some(command) = self.elevator.next(now_ns) else { return };
            self.commands += 1;
            self.command_bytes += command.span.len;
            self.elevator.requests(command.token, |request| {
                if let Some(progress) = requests.get_mut(&request)
                    && !std::mem::replace(&mut progress.started, true)
                {
                    events.push(Event::Started(request));
                }
            });
            self.mechanism.take(now_ns.max(command.since_ns), command, random);
        }
    }
}

/// One part of a request is done.
fn part_done(requests: &mut Numbered<Progress>, request: u64, events: &mut Vec<Event>) {
    let Some(progress) = requests.get_mut(&request) else { return };
    progress.parts -= 1;
    if progress.parts == 0 {
        requests.remove(&request);
        events.push(Event::Ended(request));
    }
}

impl DeviceSet {
    pub(crate) fn new(parameters: SetParameters) -> Self {
        let mut set = Self {
            parameters,
            members: Vec::new(),
            requests: Numbered::default(),
            memory: VecDeque::new(),
            done: Vec::new(),
            past: Counts::default(),
        };
        set.clear();
        set
    }

    pub(super) fn accept(&mut self, now_ns: u64, id: u64, file: u64, work: MediumWork, spans: &[Span]) {
        let parts = match work {
            MediumWork::Read | MediumWork::Write => self.deal(now_ns, id, file, work == MediumWork::Write, spans),
            MediumWork::Flush | MediumWork::Commit => {
                for member in &mut self.members {
                    member.flushes_waiting.push(id);
                    member.commits |= work == MediumWork::Commit;
                }
                self.members.len() as u64
            }
            MediumWork::Memory => 0,
        };
        if parts == 0 {
            self.memory.push_back((now_ns.saturating_add(MEMORY_NS), id));
        } else {
            self.requests
                .insert(id, Progress { parts, started: matches!(work, MediumWork::Flush | MediumWork::Commit) });
        }
    }

    /// Puts the parts of a request into their queues; returns the number of parts.
    fn deal(&mut self, now_ns: u64, id: u64, file: u64, write: bool, spans: &[Span]) -> u64 {
        let count = self.members.len() as u64;
        let stripe_bytes = if count == 1 { u64::MAX } else { self.parameters.stripe_bytes };
        let mut parts = 0;
        for span in spans {
            let (mut at, end) = (span.position, span.position + span.len);
            while at < end {
                let stripe = at / stripe_bytes;
                let until = end.min((stripe + 1).saturating_mul(stripe_bytes));
                let position = stripe / count * stripe_bytes + at % stripe_bytes;
                let member = &mut self.members[(stripe % count) as usize];
                member.elevator.add(now_ns, id, file, write, Span { position, len: until - at });
                parts += 1;
                at = until;
            }
        }
        parts
    }

    pub(super) fn run(&mut self, now_ns: u64, random: &mut Random, events: &mut Vec<Event>) -> Option<u64> {
        let Self { members, requests, memory, done, .. } = self;
        let mut next_ns = None;
        while let Some((end_ns, id)) = memory.front().copied() {
            if end_ns > now_ns {
                next_ns = Some(end_ns);
                break;
            }
            memory.pop_front();
            events.push(Event::Ended(id));
        }
        for member in members {
            // An event due before now happens at its own instant, so a late call changes nothing for requests queued in
            // time.
            loop {
                let due_ns = member.mechanism.next_ns().filter(|due_ns| *due_ns <= now_ns);
                let at_ns = due_ns.unwrap_or(now_ns);
                if member.mechanism.step(at_ns, done) {
                    member.flushes.drain(..).for_each(|request| part_done(requests, request, events));
                }
                for token in done.drain(..) {
                    member.elevator.requests(token, |request| part_done(requests, request, events));
                    member.elevator.done(token);
                }
                member.dispatch(at_ns, random, requests, events);
                if due_ns.is_none() && member.mechanism.next_ns().is_none_or(|due_ns| due_ns > now_ns) {
                    break;
                }
            }
            next_ns = sooner(next_ns, member.mechanism.next_ns());
        }
        next_ns
    }

    /// Drops all requests and the state of the devices; the figures stay.
    pub(super) fn clear(&mut self) {
        self.past = self.counts();
        let parameters = &self.parameters;
        let made = (0..parameters.devices).map(|_| Member {
            elevator: Elevator::new(parameters.queue.clone()),
            mechanism: Mechanism::new(&parameters.mechanism, parameters.device_depth as usize),
            flushes_waiting: Vec::new(),
            flushes: Vec::new(),
            commits: false,
            commands: 0,
            command_bytes: 0,
        });
        self.members = made.collect();
        self.requests.clear();
        self.memory.clear();
    }

    pub(super) fn counts(&self) -> Counts {
        let mut sum = self.past;
        for member in &self.members {
            sum.seeks += member.mechanism.seeks();
            sum.merges += member.elevator.merges;
            sum.commands += member.commands;
            sum.command_bytes += member.command_bytes;
            sum.file_switches += member.elevator.file_switches;
        }
        sum
    }
}
