//! The time that requests take.
//!
//! Owns: the law of service, the thread that answers requests when they are due.
//! Does not own: the bytes (`medium`).
//! Invariants: bytes move one request at a time, at the rate of their kind. At most `queue` requests are worked on at
//! once, and each has the latency. Requests are answered in the order of their due times. A disk that hangs answers
//! nothing. Every request is answered in the end, also when the disk ends.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time that requests take. A zero is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// Rate of reads.
    pub read_bytes_per_s: u64,
    /// Rate of writes.
    pub write_bytes_per_s: u64,
    /// Time of a request beside its bytes.
    pub latency: Duration,
    /// Requests that the disk works on at once.
    pub queue: usize,
    /// Time of a flush.
    pub flush: Duration,
}

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    Flush,
}

impl Rates {
    /// The time of a request's bytes.
    fn transfer(&self, kind: Kind, bytes: u64) -> Duration {
        let rate = match kind {
            Kind::Read => self.read_bytes_per_s,
            Kind::Write => self.write_bytes_per_s,
            Kind::Flush => return self.flush,
        };
        if rate == 0 { Duration::ZERO } else { Duration::from_nanos((bytes * 1_000_000_000).div_ceil(rate)) }
    }
}

/// The times until which the disk is busy.
#[derive(Debug)]
struct Service {
    /// The last bytes move until then.
    transfer_ends: Instant,
    /// The ends of the requests in work, the earliest first.
    ends: VecDeque<Instant>,
}

impl Service {
    fn new(now: Instant) -> Self {
        Self { transfer_ends: now, ends: VecDeque::new() }
    }

    /// Takes on a request at `now`; returns its end.
    fn take_on(&mut self, rates: &Rates, kind: Kind, bytes: u64, now: Instant) -> Instant {
        while self.ends.front().is_some_and(|end| *end <= now) {
            self.ends.pop_front();
        }
        // With a full queue the request begins when enough earlier ones have ended.
        let full = (rates.queue > 0).then(|| self.ends.len().checked_sub(rates.queue)).flatten();
        let begins = full.map_or(now, |at| self.ends[at].max(now));
        self.transfer_ends = self.transfer_ends.max(begins + rates.latency) + rates.transfer(kind, bytes);
        self.ends.push_back(self.transfer_ends);
        self.transfer_ends
    }
}

/// Answers a request.
type Answer = Box<dyn FnOnce() + Send>;

struct Waiting {
    rates: Rates,
    service: Service,
    /// Answers by their due times; the number keeps requests apart that are due at once.
    answers: BTreeMap<(Instant, u64), Answer>,
    last: u64,
    hangs: bool,
    ends: bool,
}

impl Waiting {
    /// When the next answer is due, if the disk answers at all.
    fn due(&self) -> Option<Instant> {
        let first = self.answers.first_key_value().map(|((due, _), _)| *due);
        first.filter(|_| !self.hangs || self.ends)
    }
}

struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers requests when they are due.
pub(crate) struct Clock {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Clock {
    pub(crate) fn start(rates: Rates) -> Self {
        let service = Service::new(Instant::now());
        let waiting = Waiting { rates, service, answers: BTreeMap::new(), last: 0, hangs: false, ends: false };
        let shared = Arc::new(Shared { waiting: Mutex::new(waiting), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || answer_in_time(&of_thread));
        Self { shared, thread: Some(thread) }
    }

    /// Sets the rates of later requests.
    pub(crate) fn set(&self, rates: Rates) {
        self.shared.lock().rates = rates;
    }

    /// Answers no request from now on (`true`), or goes on.
    pub(crate) fn hang(&self, hangs: bool) {
        self.shared.lock().hangs = hangs;
        self.shared.changed.notify_one();
    }

    /// Calls `answer` when a request that comes now is done.
    pub(crate) fn when_done(&self, kind: Kind, bytes: u64, answer: impl FnOnce() + Send + 'static) {
        let now = Instant::now();
        let mut waiting = self.shared.lock();
        let rates = waiting.rates;
        let due = waiting.service.take_on(&rates, kind, bytes, now);
        if due <= now && !waiting.hangs {
            drop(waiting);
            return answer();
        }
        waiting.last += 1;
        let number = waiting.last;
        waiting.answers.insert((due, number), Box::new(answer));
        self.shared.changed.notify_one();
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_one();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer_in_time(shared: &Shared) {
    let mut waiting = shared.lock();
    loop {
        let now = Instant::now();
        waiting = match waiting.due() {
            Some(due) if due <= now || waiting.ends => {
                let answer = waiting.answers.pop_first();
                drop(waiting);
                answer.into_iter().for_each(|(_, answer)| answer());
                shared.lock()
            }
            Some(due) => shared.changed.wait_timeout(waiting, due - now).unwrap_or_else(PoisonError::into_inner).0,
            None if waiting.ends => return,
            None => shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

#[cfg(test)]
mod tests;
