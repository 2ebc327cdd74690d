//! One writer: blocks one after the other, as fast as it may or at a rate, each timed.
//!
//! Owns: the loop, what it counts.
//! Does not own: when it ends (the stop that others set, the time, the bytes), syncs.
//! Invariants: memory that is written from is aligned, so that every way takes it. At a rate the next block is
//! due a period after the last was, however long that took: who was held up catches up. A writer that waits for
//! its next block sees the stop at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Sink;
use super::latencies::Latencies;

const ALIGN: usize = 4096;

/// Aligned bytes.
pub(crate) struct Block {
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

impl Block {
    pub(crate) fn new(len: usize) -> Self {
        let memory = vec![0x5a; len + ALIGN];
        let from = memory.as_ptr().addr().next_multiple_of(ALIGN) - memory.as_ptr().addr();
        Self { memory, from, len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.len]
    }
}

/// What a writer writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) block_bytes: u64,
    /// At most so much.
    pub(crate) bytes_max: u64,
    /// For so long; `None`: until the bytes are written.
    pub(crate) time: Option<Duration>,
    /// Bytes a second; `None`: as fast as it may.
    pub(crate) rate: Option<u64>,
    /// From when on calls count as those of a writer that has filled what it may.
    pub(crate) settled_after: Duration,
}

/// What others may look at, and end.
#[derive(Default)]
pub(crate) struct Control {
    pub(crate) accepted_bytes: AtomicU64,
    pub(crate) stop: AtomicBool,
}

/// What a writer got.
#[derive(Clone, Default)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
    /// Of all calls, and of those after it had settled.
    pub(crate) all: Latencies,
    pub(crate) settled: Latencies,
    /// Accepted after it had settled, and in which time.
    pub(crate) settled_bytes: u64,
    pub(crate) settled_time: Duration,
}

impl Stream {
    /// Writes from the file's beginning on.
    pub(crate) fn write(&self, sink: &dyn Sink, control: &Control) -> Result<Written, String> {
        let block = Block::new(self.block_bytes as usize);
        let start = Instant::now();
        let mut written = Written::default();
        let goes_on = |written: &Written| {
            written.bytes + self.block_bytes <= self.bytes_max
                && self.time.is_none_or(|time| start.elapsed() < time)
                && !control.stop.load(Ordering::Relaxed)
        };
        while goes_on(&written) {
            if let Some(rate) = self.rate {
                let due = start + Duration::from_secs_f64(written.bytes as f64 / rate.max(1) as f64);
                wait_until(due, control);
            }
            let began = Instant::now();
            sink.write(written.bytes, block.bytes())?;
            let took_ns = began.elapsed().as_nanos() as u64;
            written.bytes += self.block_bytes;
            control.accepted_bytes.store(written.bytes, Ordering::Relaxed);
            written.all.add(took_ns);
            if began.duration_since(start) >= self.settled_after {
                written.settled.add(took_ns);
                written.settled_bytes += self.block_bytes;
            }
        }
        written.elapsed = start.elapsed();
        written.settled_time = written.elapsed.saturating_sub(self.settled_after);
        Ok(written)
    }
}

/// In steps, so that a stop is seen.
fn wait_until(due: Instant, control: &Control) {
    const STEP: Duration = Duration::from_millis(50);
    while !control.stop.load(Ordering::Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(STEP));
    }
}

#[cfg(test)]
mod tests;
