//! The queue in front of a device: Linux's deadline elevator, or first come, first served.
//!
//! Deadline follows `block/mq-deadline.c` of Linux 6.1. Reads and writes are queued apart, each sorted by position and
//! in order of arrival. A request is merged into an adjoining queued request of its direction, up to the largest
//! request. Commands leave in batches of one direction in ascending order. A new batch consists of reads, unless writes
//! were passed over `writes_starved` times. It begins with the oldest request if that request has expired or the sweep
//! has reached its end. Otherwise it continues where the direction's last command ended.
//!
//! Owns: the waiting requests, their merging and their order.
//! Does not own: the device's concurrency and time (`mechanism`).
//! Invariants: a request is in exactly one entry; an entry is of one direction and contiguous; merges
//! never pass the largest request.

use std::collections::{BTreeMap, VecDeque};

use super::seam::Span;

#[derive(Clone, Debug)]
pub(crate) struct QueueParameters {
    /// The deadline elevator; otherwise first come, first served, without merging.
    pub(crate) deadline: bool,
    /// Most bytes a command carries after merging.
    pub(crate) command_bytes_max: u64,
    /// Time after which a read expires.
    pub(crate) read_expire_ns: u64,
    /// Time after which a write expires.
    pub(crate) write_expire_ns: u64,
    /// Most commands in a batch.
    pub(crate) batch_commands: u64,
    /// Batches of reads that may pass waiting writes.
    pub(crate) writes_starved: u64,
}

/// A command for the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Command {
    /// The entry, to name it when the command is done.
    pub(super) token: usize,
    pub(super) write: bool,
    pub(super) span: Span,
    /// The arrival of the latest of its requests.
    pub(super) since_ns: u64,
}

#[derive(Clone, Copy)]
struct QueueEntry {
    write: bool,
    span: Span,
    file: u64,
    /// The number of its arrival, unique among entries.
    arrival: u64,
    due_ns: u64,
    since_ns: u64,
    /// The first and last of its requests, in `links`.
    first: usize,
    last: usize,
}

/// One request of an entry.
#[derive(Clone, Copy)]
struct Link {
    request: u64,
    next: Option<usize>,
}

/// Values in stable slots that are reused.
struct Slab<T> {
    items: Vec<T>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    fn add(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.items[at] = value;
                at
            }
            None => {
                self.items.push(value);
                self.items.len() - 1
            }
        }
    }
}

#[derive(Default)]
struct Direction {
    /// From position and arrival to entry.
    sorted: BTreeMap<(u64, u64), usize>,
    /// From arrival to entry.
    arrived: BTreeMap<u64, usize>,
    /// The end of the last command, while the sweep continues.
    sweep: Option<u64>,
}

pub(super) struct Elevator {
    parameters: QueueParameters,
    entries: Slab<QueueEntry>,
    links: Slab<Link>,
    directions: [Direction; 2],
    /// First come, first served.
    line: VecDeque<usize>,
    arrivals: u64,
    /// The direction of the batch and the number of its commands so far.
    batch: Option<(bool, u64)>,
    starved: u64,
    pub(super) merges: u64,
    last_written_file: Option<u64>,
    pub(super) file_switches: u64,
}

fn end(span: Span) -> u64 {
    span.position.saturating_add(span.len)
}

impl Elevator {
    pub(super) fn new(parameters: QueueParameters) -> Self {
        Self {
            parameters,
            entries: Slab { items: Vec::new(), free: Vec::new() },
            links: Slab { items: Vec::new(), free: Vec::new() },
            directions: Default::default(),
            line: VecDeque::new(),
            arrivals: 0,
            batch: None,
            starved: 0,
            merges: 0,
            last_written_file: None,
            file_switches: 0,
        }
    }

    /// Takes a request or a part of one.
    pub(super) fn add(&mut self, now_ns: u64, request: u64, file: u64, write: bool, span: Span) {
        let link = self.links.add(Link { request, next: None });
        if self.parameters.deadline && self.merge(now_ns, link, write, span) {
            self.merges += 1;
            return;
        }
        let expire_ns = if write { self.parameters.write_expire_ns } else { self.parameters.read_expire_ns };
        let arrival = self.arrivals;
        self.arrivals += 1;
        let due_ns = now_ns.saturating_add(expire_ns);
        let entry = QueueEntry { write, span, file, arrival, due_ns, since_ns: now_ns, first: link, last: link };
        let token = self.entries.add(entry);
        if self.parameters.deadline {
            let direction = &mut self.directions[usize::from(write)];
            direction.sorted.insert((span.position, arrival), token);
            direction.arrived.insert(arrival, token);
        } else {
            self.line.push_back(token);
        }
    }

