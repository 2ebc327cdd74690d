//! The client's order of calls for a file that one program writes from its start to its end.
//!
//! The program dirties pages at the speed of memory, up to the dirty limit. Dirty bytes are sent at once, in WRITEs of
//! one size, with a bounded number in flight. At the limit, and at the end, the client waits for the replies, then
//! COMMITs the file and waits for that. Only then does the program continue. (Linux's client at the time of seed S4's
//! measurement did so, and so does the model that reproduces the published figures.) Bytes sent under another write
//! verifier than the COMMIT's are sent again.
//!
//! Owns: the state of all bytes: clean, dirty, in flight, or unstable at the server.
//! Does not own: calls and replies (`wire`), time.
//! Invariants: every byte of the file is in exactly one of these states; dirty, in flight and unstable
//! bytes together are at most the limit, or one WRITE.

use std::collections::VecDeque;

/// A range of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) offset: u64,
    pub(super) len: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Write(Range),
    Commit,
    Wait,
    /// Everything is committed.
    Finished,
}

/// Ranges acknowledged under one verifier.
#[derive(Debug)]
struct Unstable {
    verifier: u64,
    ranges: Vec<Range>,
}

#[derive(Debug)]
pub(super) struct Window {
    file_bytes: u64,
    record_bytes: u32,
    limit_bytes: u64,
    in_flight_max: u32,
    /// The end of the bytes sent for the first time.
    sent_bytes: u64,
    /// The program may dirty the file up to here, once it has been allowed to continue.
    allowed_bytes: u64,
    committed_bytes: u64,
    again: VecDeque<Range>,
    in_flight: u32,
    unstable: Vec<Unstable>,
    committing: bool,
    resent_bytes: u64,
}

impl Window {
    pub(super) fn new(file_bytes: u64, record_bytes: u32, limit_bytes: u64, in_flight_max: u32) -> Self {
        let mut window = Self {
            file_bytes,
            record_bytes,
            limit_bytes: limit_bytes.max(record_bytes.into()),
            in_flight_max,
            sent_bytes: 0,
            allowed_bytes: 0,
            committed_bytes: 0,
            again: VecDeque::new(),
            in_flight: 0,
            unstable: Vec::new(),
            committing: false,
            resent_bytes: 0,
        };
        window.allow();
        window
    }

    fn allow(&mut self) {
        self.allowed_bytes = self.file_bytes.min(self.committed_bytes + self.limit_bytes);
    }

    /// The next action. An action other than `Wait` or `Finished` counts as done.
    pub(super) fn next(&mut self) -> Action {
        if self.committing {
            return Action::Wait;
        }
        if self.in_flight < self.in_flight_max {
            if let Some(range) = self.again.pop_front() {
                self.in_flight += 1;
                self.resent_bytes += u64::from(range.len);
                return Action::Write(range);
            }
            let len = (self.allowed_bytes - self.sent_bytes).min(self.record_bytes.into()) as u32;
            if len > 0 {
                let range = Range { offset: self.sent_bytes, len };
                self.sent_bytes += u64::from(len);
                self.in_flight += 1;
                return Action::Write(range);
            }
        }
        if self.in_flight > 0 {
            return Action::Wait;
        }
        if self.unstable.is_empty() {
            return Action::Finished;
        }
        self.committing = true;
        Action::Commit
    }

    /// A WRITE was answered; the server wrote `count` bytes of it.
    pub(super) fn written(&mut self, range: Range, count: u32, verifier: u64) {
        self.in_flight -= 1;
        let count = count.min(range.len);
        if count < range.len {
            self.again.push_back(Range { offset: range.offset + u64::from(count), len: range.len - count });
        }
        if count == 0 {
            return;
        }
        let range = Range { len: count, ..range };
        match self.unstable.iter_mut().find(|unstable| unstable.verifier == verifier) {
            Some(unstable) => unstable.ranges.push(range),
            None => self.unstable.push(Unstable { verifier, ranges: vec![range] }),
        }
    }

    /// A COMMIT was answered. Returns whether everything that it was sent for is durable.
    pub(super) fn committed(&mut self, verifier: u64) -> bool {
        self.committing = false;
        let mut all = true;
        for unstable in std::mem::take(&mut self.unstable) {
            if unstable.verifier == verifier {
                self.committed_bytes += unstable.ranges.iter().map(|range| u64::from(range.len)).sum::<u64>();
            } else {
                all = false;
                self.again.extend(unstable.ranges);
            }
        }
        self.allow();
        all
    }

    /// The connection is gone, together with the calls in flight, which are made again.
    pub(super) fn disconnected(&mut self, in_flight: impl IntoIterator<Item = Range>) {
        self.again.extend(in_flight);
        (self.in_flight, self.committing) = (0, false);
    }

    /// Bytes sent more than once.
    pub(super) fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }
}

#[cfg(test)]
mod tests;
