//! Calls about names while another connection writes a file on the same server as fast as possible.
//!
//! Owns: the stream of writes, its end, its throughput.
//! Does not own: the calls about names (`names`).
//! Invariants: the stream has begun before the first measured call, and has ended before this returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afflux_nfs_client::{Client, Handle, Kind, Load, stable_how};

use super::data_files::own_file;
use super::figure::Figure;
use super::names::{self, Step};
use super::servers::{Called, Running, Servers};

const BLOCK: u32 = 256 << 10;
const FILE_BYTES: u64 = 256 << 20;
/// The stream runs alone for this long first; after that the disk is busy.
const LEAD: Duration = Duration::from_millis(300);
/// Interval at which the stream checks whether it has to end.
const STEP: Duration = Duration::from_millis(50);

pub(super) fn run(
    servers: &mut Servers,
    which: Running,
    step: Step,
    clients: usize,
    names: u64,
    round: usize,
) -> Called<Figure> {
    let (client, file) = own_file(servers, which, "stream")?;
    let ends = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ends);
    let stream = thread::spawn(move || write_until(client, &file, &told));
    thread::sleep(LEAD);
    let begin = Instant::now();
    // In separate directories: those of the rows without a stream still exist.
    let figure = names::run(servers, which, step, clients, (names / 4).max(clients as u64), 100 + round);
    let end = Instant::now();
    ends.store(true, Ordering::Relaxed);
    let written = stream.join().map_err(|_| std::io::Error::other("the stream's thread"))??;
    Ok(Figure { stream_mib: mib_a_second(&written, begin, end), ..figure? })
}

/// A step of the stream.
struct Written {
    begin: Instant,
    end: Instant,
    bytes: u64,
}

/// The stream's throughput between two instants; each of its steps is assumed to be even.
fn mib_a_second(written: &[Written], begin: Instant, end: Instant) -> f64 {
    let bytes_between = |step: &Written| {
        let shared = step.end.min(end).saturating_duration_since(step.begin.max(begin));
        step.bytes as f64 * shared.as_secs_f64() / (step.end - step.begin).as_secs_f64().max(1e-9)
    };
    let bytes: f64 = written.iter().map(bytes_between).sum();
    bytes / f64::from(1 << 20) / (end - begin).as_secs_f64().max(1e-9)
}

/// Writes the file over and over with some calls in flight. Commits as often as a client with little memory would.
fn write_until(mut client: Client, file: &Handle, ends: &AtomicBool) -> Called<Vec<Written>> {
    let kind = Kind::Write(BLOCK, stable_how::UNSTABLE);
    let load = Load { window: 8, sequential: true, duration: STEP, ..Load::of(kind, FILE_BYTES) };
    let mut written = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let bytes = client.load(file, &load)?.data_bytes;
        client.commit(file, 0, 0)?;
        written.push(Written { begin, end: Instant::now(), bytes });
    }
    Ok(written)
}

#[cfg(test)]
mod tests;
