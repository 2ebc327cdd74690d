//! One writer: timed writes of blocks in sequence, at full speed or at a rate.
//!
//! Owns: the loop and its counts.
//! Does not own: its end (the stop flag, the time, the bytes), syncs.
//! Invariants: the memory of a block is aligned, so that every way accepts it. At a rate, each block is due one period
//! after the block before was due, so a delayed writer catches up. A writer that waits for its next block sees the stop
//! at once.

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

/// The parameters of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) block_bytes: u64,
    /// Most bytes to write.
    pub(crate) bytes_max: u64,
    /// Time to write; `None`: until `bytes_max` are written.
    pub(crate) time: Option<Duration>,
    /// Bytes a second; `None`: full speed.
    pub(crate) rate: Option<u64>,
    /// Calls after this time count as those of a writer that has reached its dirty limit.
    pub(crate) settled_after: Duration,
}

/// State shared with other threads: they may look at the count, and set the stop.
#[derive(Default)]
pub(crate) struct Control {
    pub(crate) accepted_bytes: AtomicU64,
    pub(crate) stop: AtomicBool,
}

/// The results of a writer.
#[derive(Clone, Default)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
    /// Times of all calls, and of those after the writer had settled.
    pub(crate) all: Latencies,
    pub(crate) settled: Latencies,
    /// Bytes accepted after the writer had settled, and the time for them.
    pub(crate) settled_bytes: u64,
    pub(crate) settled_time: Duration,
}

impl Stream {
    /// Writes from the beginning of the file.
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

/// Waits in steps, so that a stop is seen.
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
