//! One writer: timed writes of blocks in sequence, at full speed or at a rate; alone, then with a sync, or beside
//! others.
//!
//! Owns: the loop and its counts, the threads.
//! Does not own: its end (the stop flag, the time, the bytes), the disks.
//! Invariants: the memory of a block is aligned, so that every method accepts it. At a rate, each block is due one
//! period after the block before was due, so a delayed writer catches up. A writer that waits for its next block sees
//! the stop at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use afflux_figures::median;
use afflux_report::Fields;

use super::latencies::Latencies;
use super::{Contender, Sink};

const ALIGN: usize = 4096;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bursts that count, and the time between two.
const BURSTS: usize = 3;
const BURST_PAUSE: Duration = Duration::from_millis(300);

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
    /// Blocks of this size until so many bytes are written, at full speed.
    pub(crate) fn of(block_bytes: u64, bytes_max: u64) -> Self {
        Self { block_bytes, bytes_max, time: None, rate: None, settled_after: Duration::ZERO }
    }

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

impl Written {
    /// The figures of a writer, and of the sync after it.
    pub(crate) fn figures(&self, sync_s: f64) -> Fields {
        // A short run may end before it settles; then its figures cover all calls.
        let calls = if self.settled.count() > 0 { &self.settled } else { &self.all };
        let (bytes, time) = match self.settled_time.as_secs_f64() {
            settled_s if settled_s > 0.0 => (self.settled_bytes, settled_s),
            _ => (self.bytes, self.elapsed.as_secs_f64()),
        };
        let all_s = (self.elapsed.as_secs_f64() + sync_s).max(1e-9);
        Fields::new()
            .with("sync_s", sync_s)
            .with("write_p50_ms", calls.per_mille_ms(500))
            .with("write_p99_ms", calls.per_mille_ms(990))
            .with("write_p999_ms", calls.per_mille_ms(999))
            .with("write_max_ms", calls.max_ms())
            .with("write_all_p999_ms", self.all.per_mille_ms(999))
            .with("accepted_mb_per_s", bytes as f64 / 1e6 / time.max(1e-9))
            .with("end_to_end_mb_per_s", self.bytes as f64 / 1e6 / all_s)
    }
}

/// The result of a thread.
pub(crate) fn ended<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("a thread of a writer panicked".to_owned()))
}

/// Writes and then syncs on a thread that is not the first of the process. Calls `look` with the time since the begin
/// again and again meanwhile. Returns the seconds of the sync, too.
pub(crate) fn write_and_sync(
    stream: &Stream,
    sink: &dyn Sink,
    control: &Control,
    mut look: impl FnMut(Duration) -> Result<(), String>,
) -> Result<(Written, f64), String> {
    let start = Instant::now();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let written = stream.write(sink, control)?;
            let began = Instant::now();
            sink.sync()?;
            Ok((written, began.elapsed().as_secs_f64()))
        });
        while !writer.is_finished() {
            look(start.elapsed())?;
            thread::sleep(LOOK_EVERY);
        }
        ended(writer)
    })
}

/// Runs `body` on a thread of its own beside a stream that began `fill` before. Calls `let_go` after it, which lets a
/// slow disk write at full speed, and waits for the stream. The stream's bytes need not reach the disk.
pub(crate) fn beside<T: Send>(
    stream: &Stream,
    sink: &dyn Sink,
    fill: Duration,
    let_go: impl FnOnce() -> Result<(), String>,
    body: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    let control = Control::default();
    let (wrote, done) = thread::scope(|scope| {
        let writer = scope.spawn(|| stream.write(sink, &control));
        thread::sleep(fill);
        let done = ended(scope.spawn(body));
        control.stop.store(true, Ordering::Relaxed);
        (let_go().and(ended(writer)), done)
    });
    wrote?;
    sink.cut()?;
    done
}

/// Bursts to new files in a directory of a contender, of which the first `warm_ups` do not count: they find memory that
/// was not touched for a while, which costs more than the writes. `clean` makes the disk ready for the next. Returns
/// the median time and the longest call, in milliseconds.
pub(crate) fn bursts(
    contender: &dyn Contender,
    directory: usize,
    stream: &Stream,
    warm_ups: usize,
    clean: impl Fn(&dyn Sink) -> Result<(), String>,
) -> Result<(f64, f64), String> {
    let (mut took_ms, mut longest_ms) = (Vec::new(), 0_f64);
    for turn in 0..warm_ups + BURSTS {
        let file = contender.create(directory, "burst")?;
        let began = Instant::now();
        let written = stream.write(&*file, &Control::default())?;
        let took = began.elapsed();
        clean(&*file)?;
        thread::sleep(BURST_PAUSE);
        if turn >= warm_ups {
            took_ms.push(took.as_secs_f64() * 1e3);
            longest_ms = longest_ms.max(written.all.max_ms());
        }
    }
    Ok((median(took_ms).unwrap_or(0.0), longest_ms))
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
