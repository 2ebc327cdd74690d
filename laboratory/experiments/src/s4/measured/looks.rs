//! What our server says of itself during a measured copy.
//!
//! Owns: asking it, by its control socket or directly; looking again and again while a copy runs.
//! Does not own: the server.
//! Invariants: a server that does not answer costs the looks, never the copy.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afflux_engine::counters::COUNTERS;
use afflux_engine::{Engine, Platform};
use afflux_linux::LinuxPlatform;
use serde_json::Value;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(200);
/// Most looks at a copy: five hours.
const LOOKS_MAX: usize = 90_000;
/// Longest wait for an answer, and the longest answer.
const SILENCE: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// A server at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) at: Instant,
    /// Being written included.
    pub(super) dirty_bytes: u64,
    pub(super) background_threshold_bytes: u64,
    pub(super) write_bandwidth_bytes_per_s: Option<u64>,
}

/// The engine's counters, by name.
pub(super) type Counts = BTreeMap<String, u64>;

/// Whom to ask.
pub(super) enum Asked {
    /// A process, by the path of its control socket.
    Socket(PathBuf),
    /// An engine in this process.
    Engine(Arc<Engine<LinuxPlatform>>),
    /// A server that says nothing.
    Nobody,
}

impl Asked {
    /// A look at the only device, and the counters. Nothing before the server has a device.
    pub(super) fn look(&self) -> Option<(Look, Counts)> {
        match self {
            Self::Socket(path) => by_socket(path),
            Self::Engine(engine) => of_engine(engine),
            Self::Nobody => None,
        }
    }

    /// Does `work` and looks meanwhile.
    pub(super) fn during<T: Send>(&self, work: impl FnOnce() -> T) -> (T, Vec<Look>) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut looks = Vec::new();
                while !over.load(Ordering::Relaxed) && looks.len() < LOOKS_MAX {
                    looks.extend(self.look().map(|(look, _)| look));
                    std::thread::sleep(EVERY);
                }
                looks
            });
            let done = work();
            over.store(true, Ordering::Relaxed);
            (done, looking.join().unwrap_or_default())
        })
    }
}

fn by_socket(path: &PathBuf) -> Option<(Look, Counts)> {
    let mut stream = UnixStream::connect(path).ok()?;
    stream.set_read_timeout(Some(SILENCE)).ok()?;
    stream.set_write_timeout(Some(SILENCE)).ok()?;
    stream.write_all(b"{\"do\":\"stat\"}\n").ok()?;
    let mut line = String::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut line).ok()?;
    of_report(&serde_json::from_str(&line).ok()?)
}

/// From what `afflux stat --json` prints.
pub(super) fn of_report(report: &Value) -> Option<(Look, Counts)> {
    let device = report["devices"].get(0)?;
    let look = Look {
        at: Instant::now(),
        dirty_bytes: device["dirty_bytes"].as_u64()?,
        background_threshold_bytes: device["background_threshold_bytes"].as_u64()?,
        write_bandwidth_bytes_per_s: device["write_bandwidth_bytes_per_s"].as_u64(),
    };
    let counters = report["counters"].as_object()?.iter();
    Some((look, counters.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect()))
}

fn of_engine(engine: &Arc<Engine<LinuxPlatform>>) -> Option<(Look, Counts)> {
    let device = engine.status().devices.into_iter().next()?;
    let look = Look {
        at: Instant::now(),
        dirty_bytes: device.dirty_bytes,
        background_threshold_bytes: device.background_threshold_bytes,
        write_bandwidth_bytes_per_s: device.write_bandwidth_bytes_per_s,
    };
    let sums = engine.platform().counters().sum();
    Some((look, COUNTERS.iter().zip(sums).map(|(info, value)| (info.name.to_owned(), value)).collect()))
}
