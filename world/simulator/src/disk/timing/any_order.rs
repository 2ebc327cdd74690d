//! The model for tests: a latency, a rate, and requests in flight that end in any order.
//!
//! A request waits for the latency; then, one request at a time, its bytes pass at the rate. The seed decides which of
//! the requests that have waited is taken next. No real device does this; it finds more bugs in a caller than a real
//! device would.
//!
//! Owns: the waiting requests, the served request.
//! Does not own: the requests' contents (`disk`).
//! Invariants: one request is served at a time.

use std::collections::BTreeMap;

use super::seam::{Counts, Event, Span};
use super::times::transfer_ns;
use crate::random::Random;

struct QueuedRequest {
    ready_ns: u64,
    bytes: u64,
}

pub(crate) struct AnyOrder {
    latency_ns: u64,
    bytes_per_second: u64,
    waiting: BTreeMap<u64, QueuedRequest>,
    /// The served request and the instant of its end.
    current: Option<(u64, u64)>,
    /// Retained for its memory.
    ready: Vec<u64>,
    counts: Counts,
}

impl AnyOrder {
    pub(crate) fn new(latency_ns: u64, bytes_per_second: u64) -> Self {
        let (waiting, ready) = (BTreeMap::new(), Vec::new());
        Self { latency_ns, bytes_per_second, waiting, current: None, ready, counts: Counts::default() }
    }

    pub(super) fn accept(&mut self, now_ns: u64, id: u64, spans: &[Span]) {
        let bytes = spans.iter().map(|span| span.len).sum();
        self.waiting.insert(id, QueuedRequest { ready_ns: now_ns.saturating_add(self.latency_ns), bytes });
    }

    pub(super) fn run(&mut self, now_ns: u64, random: &mut Random, events: &mut Vec<Event>) -> Option<u64> {
        loop {
            if let Some((id, end_ns)) = self.current {
                if end_ns > now_ns {
                    return Some(end_ns);
                }
                self.current = None;
                events.push(Event::Ended(id));
            }
            self.ready.clear();
            self.ready.extend(self.waiting.iter().filter(|(_, one)| one.ready_ns <= now_ns).map(|(id, _)| *id));
            if self.ready.is_empty() {
                return self.waiting.values().map(|one| one.ready_ns).min();
            }
            let id = random.pick(&self.ready);
            let bytes = self.waiting.remove(&id).map_or(0, |one| one.bytes);
            self.counts.commands += 1;
            self.counts.command_bytes += bytes;
            self.current = Some((id, now_ns.saturating_add(transfer_ns(bytes, self.bytes_per_second))));
            events.push(Event::Started(id));
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.current = None;
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }
}
