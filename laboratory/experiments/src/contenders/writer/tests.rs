use std::sync::Mutex;

use super::*;

/// Records the offsets; sets the stop after `stop_after` writes.
struct Offsets<'a> {
    seen: Mutex<Vec<u64>>,
    stop_after: usize,
    control: &'a Control,
}

impl Sink for Offsets<'_> {
    fn write(&self, offset: u64, block: &[u8]) -> Result<(), String> {
        assert!(block.as_ptr().addr().is_multiple_of(ALIGN) && block.len() == 8192);
        let mut seen = self.seen.lock().map_err(|_| "poisoned")?;
        seen.push(offset);
        self.control.stop.store(seen.len() == self.stop_after, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> Result<(), String> {
        Ok(())
    }

    fn cut(&self) -> Result<(), String> {
        Ok(())
    }
}

const STREAM: Stream =
    Stream { block_bytes: 8192, bytes_max: 40_000, time: None, rate: None, settled_after: Duration::ZERO };

fn written(stream: Stream, stop_after: usize) -> (Written, Vec<u64>) {
    let control = Control::default();
    let sink = Offsets { seen: Mutex::default(), stop_after, control: &control };
    let written = stream.write(&sink, &control).unwrap_or_default();
    assert_eq!(control.accepted_bytes.load(Ordering::Relaxed), written.bytes);
    let seen = sink.seen.into_inner().unwrap_or_default();
    (written, seen)
}

#[test]
fn blocks_follow_each_other_up_to_the_bytes() {
    let (all, seen) = written(STREAM, usize::MAX);
    assert_eq!(seen, [0, 8192, 16384, 24576]);
    assert_eq!((all.bytes, all.all.count(), all.settled.count(), all.settled_bytes), (32_768, 4, 4, 32_768));
}

#[test]
fn a_stop_ends_a_writer_that_waits_for_its_next_block() {
    // The second block would be due in two hours.
    let (stopped, seen) = written(Stream { rate: Some(1), ..STREAM }, 1);
    assert!(seen.len() <= 2 && stopped.elapsed < Duration::from_secs(3600), "{seen:?}");
}

#[test]
fn at_a_rate_blocks_are_not_early() {
    let (paced, seen) = written(Stream { rate: Some(1_000_000), ..STREAM }, usize::MAX);
    // The fourth block is due after three blocks' time.
    assert!(seen.len() == 4 && paced.elapsed >= Duration::from_micros(24_576), "{:?}", paced.elapsed);
}

#[test]
fn early_calls_are_not_settled() {
    let (early, _) = written(Stream { settled_after: Duration::from_secs(3600), ..STREAM }, usize::MAX);
    assert_eq!((early.all.count(), early.settled.count(), early.settled_bytes), (4, 0, 0));
    assert_eq!(early.settled_time, Duration::ZERO);
}
