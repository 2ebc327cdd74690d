//! Status reports of our server during a measured copy.
//!
//! Owns: requests by the control socket, and their repetition during a copy.
//! Does not own: the server.
//! Invariants: if a server does not answer, the reports are missing, but the copy goes on.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(200);
/// Most looks during a copy: five hours of them.
const LOOKS_MAX: usize = 90_000;
/// Longest wait for an answer, and the largest answer.
const SILENCE: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// The state of a server at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) at: Instant,
    /// Bytes in flight included.
    pub(super) dirty_bytes: u64,
    pub(super) background_threshold_bytes: u64,
    pub(super) write_bandwidth_bytes_per_s: Option<u64>,
}

/// The engine's counters, by name.
pub(super) type Counts = BTreeMap<String, u64>;

/// Runs `work`, with looks at the server of a control socket meanwhile.
pub(super) fn during<T>(control: Option<&Path>, work: impl FnOnce() -> T) -> (T, Vec<Look>) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut looks = Vec::new();
            while !over.load(Ordering::Relaxed) && looks.len() < LOOKS_MAX {
                looks.extend(control.and_then(look).map(|(look, _)| look));
                std::thread::sleep(EVERY);
            }
            looks
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        (done, looking.join().unwrap_or_default())
    })
}

/// A look at the only device, and the counters. `None` while the server has no device.
pub(super) fn look(control: &Path) -> Option<(Look, Counts)> {
    let mut stream = UnixStream::connect(control).ok()?;
    stream.set_read_timeout(Some(SILENCE)).ok()?;
    stream.set_write_timeout(Some(SILENCE)).ok()?;
    stream.write_all(b"{\"do\":\"stat\"}\n").ok()?;
    let mut line = String::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut line).ok()?;
    of_report(&serde_json::from_str(&line).ok()?)
}

/// Reads the output of `afflux stat --json`.
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