    /// Merges a request into an entry that ends at its start or starts at its end.
    fn merge(&mut self, now_ns: u64, link: usize, write: bool, span: Span) -> bool {
        let (sorted, bytes_max) = (&self.directions[usize::from(write)].sorted, self.parameters.command_bytes_max);
        let fits = |token: usize| self.entries.items[token].span.len + span.len <= bytes_max;
        let before = sorted.range(..(span.position, 0)).next_back().map(|(_, token)| *token);
        if let Some(token) =
            before.filter(|token| end(self.entries.items[*token].span) == span.position && fits(*token))
        {
            let entry = &mut self.entries.items[token];
            entry.span.len += span.len;
            entry.since_ns = now_ns;
            let last = std::mem::replace(&mut entry.last, link);
            self.links.items[last].next = Some(link);
            self.join_next(token);
            return true;
        }
        let from = end(span);
        let after = sorted.range((from, 0)..=(from, u64::MAX)).next().map(|(key, token)| (*key, *token));
        let Some((key, token)) = after.filter(|(_, token)| fits(*token)) else { return false };
        let sorted = &mut self.directions[usize::from(write)].sorted;
        sorted.remove(&key);
        sorted.insert((span.position, key.1), token);
        let entry = &mut self.entries.items[token];
        entry.span = Span { position: span.position, len: entry.span.len + span.len };
        entry.since_ns = now_ns;
        self.links.items[link].next = Some(std::mem::replace(&mut entry.first, link));
        true
    }

    /// Joins a grown entry with the next one if they now adjoin; the result has the earlier deadline.
    fn join_next(&mut self, token: usize) {
        let entry = self.entries.items[token];
        let direction = &mut self.directions[usize::from(entry.write)];
        let from = end(entry.span);
        let Some((key, next)) = direction.sorted.range((from, 0)..=(from, u64::MAX)).next() else { return };
        let (key, next) = (*key, *next);
        let other = self.entries.items[next];
        if entry.span.len + other.span.len > self.parameters.command_bytes_max {
            return;
        }
        direction.sorted.remove(&key);
        direction.arrived.remove(&other.arrival);
        direction.sorted.remove(&(entry.span.position, entry.arrival));
        direction.arrived.remove(&entry.arrival);
        self.links.items[entry.last].next = Some(other.first);
        let arrival = entry.arrival.min(other.arrival);
        let due_ns = entry.due_ns.min(other.due_ns);
        let since_ns = entry.since_ns.max(other.since_ns);
        let span = Span { position: entry.span.position, len: entry.span.len + other.span.len };
        self.entries.items[token] = QueueEntry { span, arrival, due_ns, since_ns, last: other.last, ..entry };
        direction.sorted.insert((span.position, arrival), token);
        direction.arrived.insert(arrival, token);
        self.entries.free.push(next);
        self.merges += 1;
    }

    /// The next command for the device, if any request waits.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<Command> {
        let token = if self.parameters.deadline { self.choose(now_ns)? } else { self.line.pop_front()? };
        let entry = self.entries.items[token];
        if self.parameters.deadline {
            let direction = &mut self.directions[usize::from(entry.write)];
            direction.sorted.remove(&(entry.span.position, entry.arrival));
            direction.arrived.remove(&entry.arrival);
            direction.sweep = Some(end(entry.span));
        }
        if entry.write {
            let before = self.last_written_file.replace(entry.file);
            self.file_switches += u64::from(before.is_some_and(|before| before != entry.file));
        }
        Some(Command { token, write: entry.write, span: entry.span, since_ns: entry.since_ns })
    }

    fn choose(&mut self, now_ns: u64) -> Option<usize> {
        if let Some((write, commands)) = self.batch
            && commands < self.parameters.batch_commands
            && let Some(token) = self.ahead(write)
        {
            self.batch = Some((write, commands + 1));
            return Some(token);
        }
        let waits = |write: bool| !self.directions[usize::from(write)].arrived.is_empty();
        let write = match (waits(false), waits(true)) {
            (false, false) => return None,
            (true, false) => false,
            (false, true) => true,
            (true, true) => self.starved >= self.parameters.writes_starved,
        };
        self.starved = if !write && waits(true) { self.starved + 1 } else { 0 };
        self.batch = Some((write, 1));
        let oldest = *self.directions[usize::from(write)].arrived.first_key_value()?.1;
        if self.entries.items[oldest].due_ns <= now_ns {
            return Some(oldest);
        }
        Some(self.ahead(write).unwrap_or(oldest))
    }

    /// The next entry of the direction's sweep.
    fn ahead(&self, write: bool) -> Option<usize> {
        let direction = &self.directions[usize::from(write)];
        direction.sorted.range((direction.sweep?, 0)..).next().map(|(_, token)| *token)
    }

    /// Passes each request of an entry that has left the queue to `each`.
    pub(super) fn requests(&self, token: usize, mut each: impl FnMut(u64)) {
        let mut link = Some(self.entries.items[token].first);
        while let Some(at) = link {
            each(self.links.items[at].request);
            link = self.links.items[at].next;
        }
    }

    /// Drops an entry that is done.
    pub(super) fn done(&mut self, token: usize) {
        let mut link = Some(self.entries.items[token].first);
        while let Some(at) = link {
            link = self.links.items[at].next;
            self.links.free.push(at);
        }
        self.entries.free.push(token);
    }
}

#[cfg(test)]
mod tests;
